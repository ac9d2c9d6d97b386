//! Signals, a lost terminal, a lost controller, and two applies at once.

use std::process::{Command, Stdio};

use crate::lab_support::{binary, here, ok, ssh_config};
use crate::{NODE, assert_same, expect, prepared, sh, snapshot};

pub(crate) fn on_the_node() {
    prepared(NODE);
    sh("by_hand");
    let before = snapshot();
    for signal in ["INT", "TERM"] {
        let output = sh(&format!(
            "slowly selvedge apply /root/light.toml >/run/out 2>&1 & apply=$!
             until_announced 3 || exit 9
             pkill -HUP -x selvedge
             echo second; selvedge apply /root/light.toml 2>&1; echo $?
             until_announced 5 || exit 9
             pkill -{signal} -x selvedge
             wait $apply; echo first $?; cat /run/out"
        ));
        assert!(output.contains("another selvedge is changing this machine"), "{output}");
        assert!(output.contains("first 1"), "{output}");
        assert!(output.contains(&format!("stopped by SIG{signal}; all changes were rolled back")), "{output}");
        assert_same(signal, &before, &snapshot());
    }
    // The terminal goes away: the kernel sends SIGHUP, and nobody reads what is written.
    let mut lost = Command::new("ssh");
    let script = ". /root/node.sh; slowly selvedge apply /root/light.toml";
    lost.args(["-tt", "-F", ssh_config(), NODE, script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    kill_after_three(lost);
    sh("until_ended");
    expect("selvedge drift /root/light.toml", 0, "");
    ok(NODE, "selvedge rollback");
    assert_same("after the rollback", &before, &snapshot());
}

/// Ctrl-C at a controller: the node makes the apply whole, and says nothing to nobody.
pub(crate) fn lost_controller() {
    prepared(NODE);
    let mut lost = Command::new(binary());
    // A selvedge on the node that is slow, for the time to lose it in.
    ok(
        NODE,
        "printf '#!/bin/bash\\n. /root/node.sh\\nslowly selvedge \"$@\"\\n' >/usr/local/bin/slow; chmod +x /usr/local/bin/slow",
    );
    let spec = here("examples/lab.toml");
    lost.args(["apply", &spec, "--node", NODE, "--program", "/usr/local/bin/slow", "--ssh-config", ssh_config()]);
    lost.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    kill_after_three(lost);
    sh("until_ended");
    expect("selvedge drift /root/lab.toml", 0, "");
}

fn kill_after_three(mut command: Command) {
    let Ok(mut child) = command.spawn() else { panic!("cannot start {command:?}") };
    sh("until_announced 3");
    assert!(child.kill().and_then(|()| child.wait()).is_ok());
}
