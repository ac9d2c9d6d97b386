//! An HCA that refuses connected mode, as mlx5 with enhanced IPoIB does.

use crate::lab_support::{fresh, ok, spec, up};
use crate::{Claim, Stage, ib0_is, in_sync, lab_spec, on, stage};

pub(crate) const CLAIMS: &[Claim] = &[
    ("refused_mode_changes_nothing", refused_at_once),
    ("refused_mode_is_rolled_back_with_the_module", refused_later),
    ("auto_takes_datagram_and_says_so", auto),
];

/// The lab's HCA once more with `enhanced=1`, and ib_ipoib loaded as udev does it for a Mellanox card.
fn enhanced(loaded: bool) {
    stage(Stage::Anything);
    up(&["node01"]);
    fresh(&["node01"]);
    ok(
        "node01",
        "modprobe -r ib_ipoib; rmmod simhca; udevadm settle
         modprobe simhca enhanced=1; udevadm settle; test -e /sys/class/infiniband/mlx5_0",
    );
    if loaded {
        ok("node01", "modprobe ib_ipoib; udevadm settle; test $(cat /sys/class/net/ib0/mode) = datagram");
    }
}

/// The lock, which an apply holds while it looks, is no change.
const EVERYTHING: &str =
    "find /etc /var/lib/selvedge /usr/local -newer /root/mark ! -type d ! -name lock; lsmod | cut -d' ' -f1 | sort";

fn refused_at_once() {
    enhanced(true);
    ok("node01", "touch /root/mark; sleep 0.1");
    let before = ok("node01", EVERYTHING);
    let refused = on("apply", &lab_spec(), "node01").exits(1);
    assert_eq!(ok("node01", EVERYTHING), before);
    assert_eq!(ok("node01", "ls /var/lib/selvedge/journal 2>/dev/null | wc -l"), "0");
    let said =
        refused.says("[networks.compute] mode = \"connected\"").says("mlx5_0 port 1 (ib0) cannot do connected mode");
    said.says("help: ").says("mode = \"auto\"").says("datagram");
}

fn refused_later() {
    enhanced(false);
    ok("node01", "touch /root/mark; sleep 0.1");
    let modules = || ok("node01", "lsmod | cut -d' ' -f1 | sort");
    let before = modules();
    on("apply", &lab_spec(), "node01").exits(1).says("cannot do connected mode").says("rolled back");
    assert_eq!(modules(), before);
    let left = "find /etc -newer /root/mark ! -type d; find /etc/selvedge -mindepth 1 2>/dev/null || true";
    assert_eq!(ok("node01", left), "");
    assert_eq!(ok("node01", "ls /sys/class/net; ls /sys/class/infiniband"), "lo\nmgmt0\nsimwire\nmlx5_0");
}

fn auto() {
    enhanced(true);
    let spec = spec("auto", &[("mode = \"connected\"", "mode = \"auto\"")]);
    let applied = on("apply", &spec, "node01").exits(0);
    applied.says("note: [networks.compute] mode = \"auto\": mlx5_0 port 1 takes datagram mode");
    ib0_is("node01", "datagram", 2044);
    in_sync(&spec, "node01");
}
