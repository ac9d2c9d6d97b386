//! verify: checks the nodes, then measures RDMA between them.

use std::collections::HashSet;
use std::time::Duration;

use super::args::{Only, Verify};
use super::host::{connect, expand, in_the_spec, is_this, load, read_spec, this};
use super::{Outcome, Stop, exit, print, tell};
use crate::hostlist::HostList;
use crate::name::HostName;
use crate::node::remote::Remote;
use crate::spec::Spec;
use crate::verify::cluster::Scope;
use crate::verify::{Report, Verdict, cluster, text};

/// More nodes than this are verified a part at a time.
const MAX_NODES: usize = 1024;

pub(super) fn verify(args: &Verify) -> Outcome {
    let text = read_spec(&args.spec.path)?;
    let spec = load(&text)?;
    let hosts = hosts(&spec, &args.node)?;
    let ssh = args.by.ssh();
    let here = this("").ok();
    let connect = |host: &HostName| match &here {
        Some(here) if is_this(host, here) => Remote::here(host),
        _ => connect(host, Some(&spec), &ssh),
    };
    let all = args.only.is_empty();
    let asked = |only: Only| all || args.only.contains(&only);
    let scope =
        Scope { node: asked(Only::Node), sm: asked(Only::Sm), ping: asked(Only::Ping), perf: asked(Only::Perf) };
    let started = std::time::Instant::now();
    let say = |what: &str| tell(&format!("[{:>4} s] {what}", Duration::as_secs(&started.elapsed())));
    let report = cluster::verify(&spec, &text, &hosts, scope, &connect, &say);
    print(args.report.format, &report, || text::render(&report, args.verbose))?;
    Ok(code(&report))
}

/// The first that holds, in the order of the exit codes.
fn code(report: &Report) -> u8 {
    if !report.unreachable.is_empty() {
        return exit::FAILED;
    }
    // What could not be looked at is not verified either.
    if report.verdict >= Verdict::Skipped { exit::BAD } else { exit::OK }
}

/// The hosts to verify: those of the lists, each once, or all of the spec.
fn hosts(spec: &Spec, asked: &[HostList]) -> Result<Vec<HostName>, Stop> {
    let all: Vec<&HostList> = spec.nodes.iter().map(|group| &group.hosts).collect();
    let lists = if asked.is_empty() { all.clone() } else { asked.iter().collect() };
    let what = if asked.is_empty() { "the spec has" } else { "--node names" };
    let hosts = expand(&lists, MAX_NODES, what, &format!("name up to {MAX_NODES} of them with --node"))?;
    let hosts: Vec<HostName> = hosts.iter().map(|host| in_the_spec(spec, host)).collect::<Result<_, _>>()?;
    // A host and its fully qualified name are one.
    let mut seen = HashSet::with_capacity(hosts.len());
    Ok(hosts.into_iter().filter(|host| seen.insert(host.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Check;
    use crate::verify::model::Unreachable;

    fn report(verdicts: &[Verdict], unreachable: bool) -> Report {
        let check = |verdict: &Verdict| {
            let words = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
            Check::new("x", "y", *verdict == Verdict::Pass, words).or(*verdict)
        };
        let node: HostName = "node01".parse().unwrap();
        let checks: Vec<Check> = verdicts.iter().map(check).collect();
        let why = "it is off".to_owned();
        Report {
            cluster: "test".parse().unwrap(),
            thresholds: vec![],
            notes: vec![],
            verdict: checks.iter().map(|check| check.verdict).max().unwrap(),
            nodes: vec![crate::verify::NodeChecks { node: node.clone(), checks, ports: vec![] }],
            fabrics: vec![],
            pairs: vec![],
            unreachable: if unreachable { vec![Unreachable { node, why }] } else { vec![] },
        }
    }

    #[test]
    fn a_node_that_was_not_reached_counts_before_a_bad_verdict() {
        assert_eq!(code(&report(&[Verdict::Pass, Verdict::Warning], false)), exit::OK);
        assert_eq!(code(&report(&[Verdict::Pass, Verdict::Skipped], false)), exit::BAD);
        assert_eq!(code(&report(&[Verdict::Fail], false)), exit::BAD);
        assert_eq!(code(&report(&[Verdict::Fail], true)), exit::FAILED);
        assert_eq!(code(&report(&[Verdict::Pass], true)), exit::FAILED);
    }

    #[test]
    fn hosts_are_named_by_lists_and_verified_once() {
        let spec = crate::spec::load("starter", crate::spec::STARTER).unwrap().spec;
        let hosts = |asked: &[&str]| {
            let asked: Vec<HostList> = asked.iter().map(|list| list.parse().unwrap()).collect();
            hosts(&spec, &asked).map_err(|stop| stop.message)
        };
        let both = hosts(&[]).unwrap();
        assert_eq!(both.iter().map(HostName::as_str).collect::<Vec<_>>(), ["node01", "node02"]);
        assert_eq!(hosts(&["node[01-02]"]).unwrap(), both);
        assert_eq!(hosts(&["node01", "node02,node01"]).unwrap(), both);
        assert_eq!(hosts(&["node03"]).unwrap_err(), "the spec has no host `node03`: it has 2 hosts; near: node[01-02]");
        assert_eq!(hosts(&["node1"]).unwrap_err(), "the spec has no host `node1`: it has 2 hosts; near: node01");
        assert!(hosts(&["node[1-5000]"]).unwrap_err().starts_with("--node names 5000 hosts; name up to 1024"));
    }
}
