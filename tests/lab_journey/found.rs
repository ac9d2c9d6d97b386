//! What verify says of a fabric that is not right: the object, and the next step.

use serde_json::Value;

use crate::lab_support::{Output, lab, ok, until};
use crate::{Claim, NODES, applied, lab_spec, selvedge, until_active};

pub(crate) const CLAIMS: &[Claim] = &[
    ("verify_finds_a_pulled_cable", cable),
    ("verify_finds_a_narrow_link", || rate("width", "1", "4", "50 Gb/sec (1X HDR)", "lanes are missing")),
    ("verify_finds_a_slow_link", || rate("speed", "FDR", "HDR", "56 Gb/sec (4X FDR)", "slower than the spec's speed")),
    ("verify_finds_a_fabric_without_manager", no_manager),
    ("verify_finds_a_manager_that_hangs", hung_manager),
    ("verify_finds_a_firewall", firewall),
    ("verify_finds_another_mtu", other_mtu),
    ("verify_finds_a_deaf_port", deaf_port),
    ("verify_finds_a_dead_node", dead_node),
];

fn verify(only: &str) -> Output {
    selvedge(&["verify", &lab_spec(), "--only", only, "--format", "json"])
}

/// The failed checks of a report, in words: where, which, object, seen, next.
fn failed(report: &Value) -> Vec<String> {
    let parts = ["nodes", "fabrics", "pairs"].into_iter().flat_map(|part| report[part].as_array().unwrap());
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_part = |part: &Value| {
        let place = ["node", "fabric", "from"].map(|key| word(&part[key])).concat();
        let failed = part["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == "fail");
        let words = |check: &Value| ["check", "object", "seen", "next"].map(|key| word(&check[key])).join(" | ");
        failed.map(|check| format!("{place}: {}", words(check))).collect::<Vec<_>>()
    };
    parts.flat_map(of_part).collect()
}

/// Each of `wanted` is said by a failed check of its own; and no more checks fail than that.
#[track_caller]
fn finds(output: Output, wanted: &[&[&str]]) {
    let failed = failed(&output.exits(3).json());
    assert_eq!(failed.len(), wanted.len(), "{failed:#?}");
    for words in wanted {
        assert!(failed.iter().any(|said| words.iter().all(|word| said.contains(word))), "{words:?} not in {failed:#?}");
    }
}

fn cable() {
    applied();
    NODES.into_iter().for_each(until_active);
    lab(&["wire", "pull", "node02"]);
    // At once: the port is still active when the nodes are looked at.
    let found = verify("node,ping,perf");
    lab(&["wire", "plug", "node02"]);
    let leads = "cable: on node02 mlx5_0 port 1 is";
    finds(
        found,
        &[
            &["node02: physical-state", "mlx5_0 port 1", "Polling", "cable and the switch port"],
            &["node02: port-state", "mlx5_0 port 1", "DOWN"],
            &["node01: ping", leads],
            &["node02: ping", leads],
            &["node01: rdma", leads],
            &["node02: rdma", leads],
        ],
    );
    until_active("node02");
}

fn rate(parameter: &str, worse: &str, best: &str, seen: &str, next: &str) {
    applied();
    let set = |value: &str| ok("node01", &format!("echo {value} > /sys/module/simhca/parameters/{parameter}"));
    set(worse);
    until_active("node01");
    let found = verify("node");
    set(best);
    finds(found, &[&["node01: rate", "mlx5_0 port 1", seen, next]]);
    until_active("node01");
}

/// The ports stay active, which is what makes it easy to miss.
fn no_manager() {
    applied();
    NODES.into_iter().for_each(until_active);
    for node in NODES {
        ok(node, "systemctl stop selvedge-opensm-compute");
    }
    let found = verify("node,sm");
    let alone = verify("sm");
    for node in NODES {
        ok(node, "systemctl start selvedge-opensm-compute");
    }
    let unit = "selvedge-opensm-compute.service | stopped";
    finds(found, &[&["node01: unit", unit], &["node02: unit", unit], &["compute: subnet-managers", "master"]]);
    finds(alone, &[&["compute: subnet-managers", "master"]]);
    settled();
}

fn hung_manager() {
    applied();
    settled();
    ok("node01", "systemctl kill -s STOP selvedge-opensm-compute");
    let found = verify("sm");
    ok("node01", "systemctl kill -s CONT selvedge-opensm-compute");
    // The standby takes over while we look, or has not yet: in any case node01 is named.
    let said = found.says("node01").says("subnet-managers");
    assert!(!said.json().to_string().contains("\"verdict\":\"pass\""), "{}", said.stdout);
    settled();
}

/// Until the primary is master again and the other one stands by.
fn settled() {
    until("the managers settle", 60, || verify("sm").json()["verdict"] == "pass");
}

fn firewall() {
    applied();
    NODES.into_iter().for_each(until_active);
    ok(
        "node02",
        "nft add table ip t; nft 'add chain ip t i { type filter hook input priority 0; }'
         nft add rule ip t i iifname ib0 ip protocol icmp drop",
    );
    let found = verify("node,ping");
    ok("node02", "nft delete table ip t");
    let leads = ["firewall: ", "node02", "drops ICMP on ib0"];
    finds(found, &[&[&["node01: ping"], &leads[..]].concat(), &[&["node02: ping"], &leads[..]].concat()]);
}

fn other_mtu() {
    applied();
    ok("node02", "ip link set ib0 mtu 2044");
    let found = verify("node,ping");
    ok("node02", "ip link set ib0 mtu 65520");
    let failed = failed(&found.exits(3).json());
    assert!(failed.iter().any(|said| said.starts_with("node02: mtu | ib0 MTU | 2044")), "{failed:#?}");
    let leads = "interface: on node02 ib0 MTU is 2044, not 65520";
    assert!(failed.iter().all(|said| said.contains("ib0 MTU")), "{failed:#?}");
    assert!(failed.len() == 1 || failed.iter().any(|said| said.contains(leads)), "{failed:#?}");
}

/// Its management agent does not answer, so not even its name is known: where it hangs is said.
fn deaf_port() {
    applied();
    settled();
    ok("node02", "echo 1 > /sys/module/simhca/parameters/mad_drop");
    let found = verify("sm");
    ok("node02", "echo 0 > /sys/module/simhca/parameters/mad_drop");
    // By way of the switch, whose port 2 is node02's.
    found.exits(0).says("does not answer, at the directed routes 0,1,2").says("\"warning\"");
    settled();
}

fn dead_node() {
    applied();
    lab(&["crash", "node02"]);
    let found = selvedge(&["verify", &lab_spec()]);
    lab(&["start", "node02"]);
    found.exits(1).says("NOT verified").says("node02: unreachable").says("look whether");
    until_active("node02");
    settled();
}
