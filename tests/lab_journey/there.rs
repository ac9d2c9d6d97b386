//! From an unconfigured pair to the wanted state, and there after a reboot.

use std::fs;

use serde_json::Value;

use crate::lab_support::{here, json, lab, ok, selvedge, spec};
use crate::{
    Claim, NODES, Stage, UNIT, applied, golden, ib0_is, in_sync, lab_spec, on, stage, unconfigured, until_active,
};

pub(crate) const CLAIMS: &[Claim] = &[
    ("unconfigured_plan_reads_well", unconfigured_plan),
    ("apply_reaches_the_wanted_state", apply_reaches),
    ("second_apply_changes_nothing", second_apply),
    ("a_no_op_costs_little", no_op_cost),
    ("sm_status_agrees_with_sminfo", sm_status),
    ("verify_proves_rdma_and_the_wire_agrees", verify_on_the_wire),
];

pub(crate) const REBOOTS: &[Claim] = &[
    ("networkd_state_survives_a_reboot", networkd_reboot),
    ("netplan_state_survives_a_reboot", netplan_reboot),
    ("network_manager_state_survives_a_reboot", network_manager_reboot),
];

/// Debian's NetworkManager, which the lab's image has masked, for all but the lab's own links.
pub(crate) const NETWORK_MANAGER: &str = "
    rm /etc/systemd/system/NetworkManager.service
    systemctl daemon-reload
    printf '[keyfile]\\nunmanaged-devices=interface-name:mgmt0;interface-name:simwire\\n' \
        >/etc/NetworkManager/conf.d/lab.conf
    systemctl enable --now NetworkManager";

fn unconfigured_plan() {
    unconfigured();
    assert_eq!(ok("node01", "ls /sys/class/net"), "lo\nmgmt0\nsimwire", "the node is not unconfigured");
    let plan = on("plan", &lab_spec(), "node01").exits(2);
    golden("plan-unconfigured", &plan.stdout);
    assert_eq!(ok("node01", "ls /var/lib/selvedge 2>/dev/null | wc -l"), "0", "a plan left something behind");
}

fn apply_reaches() {
    applied();
    for node in NODES {
        ib0_is(node, "connected", 65520);
        assert_eq!(ok(node, &format!("systemctl is-active {UNIT}; systemctl is-enabled {UNIT}")), "active\nenabled");
        let files = "stat -c '%a %n' /etc/modules-load.d/selvedge.conf /etc/systemd/network/10-selvedge-ib0.network \
                     /etc/udev/rules.d/70-selvedge-ipoib.rules /etc/selvedge/opensm/compute.conf";
        assert!(ok(node, files).lines().all(|line| line.starts_with("644 ")));
        let network = ok(node, "cat /etc/systemd/network/10-selvedge-ib0.network");
        let number = node.trim_start_matches("node0");
        assert!(network.contains(&format!("Address=10.0.0.{number}/16")), "{network}");
        assert!(network.contains("RequiredForOnline=no"), "{network}");
        // networkd itself holds the link by our file.
        let state = json(node, "networkctl --json=short status ib0");
        assert_eq!(state["NetworkFile"], "/etc/systemd/network/10-selvedge-ib0.network", "{state}");
        in_sync(&lab_spec(), node);
    }
}

fn second_apply() {
    applied();
    for node in NODES {
        let before = ok(node, "ls /var/lib/selvedge/journal; stat -c %Y /etc/systemd/network/*selvedge*");
        on("apply", &lab_spec(), node).exits(0).says(&format!("{node}: in sync, nothing was changed"));
        on("plan", &lab_spec(), node).exits(0);
        assert_eq!(ok(node, "ls /var/lib/selvedge/journal; stat -c %Y /etc/systemd/network/*selvedge*"), before);
    }
}

/// Held: no child, CPU time within 3 times `ip -d -j addr`, under 20 MB, a bounded number of system calls.
fn no_op_cost() {
    applied();
    lab(&["put", "node01", &here("examples/lab.toml"), "/root/lab.toml"]);
    lab(&["put", "node01", &here("tests/lab_journey/cost.py"), "/root/cost.py"]);
    let cost = json("node01", "python3 /root/cost.py /root/lab.toml");
    eprintln!("      {cost}");
    for verb in ["drift", "apply"] {
        let of = |what: &str| cost[verb][what].as_f64().unwrap();
        assert!(of("children") == 0.0 && of("calls") < 700.0, "{cost}");
        // A debug build is no measure of the rest.
        let is_release = std::env::var_os("SELVEDGE_BIN").is_some();
        assert!(!is_release || of("bytes") < 20e6 && of("ratio") < 3.0, "{cost}");
    }
}

fn sm_status() {
    applied();
    lab(&["put", "node01", &here("examples/lab.toml"), "/root/lab.toml"]);
    let status = json("node01", "selvedge sm status /root/lab.toml --format json")[0].clone();
    assert_eq!(status["verdict"], "managed", "{status}");
    for (place, state) in [(0, "master"), (1, "standby")] {
        let row = &status["managers"][place];
        assert_eq!(row["state"], state, "{status}");
        let said = ok("node01", &format!("sminfo {}", row["lid"]));
        assert!(said.contains(&format!("SMINFO_{}", state.to_uppercase())), "{said}");
        assert!(said.contains(&format!("priority {} ", row["priority"])), "{said}");
        assert!(said.contains(row["port_guid"].as_str().unwrap()), "{said}");
    }
}

fn verify_on_the_wire() {
    applied();
    NODES.into_iter().for_each(until_active);
    let capture = format!("{}/verify.pcap", env!("CARGO_TARGET_TMPDIR"));
    let _ = fs::remove_file(&capture);
    let tx = |node: &str| json(node, "ip -s -j link show ib0")[0]["stats64"]["tx"]["bytes"].as_u64().unwrap();
    let sent = |node: &str| {
        let said = ok(node, "perfquery -x");
        let line = said.lines().find(|line| line.starts_with("PortXmitData:")).unwrap();
        line.trim_start_matches("PortXmitData:").trim_matches('.').parse::<u64>().unwrap() * 4
    };
    let before = NODES.map(|node| (tx(node), sent(node)));
    lab(&["capture", "node01", &capture]);
    let verified = selvedge(&["verify", &lab_spec(), "--format", "json"]);
    lab(&["capture", "node01", "--stop"]);
    let report = verified.exits(0).json();
    assert!(report["verdict"] == "pass" || report["verdict"] == "warning", "{report}");
    let mut all = 0;
    for (pair, (node, (tx_before, sent_before))) in NODES.iter().zip(before).enumerate() {
        let pair = &report["pairs"][pair];
        assert_eq!(pair["from"], *node);
        let names = checks(pair).filter(|check| check["verdict"] == "pass").map(|check| &check["check"]);
        assert_eq!(names.collect::<Vec<_>>(), ["ping", "write-bw", "read-lat", "contents", "rdma"], "{pair}");
        let measured = &pair["measured"][0]["write-bw"];
        let bytes = measured["message-bytes"].as_u64().unwrap() * measured["messages"].as_u64().unwrap();
        let (by_port, by_ib0) = (sent(node) - sent_before, tx(node) - tx_before);
        assert!(by_port >= bytes, "{node} measured {bytes} bytes, and perfquery saw {by_port}");
        // The pings of the full MTU did.
        assert!(by_ib0 < bytes / 20, "{node} measured {bytes} bytes, and {by_ib0} of them went through ib0");
        all += bytes;
    }
    let (writes, datagrams) = on_the_wire(&fs::read(&capture).unwrap());
    assert!(writes >= all, "measured {all} bytes, and {writes} were on the wire as RDMA WRITE");
    assert!(datagrams < all / 100, "{datagrams} bytes of datagrams beside {all} of RDMA WRITE");
}

fn checks(part: &Value) -> impl Iterator<Item = &Value> {
    part["checks"].as_array().unwrap().iter()
}

/// Payload bytes of RDMA WRITE and of datagrams in a capture: simhca/wire.h has the header.
fn on_the_wire(pcap: &[u8]) -> (u64, u64) {
    const WRITE: u8 = 4;
    const DATAGRAM: u8 = 2;
    let (mut writes, mut datagrams) = (0, 0);
    let mut rest = &pcap[24..];
    while rest.len() > 16 {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let Some(frame) = rest.get(16..16 + length) else { break };
        if frame[12..14] == [0x88, 0xb5] {
            let payload = u64::from(u32::from_be_bytes(frame[14 + 28..14 + 32].try_into().unwrap()));
            match frame[14 + 3] {
                WRITE => writes += payload,
                DATAGRAM => datagrams += payload,
                _ => {}
            }
        }
        rest = &rest[16 + length..];
    }
    (writes, datagrams)
}

fn networkd_reboot() {
    applied();
    survives(&lab_spec());
}

fn netplan_reboot() {
    unconfigured();
    stage(Stage::Anything);
    let spec = spec("netplan", &[("config = \"networkd\"", "config = \"netplan\"")]);
    crate::apply_both(&spec);
    for node in NODES {
        assert_eq!(ok(node, "stat -c %a /etc/netplan/60-selvedge.yaml"), "600");
        assert!(ok(node, "netplan get ethernets.ib0.addresses").contains("/16"));
        on("apply", &spec, node).exits(0).says("nothing was changed");
    }
    survives(&spec);
}

fn network_manager_reboot() {
    unconfigured();
    stage(Stage::Anything);
    for node in NODES {
        ok(node, NETWORK_MANAGER);
    }
    let kept = ("config = \"networkd\"", "config = \"networkmanager\"");
    let smaller = spec("networkmanager-32000", &[kept, ("mtu = \"max\"", "mtu = 32000")]);
    let spec = spec("networkmanager", &[kept]);
    crate::apply_both(&spec);
    let shown = |field: &str| ok("node01", &format!("nmcli --get-values {field} device show ib0"));
    assert_eq!(shown("GENERAL.CONNECTION"), "selvedge ib0");
    assert_eq!(shown("IP4.ADDRESS"), "10.0.0.1/16");
    assert_eq!(ok("node01", "stat -c %a /etc/NetworkManager/system-connections/selvedge-ib0.nmconnection"), "600");
    on("apply", &spec, "node01").exits(0).says("nothing was changed");
    // What NetworkManager has in effect follows the file, so that it does not go back to what it once read.
    on("apply", &smaller, "node01").exits(0);
    ok("node01", "nmcli device reapply ib0");
    in_sync(&smaller, "node01");
    selvedge(&["rollback", "--node", "node01"]).exits(0);
    in_sync(&spec, "node01");
    // An installer's profile for the same link is there first, and waits.
    let file = "/etc/NetworkManager/system-connections/installer.nmconnection";
    let profile = "[connection]\\nid=installer\\ntype=infiniband\\ninterface-name=ib0\\n[infiniband]\\ntransport-mode=datagram\\n";
    ok("node01", &format!("printf '{profile}' >{file}; chmod 600 {file}; nmcli connection reload"));
    survives(&spec);
    assert_eq!(shown("GENERAL.CONNECTION"), "selvedge ib0");
}

fn survives(spec: &str) {
    lab(&["reboot", "node01", "node02"]);
    for node in NODES {
        until_active(node);
        ib0_is(node, "connected", 65520);
        in_sync(spec, node);
        let failed = ok(node, "systemctl --failed --plain --no-legend");
        assert!(!failed.contains("selvedge") && !failed.contains("networkd") && !failed.contains("opensm"), "{failed}");
    }
    let report = selvedge(&["verify", spec, "--format", "json"]).exits(0).json();
    assert!(report["verdict"] == "pass" || report["verdict"] == "warning", "{report}");
}
