//! What the spec no longer names goes, and a fabric is never left without a manager.

use crate::lab_support::{ok, selvedge, spec, ssh, until};
use crate::{Claim, UNIT, applied, in_sync, lab_spec, on, until_active};

pub(crate) const CLAIMS: &[Claim] = &[
    ("what_others_put_on_the_link_stays", others_stay),
    ("a_standby_leaves", standby_leaves),
    ("the_only_manager_stays", only_manager_stays),
];

/// networkd drops what it does not know of when the link's file changes.
fn others_stay() {
    applied();
    let routes =
        "ip -4 -N route show table all dev ib0 | grep '^10\\.7'; ip -o -4 addr show ib0 | grep -o '10.9.9.9/24'";
    ok("node02", "ip addr add 10.9.9.9/24 dev ib0; ip route add 10.77.0.0/16 via 10.0.0.1 dev ib0");
    ok("node02", "ip route add 10.78.0.0/16 via 10.0.0.1 dev ib0 table 100 metric 7 proto 186");
    let before = ok("node02", routes);
    assert_eq!(before.lines().count(), 3, "{before}");
    let smaller = spec("smaller", &[("mtu = \"max\"", "mtu = 32000")]);
    on("plan", &smaller, "node02").exits(2).says("ib0 also has 10.9.9.9/24");
    on("apply", &smaller, "node02").exits(0).says("it was there before");
    assert_eq!(ok("node02", routes), before);
    in_sync(&smaller, "node02");
    selvedge(&["rollback", "--node", "node02"]).exits(0);
    assert_eq!(ok("node02", routes), before);
    in_sync(&lab_spec(), "node02");
    ok("node02", "ip addr del 10.9.9.9/24 dev ib0; ip route del 10.77.0.0/16; ip route del 10.78.0.0/16 table 100");
}

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
