//! Power cuts in the middle of an apply.

use crate::lab_support::{lab, ok};
use crate::{NODE, assert_same, prepared, sh, snapshot};

/// After so many announced changes: the subnet manager is enabled and nothing is live; it runs and the link has changed.
const MOMENTS: [usize; 2] = [9, 20];

pub(crate) fn power() {
    prepared(NODE);
    // A boot of its own: what is compared with is a boot too.
    let before = snapshot();
    for moment in MOMENTS {
        sh(&format!("(slowly selvedge apply /root/lab.toml </dev/null >/dev/null 2>&1 &) ; until_announced {moment}"));
        lab(&["crash", NODE]);
        lab(&["start", NODE]);
        ok(NODE, "systemctl is-system-running --wait");
        assert_same(&format!("cut after {moment} changes"), &before, &snapshot());
        let said = ok(NODE, "journalctl -b --no-pager -o cat -u selvedge-recover.service");
        assert!(said.contains("is undone"), "{said}");
        assert!(!said.contains("Failed"), "{said}");
        let started = ok(NODE, "journalctl -b --no-pager -o cat -t opensm-compute | head -n1");
        assert_eq!(started, "", "the subnet manager that was called off ran");
        // Not by unit: what process 1 says before journald runs comes by the kernel's log, without a unit's name.
        let times = ok(
            NODE,
            "journalctl -b --no-pager -o short-monotonic | \
             grep -E 'systemd\\[1\\]: .*(selvedge-recover|systemd-networkd)\\.service'",
        );
        eprintln!("{times}");
        let at = |line: &str| times.lines().position(|found| found.contains(line));
        let (undone, network) = (at("Starting selvedge-recover.service"), at("Starting systemd-networkd.service"));
        assert!(undone.is_some() && undone < network, "{times}");
    }
}
