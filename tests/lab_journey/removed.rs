//! What the spec no longer names goes, and a fabric is never left without a manager.

use crate::lab_support::{ok, selvedge, spec, ssh, until};
use crate::{Claim, UNIT, applied, lab_spec, on, until_active};

pub(crate) const CLAIMS: &[Claim] =
    &[("a_standby_leaves", standby_leaves), ("the_only_manager_stays", only_manager_stays)];

fn standby_leaves() {
    applied();
    let alone = spec("alone", &[("standby = [\"node02\"]", "standby = []")]);
    on("apply", &alone, "node02").exits(0);
    assert_eq!(ssh("node02", &format!("systemctl is-active {UNIT}")).stdout.trim(), "inactive");
    assert_eq!(ok("node02", "find /etc -name '*opensm*' -path '*selvedge*'"), "");
    assert_ne!(ssh("node02", &format!("systemctl cat {UNIT}")).code, 0);
    on("apply", &alone, "node02").exits(0).says("nothing was changed");
    // ib0 is none of its business.
    crate::ib0_is("node02", "connected", 65520);
    assert_eq!(ok("node01", &format!("systemctl is-active {UNIT}")), "active");
}

/// Follows the last one: node02 manages nothing, and node01 is to hand over to it.
fn only_manager_stays() {
    applied();
    let alone = spec("alone", &[("standby = [\"node02\"]", "standby = []")]);
    on("apply", &alone, "node02").exits(0);
    let moved =
        spec("moved", &[("primary = \"node01\"", "primary = \"node02\""), ("standby = [\"node02\"]", "standby = []")]);
    let refused = on("apply", &moved, "node01").exits(1);
    refused.says("no other subnet manager answers as master or standby").says("Start another first");
    assert_eq!(ok("node01", &format!("systemctl is-active {UNIT}; systemctl is-enabled {UNIT}")), "active\nenabled");
    ok("node01", "sminfo");
    // Nor does the other one take over from a manager that its spec does not know.
    on("apply", &moved, "node02").exits(1).says("master of this fabric: node01").says("two masters");
    // By way of a spec that names both it goes through, and back.
    let both = spec("both", &[("primary = \"node01\"", "primary = \"node02\""), ("[\"node02\"]", "[\"node01\"]")]);
    on("apply", &both, "node02").exits(0);
    on("apply", &both, "node01").exits(0);
    until("node02 is master, node01 stands by", 60, || {
        selvedge(&["verify", &both, "--only", "sm", "--format", "json"]).json()["verdict"] == "pass"
    });
    on("apply", &moved, "node01").exits(0);
    assert_eq!(ssh("node01", &format!("systemctl is-active {UNIT}")).stdout.trim(), "inactive");
    on("apply", &lab_spec(), "node01").exits(0);
    on("apply", &lab_spec(), "node02").exits(0);
    ["node01", "node02"].into_iter().for_each(until_active);
}
