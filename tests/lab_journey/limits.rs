//! Locked memory of services and the neighbour tables: in effect at once where that can be, and after a reboot.

use crate::lab_support::{lab, ok, spec};
use crate::{Claim, Stage, applied, in_sync, lab_spec, on, stage, until_active};

pub(crate) const CLAIMS: &[Claim] = &[("limits_and_settings_hold_over_a_reboot", limits)];

/// 1000 neighbours or so; the group of node01 and node02 starts jobs by ssh, and by a Slurm that is not there.
const MANY: &str = "
[[nodes]]
hosts = \"far[1001-1999]\"

[[nodes.ports]]
device = \"mlx5_0\"
network = \"compute\"

[verify]";

fn limits() {
    applied();
    let memlock = "config = \"networkd\"\nmemlock = [\"sshd\", \"slurmd\"]";
    let spec = spec("limits", &[("config = \"networkd\"", memlock), ("\n[verify]", MANY)]);
    let thresholds = || ok("node02", "sysctl -n net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh3");
    let before = thresholds();
    let main = "/proc/$(systemctl show -P MainPID ssh.service)/limits";
    let locked = || ok("node02", &format!("sed -n 's/^Max locked memory *//p' {main} | cut -d' ' -f1"));
    // What runs keeps its limit: it may be what this very connection comes by.
    on("apply", &spec, "node02").exits(0).says("sshd.service").says("slurmd.service");
    assert_ne!(locked(), "unlimited");
    assert_eq!(thresholds(), "1024\n4096");
    ok("node02", "sysctl -w net.ipv4.neigh.default.gc_thresh1=128");
    on("drift", &spec, "node02").exits(2).says("net/ipv4/neigh/default/gc_thresh1");
    on("apply", &spec, "node02").exits(0);
    lab(&["reboot", "node02"]);
    until_active("node02");
    in_sync(&spec, "node02");
    assert_eq!(thresholds(), "1024\n4096");
    assert_eq!(ok("node02", "systemctl show -P LimitMEMLOCK ssh.service"), "infinity");
    assert_eq!(locked(), "unlimited");
    // What counts is what a job that is started by ssh has: PAM does not take it from sshd.
    assert_eq!(ok("node02", "ulimit -l"), "unlimited");
    on("apply", &lab_spec(), "node02").exits(0);
    assert_eq!(thresholds(), before);
    assert_eq!(
        ok(
            "node02",
            "ls -d /etc/systemd/system/s*d.service.d /etc/sysctl.d/90-selvedge.conf /etc/security/limits.d/*selvedge* 2>/dev/null || true"
        ),
        ""
    );
    in_sync(&lab_spec(), "node02");
    stage(Stage::Anything);
}
