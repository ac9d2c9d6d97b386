//! Verdicts on what was measured between two nodes.

use std::time::Duration;

use super::model::{Check, CheckedPort, NodeChecks, PingResult, Verdict};
use crate::perf::model::{Measured, Outcome};
use crate::perf::proof::{Direction, prove};
use crate::perf::stats::Latency;
use crate::perf::units::Bandwidth;
use crate::rdma::Speed;
use crate::spec::MinBandwidth;

/// The least bandwidth that passes, GB/s. A percentage is of the spec's speed, not of what the link came up with.
#[must_use]
pub fn floor_gb_per_s(threshold: MinBandwidth, speed: Speed) -> f64 {
    match threshold {
        MinBandwidth::Percent(percent) => speed.data_gbps() / 8.0 * percent / 100.0,
        MinBandwidth::BytesPerSecond(bytes) => bytes / 1e9,
    }
}

/// RDMA WRITE bandwidth against its threshold.
#[must_use]
pub fn bandwidth(measured: &Bandwidth, threshold: MinBandwidth, speed: Speed, object: &str) -> Check {
    let floor = floor_gb_per_s(threshold, speed);
    let expected = match threshold {
        MinBandwidth::Percent(percent) => format!("at least {} ({percent}% of {speed})", gb_per_s(floor)),
        MinBandwidth::BytesPerSecond(_) => format!("at least {}", gb_per_s(floor)),
    };
    let seen = format!("{} ({:.2} MiB/s as perftest counts)", gb_per_s(measured.gb_per_s()), measured.mib_per_s());
    let next =
        "look at rate, width, error counters and PCIe link of both ends; if both are as they should be, swap the cable";
    Check::new("write-bw", object, measured.gb_per_s() >= floor, [expected, seen, next.into()])
}

/// RDMA READ latency against its threshold.
#[must_use]
pub fn latency(measured: &Latency, threshold: Duration, object: &str) -> Check {
    let most_us = threshold.as_secs_f64() * 1e6;
    let expected = format!("typical at most {most_us:.2} us");
    let seen = format!("typical {:.2} us, 99 % {:.2} us", measured.typical_us, measured.p99_us);
    let next =
        "look at CPU frequency governor and idle states, at NUMA placement of the HCA, and at other traffic on the way";
    Check::new("read-lat", object, measured.typical_us <= most_us, [expected, seen, next.into()])
}

/// Whether a bandwidth run was RDMA: the port's counters moved by its bytes and the network interfaces' did not.
#[must_use]
pub fn proof(outcome: &Outcome, mtu: u32, object: &str) -> Option<Check> {
    let Measured::WriteBw(bandwidth) = outcome.measured else { return None };
    let proof = prove(&outcome.before, &outcome.after, Direction::Sent, bandwidth.bytes(), mtu);
    let expected = "the port's counters moved by the bytes sent, its network interfaces' did not".to_owned();
    let next =
        "see the counters under /sys/class/infiniband/DEVICE/ports/PORT/counters while measuring again".to_owned();
    Some(Check::new("rdma", object, proof.holds(), [expected, proof.to_string(), next]))
}

fn gb_per_s(value: f64) -> String {
    if value >= 0.1 { format!("{value:.2} GB/s") } else { format!("{:.3} MB/s", value * 1000.0) }
}

/// A full-MTU ping. When it fails: cable, interface, subnet manager, firewall, in that order.
#[must_use]
pub fn ping(
    result: &PingResult,
    from: (&NodeChecks, &CheckedPort),
    to: (&NodeChecks, &CheckedPort),
    object: &str,
) -> Check {
    let expected = format!("{} bytes, unfragmented, answered", from.1.mtu);
    let next = if result.answered { String::new() } else { why_no_answer(result, from, to) };
    Check::new("ping", object, result.answered, [expected, result.said.clone(), next])
}

/// What each check that fails on a node is about.
type Causes = [(&'static str, &'static [&'static str])];

/// A cable that is out, or a fabric that nobody manages, stops RDMA.
const FABRIC: &Causes = &[("cable", &["physical-state"]), ("subnet manager", &["port-state", "subnet-manager"])];
/// A port that its partition does not have, which stops IP there and nothing else.
const PARTITION: &Causes = &[("partition", &["partition"])];
const INTERFACE: &Causes = &[("interface", &["interface", "child", "link", "ipoib-mode", "mtu", "address", "module"])];

/// The failed check of either node that explains why nothing gets through on its fabric.
#[must_use]
pub fn fabric_fault(nodes: [&NodeChecks; 2]) -> Option<String> {
    cause(FABRIC, nodes)
}

fn cause(causes: &Causes, nodes: [&NodeChecks; 2]) -> Option<String> {
    causes.iter().find_map(|(what, names)| {
        let failed = |check: &&Check| check.verdict == Verdict::Fail && names.contains(&check.check.as_str());
        nodes.iter().find_map(|node| {
            let Check { object, seen, expected, .. } = node.checks.iter().find(failed)?;
            Some(format!("{what}: on {} {object} is {seen}, not {expected}", node.node))
        })
    })
}

fn why_no_answer(result: &PingResult, from: (&NodeChecks, &CheckedPort), to: (&NodeChecks, &CheckedPort)) -> String {
    let nodes = [from.0, to.0];
    // Without a cable nothing else matters; an interface that is wrong is wrong with every manager.
    let (cable, manager) = FABRIC.split_at(1);
    if let Some(cause) = [cable, INTERFACE, manager, PARTITION].into_iter().find_map(|causes| cause(causes, nodes)) {
        return cause;
    }
    let (here, there) = (&from.0.node, &to.0.node);
    if let (Some(known), Some(is)) = (&result.neighbour, &to.1.hardware_address)
        && !is.to_ascii_lowercase().starts_with(&known.to_ascii_lowercase())
    {
        return format!(
            "stale neighbour entry: {here} still has {} at {known}.., and {there} {} is {is}, as after a reboot: verify \
             again in a minute, or `ip neigh flush dev {}` on {here}",
            to.1.address, to.1.interface, from.1.interface
        );
    }
    if result.small_answered {
        return format!(
            "size: small pings are answered, and those of {} bytes are not; compare the MTU of the switch ports and of \
             the fabric's multicast groups",
            from.1.mtu
        );
    }
    format!(
        "firewall: interface and subnet manager are as they should be on both ends; look whether {} or {} drops ICMP on {} (`nft list ruleset`), then at the switch",
        here, there, to.1.interface
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::IbSpeed;

    #[test]
    fn a_percentage_is_of_the_speed_in_the_spec() {
        let hdr = Speed::Ib(IbSpeed::Hdr);
        assert!((floor_gb_per_s(MinBandwidth::Percent(92.0), hdr) - 23.0).abs() < 1e-9);
        assert!((floor_gb_per_s(MinBandwidth::BytesPerSecond(23e9), hdr) - 23.0).abs() < 1e-9);
    }

    fn node(checks: Vec<Check>) -> NodeChecks {
        NodeChecks { node: "node01".parse().unwrap(), checks, ports: vec![] }
    }

    fn port() -> CheckedPort {
        CheckedPort {
            network: "compute".parse().unwrap(),
            device: "mlx5_0".parse().unwrap(),
            port: 1,
            guid: crate::rdma::Guid(1),
            interface: "ib0".parse().unwrap(),
            hardware_address: Some("80:00:02:08:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:fa:00:02".into()),
            address: "10.0.0.1".parse().unwrap(),
            mtu: 65520,
        }
    }

    fn silent(neighbour: Option<&str>, small_answered: bool) -> PingResult {
        let neighbour = neighbour.map(str::to_owned);
        PingResult { answered: false, small_answered, said: "100% packet loss".into(), neighbour }
    }

    #[test]
    fn an_old_neighbour_entry_is_no_firewall() {
        let node = node(vec![]);
        let next = |result: PingResult| ping(&result, (&node, &port()), (&node, &port()), "p").next;
        assert!(next(silent(Some("80:00:02:09:fe:80:00:00:00"), false)).starts_with("stale neighbour entry: node01"));
        assert!(next(silent(Some("80:00:02:08:FE:80:00:00:00"), false)).starts_with("firewall"));
        assert!(next(silent(None, true)).starts_with("size: small pings"));
    }

    #[test]
    fn a_failed_ping_leads_to_interface_then_manager_then_firewall() {
        let failed = |name: &str| Check::new(name, "x", false, ["a".into(), "b".into(), "c".into()]);
        let silent = silent(None, false);
        let next = |checks: Vec<Check>| ping(&silent, (&node(checks), &port()), (&node(vec![]), &port()), "p").next;
        assert!(next(vec![failed("subnet-manager"), failed("mtu")]).starts_with("interface"));
        assert!(next(vec![failed("subnet-manager")]).starts_with("subnet manager"));
        assert!(next(vec![failed("port-state"), failed("mtu"), failed("physical-state")]).starts_with("cable"));
        assert!(next(vec![]).starts_with("firewall"));
    }
}
