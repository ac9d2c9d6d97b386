//! The link that carries the SSH session, or the default route, is not disturbed without a way back.

use crate::lab_support::{Output, here, lab, ok, program, selvedge, spec, ssh_config, until, up};
use crate::prepared;

/// A command on node02, through node01 and the fabric.
fn through_the_fabric(script: &str) -> Output {
    let proxy = format!("ProxyCommand=ssh -F {} -W 10.0.0.2:22 node01", ssh_config());
    program(&["ssh", "-F", ssh_config(), "-o", &proxy, "-o", "HostName=10.0.0.2", "node02", script], 180)
}

fn mode() -> String {
    ok("node02", "cat /sys/class/net/ib0/mode /sys/class/net/ib0/mtu")
}

pub(crate) fn over_ib0() {
    up(&["node01", "node02"]);
    prepared("node01");
    prepared("node02");
    let lab_spec = here("examples/lab.toml");
    for node in ["node01", "node02"] {
        selvedge(&["apply", &lab_spec, "--node", node]).exits(0);
    }
    let datagram = spec("datagram", &[("mode = \"connected\"", "mode = \"datagram\"")]);
    lab(&["put", "node02", &datagram, "/root/datagram.toml"]);
    until("node02 answers over ib0", 60, || through_the_fabric("true").code == 0);
    let before = mode();
    let apply = "selvedge apply /root/datagram.toml";
    // sudo drops SSH_CONNECTION; a new session has no terminal; an empty environment has nothing, but the shell above
    // it has. Where no process above has it either (systemd-run, cron), nothing is known of a session.
    for way in [
        apply.to_owned(),
        format!("sudo -n {apply}"),
        format!("setsid -w {apply}"),
        format!("env -i /usr/local/bin/{apply}; exit $?"),
    ] {
        eprintln!("      {way}");
        through_the_fabric(&way).exits(1).says("ib0 carries this SSH connection from 10.0.0.1").says("--confirm");
        assert_eq!(mode(), before, "{way}");
    }
    // From elsewhere, with the default route on it.
    ok("node02", "ip route add default via 10.0.0.1 dev ib0 metric 5");
    let elsewhere = selvedge(&["apply", &datagram, "--node", "node02"]).exits(1);
    elsewhere.says("ib0 carries the default route").says("--confirm");
    assert_eq!(mode(), before);
    ok("node02", "ip route del default via 10.0.0.1 dev ib0 metric 5");
    // With a way back it is made, whether or not the connection lives to say so.
    let made = through_the_fabric(&format!("{apply} --confirm 10"));
    eprintln!("      exit {}", made.code);
    until("it was made and undone", 120, || {
        ok("node02", "cat /var/lib/selvedge/journal/00000002.done 2>/dev/null || true").contains("rolled-back")
    });
    let journal = ok("node02", "cat /var/lib/selvedge/journal/00000002.done");
    assert!(journal.contains("awaiting-confirm"), "{journal}");
    assert_eq!(mode(), before);
    until("node02 answers over ib0 again", 60, || through_the_fabric("true").code == 0);
}
