//! Goes to the nodes, lets them check themselves, and measures between them.
//!
//! Queue pair data goes through this controller, so that no node listens.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use super::model::{Check, CheckedPort, NodeChecks, PairReport, Ping, Report, Unreachable, Verdict};
use super::{judge, managers, pairs};
use crate::count::counted;
use crate::name::{HostName, Label};
use crate::node::SpecText;
use crate::node::protocol::{Reply, Request};
use crate::node::remote::{CallError, Remote};
use crate::perf::model::{Check as Compare, Endpoint, Measured, Open, Outcome, Reply as Answer, Request as Ask, Run};
use crate::spec::{MinBandwidth, Spec, Verify};

const QUICK: Duration = Duration::from_secs(60);
const MEASURE: Duration = Duration::from_secs(60);

/// Which kinds of check are made.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is one of the words of --only")]
pub struct Scope {
    /// Each node on its own.
    pub node: bool,
    /// The subnet managers of each fabric.
    pub sm: bool,
    /// Full-MTU pings.
    pub ping: bool,
    /// RDMA bandwidth and latency.
    pub perf: bool,
}

/// How to reach a node.
pub type Connect<'a> = &'a (dyn Fn(&HostName) -> Result<Remote, CallError> + Sync);

/// Is told what begins.
pub type Say<'a> = &'a (dyn Fn(&str) + Sync);

/// Verifies `hosts`.
#[must_use]
pub fn verify(
    spec: &Spec,
    text: &SpecText,
    hosts: &[HostName],
    scope: Scope,
    connect: Connect<'_>,
    say: Say<'_>,
) -> Report {
    say(&format!("checking {}", counted(hosts.len(), "node")));
    let mut nodes = Vec::new();
    let mut unreachable = Vec::new();
    let checked: Vec<_> = thread::scope(|threads| {
        let start = |host| threads.spawn(move || check(host, text, connect));
        let threads: Vec<_> = hosts.iter().map(start).collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    for (host, result) in hosts.iter().zip(checked) {
        match result {
            Ok(Ok(node)) => nodes.push(node),
            Ok(Err(error)) => unreachable.push(Unreachable { node: host.clone(), why: error.to_string() }),
            Err(_) => unreachable.push(Unreachable { node: host.clone(), why: "a fault in selvedge".into() }),
        }
    }
    let fabrics = if scope.sm { managers::ask(spec, text, &mut nodes) } else { Vec::new() };
    let mut reports = Vec::new();
    let mut notes = Vec::new();
    for (network, ends) in by_network(&nodes) {
        if !(scope.ping || scope.perf) {
            break;
        }
        let partition = spec.networks.get(&network).and_then(|network| network.partition(&spec.fabrics));
        let is_limited = |end: &(usize, usize)| partition.is_some_and(|one| one.is_limited(&nodes[end.0].0.node));
        let limited: Vec<bool> = ends.iter().map(is_limited).collect();
        let pairs = pairs::of(&limited);
        if pairs.is_empty() && limited.len() > 1 {
            notes.push(format!("{network}: only limited members of its partition are here, and they never reach each other: nothing was tried; name a full one with --node"));
        }
        for (from, to) in pairs {
            let [from, to] = [ends[from], ends[to]];
            say(&format!("{network}: {} -> {}", nodes[from.0].0.node, nodes[to.0].0.node));
            reports.push(pair((spec, text), &network, scope, &mut nodes, from, to));
        }
    }
    notes.extend(left_out(scope, nodes.len(), reports.len()));
    let mut nodes: Vec<NodeChecks> = nodes.into_iter().map(|(checks, _)| checks).collect();
    if !scope.node {
        nodes.iter_mut().for_each(|node| node.checks.clear());
    }
    let thresholds = if scope.perf { thresholds(&spec.verify) } else { Vec::new() };
    let cluster = spec.cluster.name.clone();
    let mut report =
        Report { cluster, thresholds, notes, nodes, fabrics, pairs: reports, unreachable, verdict: Verdict::Pass };
    report.verdict = worst(&report);
    report
}

fn check(host: &HostName, text: &SpecText, connect: Connect<'_>) -> Result<(NodeChecks, Remote), CallError> {
    let mut remote = connect(host)?;
    let request = Request::Check { spec: text.clone(), node: host.clone() };
    match remote.call(request, QUICK, &mut |_| {})? {
        Reply::Checks(checks) => Ok((checks, remote)),
        _ => Err(remote.out_of_turn()),
    }
}

/// The ports of each network, as indices of node and port.
fn by_network(nodes: &[(NodeChecks, Remote)]) -> BTreeMap<Label, Vec<(usize, usize)>> {
    let mut networks: BTreeMap<Label, Vec<(usize, usize)>> = BTreeMap::new();
    for (node, (checks, _)) in nodes.iter().enumerate() {
        for (port, checked) in checks.ports.iter().enumerate() {
            networks.entry(checked.network.clone()).or_default().push((node, port));
        }
    }
    networks
}

fn pair(
    (spec, text): (&Spec, &SpecText),
    network: &Label,
    scope: Scope,
    nodes: &mut [(NodeChecks, Remote)],
    from: (usize, usize),
    to: (usize, usize),
) -> PairReport {
    let ports = [from, to].map(|(node, port)| nodes[node].0.ports[port].clone());
    let names = [from.0, to.0].map(|node| nodes[node].0.node.clone());
    let object = format!("{} {} -> {} {}", names[0], ports[0].interface, names[1], ports[1].interface);
    let mut checks = Vec::new();
    let mut measured = Vec::new();
    if scope.ping {
        checks.push(ping(text, nodes, from, to, &ports, &object));
    }
    let measured_or_not =
        (scope.perf && is_first(&nodes[from.0].0.ports, from.1)).then(|| rdma(nodes, from.0, to.0, &ports));
    if matches!(measured_or_not, Some(Err(_))) {
        look_again(text, nodes, [from.0, to.0]);
    }
    match measured_or_not {
        None => {}
        Some(Ok(run)) => {
            let speed = spec
                .networks
                .get(network)
                .and_then(|network| spec.fabrics.get(&network.fabric))
                .map(|fabric| fabric.speed);
            checks.extend(
                speed
                    .into_iter()
                    .flat_map(|speed| run.outcomes.iter().map(move |outcome| (speed, outcome.measured)))
                    .map(|(speed, measured)| match measured {
                        Measured::WriteBw(bandwidth) => {
                            judge::bandwidth(&bandwidth, spec.verify.min_bandwidth, speed, &object)
                        }
                        Measured::ReadLat(latency) => judge::latency(&latency, spec.verify.max_latency, &object),
                    }),
            );
            checks.push(contents(run.contents_right, &object));
            checks.extend(run.outcomes.iter().filter_map(|outcome| judge::proof(outcome, run.mtu, &object)));
            measured.extend(run.outcomes.iter().map(|outcome| outcome.measured));
        }
        Some(Err(why)) => {
            let known = judge::fabric_fault([&nodes[from.0].0, &nodes[to.0].0]);
            let words = ["RDMA WRITE and READ complete".into(), why.0, known.unwrap_or(why.1)];
            checks.push(Check::new("rdma", &object, false, words));
        }
    }
    let [from, to] = names;
    PairReport { network: network.clone(), from, to, checks, measured }
}

/// Whether a network is the first one of its port. RDMA does not go by IP's partitions and VLANs: one measurement of a
/// port is enough.
fn is_first(ports: &[CheckedPort], index: usize) -> bool {
    let place = |port: &CheckedPort| (port.device.clone(), port.port);
    ports.get(index).is_some_and(|own| ports.iter().position(|port| place(port) == place(own)) == Some(index))
}

fn contents(right: bool, object: &str) -> Check {
    let seen = if right { "the bytes sent" } else { "other bytes" };
    let next = "memory or link corrupts data: take the node out of service and look at its error counters";
    Check::new("contents", object, right, ["the bytes sent".into(), seen.into(), next.into()])
}

/// A cable can be pulled after the nodes were looked at, and its port takes seconds to notice: what is said of a pair
/// that failed rests on how its nodes are then.
fn look_again(text: &SpecText, nodes: &mut [(NodeChecks, Remote)], pair: [usize; 2]) {
    for index in pair {
        let (known, remote) = &mut nodes[index];
        let request = Request::Check { spec: text.clone(), node: known.node.clone() };
        if let Ok(Reply::Checks(checks)) = remote.call(request, QUICK, &mut |_| {}) {
            // The ports stay: pairs are named by their places.
            known.checks = checks.checks;
        }
    }
}

fn ping(
    text: &SpecText,
    nodes: &mut [(NodeChecks, Remote)],
    from: (usize, usize),
    to: (usize, usize),
    ports: &[CheckedPort; 2],
    object: &str,
) -> Check {
    let request = Ping { interface: ports[0].interface.clone(), address: ports[1].address, mtu: ports[0].mtu };
    match nodes[from.0].1.call(Request::Ping(request), QUICK, &mut |_| {}) {
        Ok(Reply::Ping(result)) => {
            if !result.answered {
                look_again(text, nodes, [from.0, to.0]);
            }
            judge::ping(&result, (&nodes[from.0].0, &ports[0]), (&nodes[to.0].0, &ports[1]), object)
        }
        Ok(_) => lost("ping", object, nodes[from.0].1.out_of_turn().to_string()),
        Err(error) => lost("ping", object, error.to_string()),
    }
}

fn lost(check: &str, object: &str, why: String) -> Check {
    Check::new(check, object, false, ["an answer".into(), why, "look at that node".into()])
}

/// What was measured from one end to the other.
struct Rdma {
    outcomes: Vec<Outcome>,
    contents_right: bool,
    /// Path MTU, bytes.
    mtu: u32,
}

/// What was seen, and what to do next.
struct Why(String, String);

fn rdma(nodes: &mut [(NodeChecks, Remote)], from: usize, to: usize, ports: &[CheckedPort; 2]) -> Result<Rdma, Why> {
    let result = measure(nodes, from, to, ports);
    for node in [from, to] {
        // Whatever came of it, the workers end; one that hangs is left behind by its node.
        let _ = ask(nodes, node, Ask::Close {});
    }
    result
}

fn measure(nodes: &mut [(NodeChecks, Remote)], from: usize, to: usize, ports: &[CheckedPort; 2]) -> Result<Rdma, Why> {
    let sender = open(nodes, from, &ports[0])?;
    let receiver = open(nodes, to, &ports[1])?;
    connect(nodes, to, &sender)?;
    connect(nodes, from, &receiver)?;
    let mut outcomes = Vec::new();
    let write = Run::write_bw();
    outcomes.push(run(nodes, from, write)?);
    let compare = Compare { seed: sender.seed, size: write.size };
    let contents_right = match ask(nodes, to, Ask::Check(compare))? {
        Answer::Checked(checked) => checked.is_right(),
        other => return Err(unexpected(&other)),
    };
    outcomes.push(run(nodes, from, Run::read_lat())?);
    Ok(Rdma { outcomes, contents_right, mtu: sender.mtu.min(receiver.mtu) })
}

fn open(nodes: &mut [(NodeChecks, Remote)], node: usize, port: &CheckedPort) -> Result<Endpoint, Why> {
    match ask(nodes, node, Ask::Open(Open::new(port.device.clone(), port.port)))? {
        Answer::Endpoint(endpoint) => Ok(endpoint),
        other => Err(unexpected(&other)),
    }
}

fn connect(nodes: &mut [(NodeChecks, Remote)], node: usize, peer: &Endpoint) -> Result<(), Why> {
    match ask(nodes, node, Ask::Connect(peer.clone()))? {
        Answer::Ready {} => Ok(()),
        other => Err(unexpected(&other)),
    }
}

fn run(nodes: &mut [(NodeChecks, Remote)], node: usize, run: Run) -> Result<Outcome, Why> {
    match ask(nodes, node, Ask::Run(run))? {
        Answer::Result(outcome) => Ok(outcome),
        other => Err(unexpected(&other)),
    }
}

fn ask(nodes: &mut [(NodeChecks, Remote)], node: usize, request: Ask) -> Result<Answer, Why> {
    let (checks, remote) = &mut nodes[node];
    let host = &checks.node;
    match remote.call(Request::Perf { worker: 0, request }, MEASURE, &mut |_| {}) {
        Ok(Reply::Perf(Answer::Error(fault))) => {
            let next = if fault.peer_lost {
                format!("the other end does not answer {host}: look at its port, then at the path between the two")
            } else {
                format!("look at {host}: the device, its port, and the memory it may register")
            };
            // What is missing says itself how it comes there.
            let said = fault.causes.join(": ");
            Err(match said.split_once("; install ") {
                Some((said, packages)) => Why(format!("{host}: {said}"), format!("on {host}, install {packages}")),
                None => Why(format!("{host}: {said}"), next),
            })
        }
        Ok(Reply::Perf(answer)) => Ok(answer),
        Ok(_) => Err(Why(remote.out_of_turn().to_string(), "install the same selvedge on both".into())),
        Err(error) => Err(Why(error.to_string(), format!("look at {host}"))),
    }
}

fn unexpected(answer: &Answer) -> Why {
    Why(format!("a measuring worker answered {answer:?} out of turn"), "install the same selvedge on both".into())
}

fn worst(report: &Report) -> Verdict {
    let worst = report.checks().map(|check| check.verdict).max().unwrap_or(Verdict::Skipped);
    if report.unreachable.is_empty() { worst } else { Verdict::Fail }
}

/// Says so when what was asked for needs two nodes, and there were none.
fn left_out(scope: Scope, nodes: usize, pairs: usize) -> Option<String> {
    let what = match (scope.ping, scope.perf) {
        (false, false) => return None,
        (true, false) => "no pings",
        (false, true) => "no RDMA measurements",
        (true, true) => "no pings and no RDMA measurements",
    };
    match (pairs, nodes) {
        (1.., _) => None,
        (0, 0..2) => Some(format!(
            "{what}: they go between two nodes, and {nodes} could be asked; name more with --node, or see why not"
        )),
        (0, _) => Some(format!("{what}: no two of these nodes have an interface in one network")),
    }
}

fn thresholds(verify: &Verify) -> Vec<String> {
    let bandwidth = match verify.min_bandwidth {
        MinBandwidth::Percent(percent) => format!("{percent}% of the fabric's speed"),
        MinBandwidth::BytesPerSecond(bytes) => format!("{} MB/s", bytes / 1e6),
    };
    vec![
        format!("RDMA WRITE at least {bandwidth} ([verify] min-bandwidth)"),
        format!("RDMA READ typically at most {:?} ([verify] max-latency)", verify.max_latency),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_and_measurements_that_were_left_out_are_said() {
        let scope = |ping, perf| Scope { node: true, sm: false, ping, perf };
        assert_eq!(left_out(scope(false, false), 1, 0), None);
        assert_eq!(left_out(scope(true, true), 2, 2), None);
        let said = left_out(scope(true, false), 1, 0).unwrap();
        assert!(said.starts_with("no pings: they go between two nodes, and 1 could be asked"), "{said}");
        assert!(left_out(scope(true, true), 2, 0).unwrap().ends_with("in one network"));
    }
}
