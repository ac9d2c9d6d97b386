//! `--confirm`, `confirm` and `rollback`, here and over SSH.

use crate::lab_support::{Output, here, lab, ok, selvedge, until};
use crate::{NODE, assert_same, expect, light, prepared, sh, snapshot};

/// selvedge on this machine, for the node.
fn remote(arguments: &[&str]) -> Output {
    selvedge(&[arguments, &["--node", NODE]].concat())
}

fn wait_until_undone(seconds: u64) {
    until("the node undoes it", seconds, || {
        sh("ls /var/lib/selvedge/journal").lines().all(|name| name.ends_with(".done"))
    });
}

pub(crate) fn rollback_by_hand() {
    prepared(NODE);
    // A subnet manager that an earlier claim left there would carry the fabric on.
    lab(&["down", "node02"]);
    sh("by_hand");
    let before = snapshot();
    remote(&["apply", &here("examples/lab.toml")]).exits(0);
    expect("selvedge drift /root/lab.toml", 0, "");
    // Before there was a subnet manager the link had no multicast group, whose MTU it now keeps.
    let before = before.replace("ib0 4092 ", "ib0 2044 ");
    // Its subnet manager is the only one.
    remote(&["rollback"]).exits(1).says("no other subnet manager answers");
    expect("selvedge drift /root/lab.toml", 0, "");
    remote(&["rollback", "--allow-cut"]).exits(0).says("rolled back");
    assert_same("after the rollback", &before, &snapshot());
    remote(&["rollback"]).exits(1).says("undone already");
    remote(&["confirm"]).exits(1).says("no apply waits");
}

/// Five seconds are less than the apply takes: the first timer comes while it runs, and waits its turn.
pub(crate) fn timer() {
    prepared(NODE);
    let before = snapshot();
    ok(NODE, "selvedge apply /root/lab.toml --confirm 20");
    // The time to confirm starts with the last change.
    let waiting = sh("ip -br address show ib0; selvedge apply /root/lab.toml 2>&1; echo $?");
    assert!(
        waiting.contains("10.0.0.1/16") && waiting.contains("`selvedge confirm` or `selvedge rollback`"),
        "{waiting}"
    );
    // Whoever sets the clock back does not win time.
    ok(NODE, "date -s '-1 hour'");
    wait_until_undone(120);
    ok(NODE, "hwclock --hctosys --utc");
    assert_same("not confirmed", &before, &snapshot());
    // Killed on the way, with nobody left to notice.
    sh("slowly selvedge apply /root/light.toml --confirm 8 & until_announced 4; pkill -KILL -x selvedge");
    wait_until_undone(120);
    assert_same("killed", &before, &snapshot());
}

pub(crate) fn reboots() {
    prepared(NODE);
    let before = snapshot();
    remote(&["apply", &here("examples/lab.toml"), "--confirm", "600"]).exits(0).says("UNDONE unless");
    lab(&["reboot", NODE]);
    assert_same("not confirmed before the reboot", &before, &snapshot());
    let light = light();
    remote(&["apply", &light, "--confirm", "600"]).exits(0);
    remote(&["confirm"]).exits(0).says("stays");
    let after = snapshot();
    lab(&["reboot", NODE]);
    expect("selvedge drift /root/light.toml", 0, "");
    assert_same("confirmed before the reboot", &after, &snapshot());
    remote(&["rollback"]).exits(0);
    assert_same("rolled back after the reboot", &before, &snapshot());
}
