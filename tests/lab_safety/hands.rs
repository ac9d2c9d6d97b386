//! What somebody else did after an apply, or before the first: it is not selvedge's to lose.

use crate::lab_support::ok;
use crate::{NODE, assert_same, expect, prepared, sh, snapshot};

const FILE: &str = "/etc/modules-load.d/selvedge.conf";

pub(crate) fn edited_after() {
    prepared(NODE);
    // Where nothing was ever applied, nothing is made.
    expect("selvedge rollback", 1, "nothing was ever applied");
    expect("selvedge confirm", 1, "no apply waits");
    expect("selvedge apply /root/light.toml --node nobody", 1, "nobody");
    ok(NODE, "! test -e /var/lib/selvedge");
    sh("by_hand; mkdir -p /etc/selvedge/opensm");
    let before = snapshot();
    ok(NODE, "selvedge apply /root/light.toml");
    ok(NODE, &format!("echo ib_theirs >{FILE}; chmod 640 {FILE}"));
    expect("selvedge rollback", 0, &format!("{FILE} had been changed by somebody else since"));
    assert_eq!(ok(NODE, &format!("cat {FILE}.selvedge-saved-*; stat -c %a {FILE}.selvedge-saved-*")), "ib_theirs\n640");
    ok(NODE, &format!("rm {FILE}.selvedge-saved-*; test -d /etc/selvedge/opensm"));
    assert_same("after the rollback", &before, &snapshot());
}
