//! Changes made by hand: drift names exactly them, and one apply repairs them.

use crate::lab_support::{json, lab, ok, selvedge, spec, until};
use crate::{Claim, UNIT, applied, golden, ib0_is, in_sync, lab_spec, objects, on};

pub(crate) const CLAIMS: &[Claim] = &[
    ("drift_mode", || by_hand("echo datagram > /sys/class/net/ib0/mode", &["link-mode ib0", "link-mtu ib0"])),
    ("drift_mtu", || by_hand("ip link set ib0 mtu 9000", &["link-mtu ib0"])),
    ("drift_address_removed", || by_hand("ip addr del 10.0.0.1/16 dev ib0", &["address ib0 10.0.0.1/16"])),
    ("drift_address_changed", address_changed),
    ("drift_file_edited", || {
        let file = "/etc/systemd/network/10-selvedge-ib0.network";
        by_hand(&format!("sed -i s/10.0.0.1/10.0.0.9/ {file}"), &[&format!("file {file}")]);
        assert!(ok("node01", &format!("cat {file}")).contains("10.0.0.1/16"));
    }),
    ("drift_file_removed", || {
        let file = "/etc/modules-load.d/selvedge.conf";
        by_hand(&format!("rm {file}"), &[&format!("file {file}")]);
    }),
    ("drift_file_mode_changed_without_a_restart", file_mode),
    ("drift_opensm_stopped", || {
        by_hand("systemctl stop selvedge-opensm-compute", &["unit selvedge-opensm-compute.service"])
    }),
    ("drift_opensm_disabled", || {
        let link = "file /etc/systemd/system/multi-user.target.wants/selvedge-opensm-compute.service";
        by_hand("systemctl disable selvedge-opensm-compute", &[link]);
        assert_eq!(ok("node01", "systemctl is-enabled selvedge-opensm-compute"), "enabled");
    }),
    ("drift_link_down", || by_hand("ip link set ib0 down", &["link-up ib0"])),
    ("drift_module_unloaded", module_unloaded),
    ("drift_module_options", module_options),
    ("drift_reads_well", reads_well),
    ("a_file_that_networkd_prefers_to_ours_is_named", preferred_file),
    ("a_manager_that_dies_at_once_is_no_success", dying_manager),
];

/// Our file is as it was and the address is there, and yet the next boot would not bring it.
fn preferred_file() {
    applied();
    let file = "/etc/systemd/network/05-mine.network";
    let decides = |wanted: &str| {
        until("networkd has chosen", 20, || {
            json("node01", "networkctl --json=short status ib0")["NetworkFile"] == wanted
        });
    };
    ok(
        "node01",
        &format!("printf '[Match]\\nName=ib0\\n[Network]\\nAddress=192.168.77.1/24\\n' >{file}; networkctl reload"),
    );
    decides(file);
    for command in ["drift", "plan", "apply"] {
        on(command, &lab_spec(), "node01").exits(1).says(&format!("ib0 is configured by {file}"));
    }
    selvedge(&["verify", &lab_spec(), "--only", "node"]).exits(3).says(&format!("ib0 is configured by {file}"));
    ok("node01", &format!("rm {file}; networkctl reload"));
    decides("/etc/systemd/network/10-selvedge-ib0.network");
    on("apply", &lab_spec(), "node01").exits(0);
    in_sync(&lab_spec(), "node01");
}

/// The start of a simple service succeeds when its program begins.
fn dying_manager() {
    applied();
    let folder = format!("/etc/systemd/system/{UNIT}.d");
    let drop_in = "printf '[Service]\\nExecStart=\\nExecStart=/bin/false\\n'";
    ok(
        "node01",
        &format!("mkdir {folder}; {drop_in} >{folder}/no.conf; systemctl daemon-reload; systemctl stop {UNIT}"),
    );
    on("apply", &lab_spec(), "node01").exits(1).says("does not stay up");
    ok("node01", &format!("rm -r {folder}; systemctl daemon-reload"));
    on("apply", &lab_spec(), "node01").exits(0);
    in_sync(&lab_spec(), "node01");
}

/// Drift names `found` and nothing else; one apply repairs it.
fn by_hand(change: &str, found: &[&str]) {
    applied();
    repaired(&lab_spec(), change, found);
    ib0_is("node01", "connected", 65520);
}

/// On the node itself and in one go: a login is what takes longest there.
fn repaired(spec: &str, change: &str, found: &[&str]) {
    lab(&["put", "node01", spec, "/root/spec.toml"]);
    let script = format!(
        "{change}
         selvedge drift /root/spec.toml --format json; echo \"exit $?\"
         selvedge apply /root/spec.toml >&2; echo \"exit $?\"
         selvedge apply /root/spec.toml; echo \"exit $?\"
         systemctl is-active selvedge-opensm-compute"
    );
    let said = ok("node01", &script);
    let (drift, rest) = said.split_once("\nexit 2\n").unwrap_or_else(|| panic!("drift did not end with 2: {said}"));
    assert_eq!(objects(&serde_json::from_str(drift).unwrap()), found);
    // Notes may follow the first line.
    assert!(rest.starts_with("exit 0\nnode01: in sync, nothing was changed\n"), "{said}");
    assert!(rest.ends_with("\nexit 0\nactive"), "{said}");
}

/// The address of ours comes back; a stranger's stays, since selvedge removes only what it made.
fn address_changed() {
    by_hand(
        "ip addr del 10.0.0.1/16 dev ib0; ip addr add 10.0.0.1/24 dev ib0; ip addr add 172.16.0.1/24 dev ib0",
        &["address ib0 10.0.0.1/16"],
    );
    assert!(ok("node01", "ip -o -4 addr show ib0").contains("172.16.0.1/24"));
    ok("node01", "ip addr del 172.16.0.1/24 dev ib0; ip addr del 10.0.0.1/24 dev ib0");
}

/// Other permissions of its file are no reason to take a subnet manager from its fabric.
fn file_mode() {
    applied();
    let pid = || ok("node01", "systemctl show -P MainPID selvedge-opensm-compute");
    let before = pid();
    by_hand("chmod 600 /etc/selvedge/opensm/compute.conf", &["file /etc/selvedge/opensm/compute.conf"]);
    assert_eq!(ok("node01", "stat -c %a /etc/selvedge/opensm/compute.conf"), "644");
    assert_eq!(pid(), before, "opensm was restarted for a chmod");
}

/// What hangs on the module is not known then, and nothing of it is called wrong.
fn module_unloaded() {
    applied();
    let guid = ok("node01", "cut -c37- /sys/class/net/ib0/address").replace(':', "");
    by_hand("modprobe -r ib_ipoib", &[&format!("interface 0x{guid}"), "module ib_ipoib"]);
}

fn module_options() {
    applied();
    let spec = spec("options", &[("[verify]", "[modules.ib_ipoib]\nsend_queue_size = 256\n\n[verify]")]);
    on("apply", &spec, "node01").exits(0);
    let file = "/etc/modprobe.d/selvedge.conf";
    let in_effect = || ok("node01", "modprobe -c | grep 'options ib_ipoib'");
    assert_eq!(in_effect(), "options ib_ipoib send_queue_size=256");
    repaired(&spec, &format!("sed -i s/256/512/ {file}"), &[&format!("file {file}")]);
    assert_eq!(in_effect(), "options ib_ipoib send_queue_size=256");
    // Without the option in the spec the file, which was not there before, goes.
    on("apply", &lab_spec(), "node01").exits(0);
    assert_eq!(ok("node01", &format!("test -e {file} || echo gone")), "gone");
    in_sync(&lab_spec(), "node01");
}

fn reads_well() {
    applied();
    ok(
        "node01",
        "echo datagram > /sys/class/net/ib0/mode; ip addr del 10.0.0.1/16 dev ib0; ip link set ib0 down
         sed -i s/10.0.0.1/10.0.0.9/ /etc/systemd/network/10-selvedge-ib0.network
         rm /etc/modules-load.d/selvedge.conf; chmod 600 /etc/selvedge/opensm/compute.conf
         systemctl disable --now selvedge-opensm-compute",
    );
    let drift = on("drift", &lab_spec(), "node01").exits(2);
    // What a datagram carries depends on whether the multicast group had been joined: 2044 by then, 4092 before.
    golden(
        "drift",
        &drift.stdout.replace(
            "ib0 MTU                                 is 4092,",
            "ib0 MTU                                 is 2044,",
        ),
    );
    on("apply", &lab_spec(), "node01").exits(0);
    in_sync(&lab_spec(), "node01");
}
