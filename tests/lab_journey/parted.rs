//! Partitions: children of a port by each config system, full and limited members, over a reboot and away again.

use serde_json::Value;

use crate::lab_support::{json, lab, ok, selvedge, spec, ssh, until};
use crate::there::NETWORK_MANAGER;
use crate::{Claim, NODES, Stage, UNIT, apply_both, in_sync, on, stage, unconfigured, until_active};

pub(crate) const CLAIMS: &[Claim] = &[
    ("partitions_carry_what_their_members_may_say", members),
    ("children_made_otherwise_are_found_and_repaired", repaired),
    ("a_child_that_leaves_the_spec_leaves_the_node", child_leaves),
    ("netplan_keeps_children", || kept_by("netplan", "")),
    ("network_manager_keeps_children", || kept_by("networkmanager", NETWORK_MANAGER)),
];

/// The limited key of one partition, the full key of the other: both are one spelling or the other of the same.
const PARTITIONS: &str = "
[fabrics.compute.partitions.jobs]
pkey = 0x0001

[fabrics.compute.partitions.storage]
pkey = 0x8002
full = \"node01\"
limited = \"all\"

[networks.compute6]
fabric = \"compute\"
mode = \"connected\"
cidr = \"fd00:1::/64\"

[networks.jobs]
fabric = \"compute\"
partition = \"jobs\"
mode = \"datagram\"
cidr = \"10.1.0.0/16\"

[networks.storage]
fabric = \"compute\"
partition = \"storage\"
mode = \"connected\"
cidr = \"10.2.0.0/16\"

[hosts]
node01.guids.ib0 = \"GUID\"

[networks.compute]";

const ALL: &str = "network = [\"compute\", \"compute6\", \"jobs\", \"storage\"]";

fn parted(name: &str, config: &str, networks: &str) -> String {
    let guid = ok("node01", "cat /sys/class/infiniband/mlx5_0/ports/1/gids/0").replace(':', "").split_off(16);
    let partitions = PARTITIONS.replace("GUID", &format!("0x{guid}"));
    let config = format!("config = \"{config}\"");
    spec(
        name,
        &[
            ("\n[networks.compute]", &partitions),
            ("config = \"networkd\"", &config),
            ("network = \"compute\"", networks),
        ],
    )
}

/// The kernel's word for a child: its parent, partition and mode, its MTU, and whether it has carrier.
fn child(node: &str, name: &str) -> (Value, Value, Value, u64, bool) {
    let link = &json(node, &format!("ip -d -j link show {name}"))[0];
    let data = &link["linkinfo"]["info_data"];
    let carrier = link["flags"].as_array().unwrap().contains(&Value::from("LOWER_UP"));
    (link["link"].clone(), data["key"].clone(), data["mode"].clone(), link["mtu"].as_u64().unwrap(), carrier)
}

fn children_are_there(node: &str) {
    let wanted = [("ib0.8001", "0x8001", "datagram", 2044), ("ib0.8002", "0x8002", "connected", 65520)];
    for (name, pkey, mode, mtu) in wanted {
        until(&format!("{name} of {node} has carrier"), 60, || child(node, name).4);
        assert_eq!(child(node, name), ("ib0".into(), pkey.into(), mode.into(), mtu, true));
    }
}

fn partitioned() -> String {
    if stage(Stage::Parted) != Stage::Parted {
        unconfigured();
        stage(Stage::Anything);
        apply_both(&parted("parted", "networkd", ALL));
        stage(Stage::Parted);
    }
    parted("parted", "networkd", ALL)
}

fn members() {
    let spec = partitioned();
    NODES.into_iter().for_each(children_are_there);
    // What the subnet manager gave the ports, by infiniband-diags: a member of all, and one that is limited.
    let keys = |node: &str| {
        let said = ok(node, "smpquery -D pkeys 0 | grep -oE '0x[0-9a-f]{4}' | grep -v 0x0000 | sort");
        said.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(keys("node01"), ["0x8001", "0x8002", "0xffff"]);
    assert_eq!(keys("node02"), ["0x0002", "0x8001", "0xffff"]);
    // Pings fill the MTU of each network, the child's included.
    let report = selvedge(&["verify", &spec, "--format", "json"]).exits(0).json();
    let pairs = report["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 8, "{report}");
    let pinged = |pair: &&Value| pair["checks"][0]["check"] == "ping" && pair["checks"][0]["verdict"] == "pass";
    assert_eq!(pairs.iter().filter(pinged).count(), 8, "{report}");
    not_let_in(&spec);
    lab(&["reboot", "node01", "node02"]);
    for node in NODES {
        until_active(node);
        in_sync(&spec, node);
        children_are_there(node);
    }
}

/// All is as the spec says on the node, and the subnet manager has another opinion.
fn not_let_in(spec: &str) {
    let file = "/etc/selvedge/opensm/compute.partitions.conf";
    ok("node01", &format!("cp {file} /root/partitions; sed -i /^jobs=/d {file}; systemctl reload {UNIT}"));
    until("node02 is out of the partition", 60, || {
        !ok("node02", "cat /sys/class/infiniband/mlx5_0/ports/1/pkeys/*").contains("0x8001")
    });
    let report = selvedge(&["verify", spec, "--format", "json"]).exits(3).json();
    let failed = report["nodes"][1]["checks"].as_array().unwrap().iter().find(|check| check["verdict"] == "fail");
    let failed = failed.unwrap();
    assert_eq!((&failed["check"], &failed["object"]), (&"partition".into(), &"ib0.8001".into()), "{report}");
    let jobs = report["pairs"].as_array().unwrap().iter().find(|pair| pair["network"] == "jobs").unwrap();
    assert!(jobs["checks"][0]["next"].as_str().unwrap().starts_with("partition: on node0"), "{jobs}");
    ok("node01", &format!("mv /root/partitions {file}; systemctl reload {UNIT}"));
    NODES.into_iter().for_each(children_are_there);
}

fn repaired() {
    let spec = partitioned();
    let found = |change: &str, objects: &[&str]| {
        ok("node01", change);
        assert_eq!(
            crate::objects(&selvedge(&["drift", &spec, "--node", "node01", "--format", "json"]).exits(2).json()),
            objects
        );
        on("apply", &spec, "node01").exits(0);
        in_sync(&spec, "node01");
    };
    found(
        "ip link del ib0.8001",
        &[
            "address ib0.8001 10.1.0.1/16",
            "child ib0.8001",
            "link-mode ib0.8001",
            "link-mtu ib0.8001",
            "link-up ib0.8001",
        ],
    );
    found("ip link set ib0.8002 mtu 2000", &["link-mtu ib0.8002"]);
    found("ip link set ib0.8002 type ipoib mode datagram", &["link-mode ib0.8002", "link-mtu ib0.8002"]);
    found("ip link set ib0.8001 down", &["link-up ib0.8001"]);
    // One by that name that is another: nothing is done to it, and all that differs is said.
    ok("node01", "ip link del ib0.8001; ip link add link ib0 name ib0.8001 type ipoib pkey 0x8003");
    on("apply", &spec, "node01").exits(1).says("another interface of this name, partition 0x8003 on ib0");
    assert_eq!(child("node01", "ib0.8001").1, "0x8003");
    ok("node01", "ip link del ib0.8001");
    on("apply", &spec, "node01").exits(0);
    in_sync(&spec, "node01");
}

fn child_leaves() {
    let spec = partitioned();
    let less = parted("less", "networkd", "network = [\"compute\", \"jobs\"]");
    on("apply", &less, "node02").exits(0);
    assert_ne!(ssh("node02", "ip link show ib0.8002").code, 0);
    assert_eq!(ok("node02", "ls /etc/systemd/network | grep -c ib0.8002 || true"), "0");
    assert_eq!(ok("node02", "ip -6 addr show ib0 scope global"), "");
    in_sync(&less, "node02");
    selvedge(&["rollback", "--node", "node02"]).exits(0);
    in_sync(&spec, "node02");
    children_are_there("node02");
    // All of them, and no trace.
    let none = parted("none", "networkd", "network = \"compute\"");
    on("apply", &none, "node02").exits(0);
    assert_eq!(ok("node02", "ls /sys/class/net | grep -c '^ib0\\.' || true"), "0");
    assert_eq!(ok("node02", "grep -rlE 'ib0[.]800|IPoIB' /etc/systemd/network || true"), "");
    in_sync(&none, "node02");
    stage(Stage::Anything);
}

fn kept_by(config: &str, before: &str) {
    unconfigured();
    stage(Stage::Anything);
    for node in NODES {
        ok(node, before);
    }
    let spec = parted(config, config, ALL);
    apply_both(&spec);
    NODES.into_iter().for_each(children_are_there);
    lab(&["reboot", "node01"]);
    until_active("node01");
    in_sync(&spec, "node01");
    children_are_there("node01");
    // It goes, and its keeper does not bring it back.
    let less = parted("kept-less", config, "network = [\"compute\", \"jobs\"]");
    on("apply", &less, "node01").exits(0);
    lab(&["reboot", "node01"]);
    until_active("node01");
    in_sync(&less, "node01");
    assert_ne!(ssh("node01", "ip link show ib0.8002").code, 0);
}
