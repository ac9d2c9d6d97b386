//! verify: checks the nodes, then measures RDMA between them.

use std::time::Duration;

use super::args::{Only, Verify};
use super::host::{connect, is_this, load, read_spec, this};
use super::{Outcome, Stop, exit, print};
use crate::name::HostName;
use crate::node::remote::Remote;
use crate::verify::cluster::Scope;
use crate::verify::{Verdict, cluster, text};

/// More nodes than this are verified a part at a time.
const MAX_NODES: usize = 1024;

pub(super) fn verify(args: &Verify) -> Outcome {
    let text = read_spec(&args.spec.path)?;
    let spec = load(&text)?;
    let hosts = hosts(&spec, &args.node)?;
    let ssh = args.by.ssh();
    let here = this().ok();
    let connect = |host: &HostName| match &here {
        Some(here) if is_this(host, here) => Remote::here(host),
        _ => connect(host, Some(&spec), &ssh),
    };
    let all = args.only.is_empty();
    let asked = |only: Only| all || args.only.contains(&only);
    let scope =
        Scope { node: asked(Only::Node), sm: asked(Only::Sm), ping: asked(Only::Ping), perf: asked(Only::Perf) };
    let started = std::time::Instant::now();
    let say = |what: &str| eprintln!("[{:>4} s] {what}", Duration::as_secs(&started.elapsed()));
    let report = cluster::verify(&spec, &text, &hosts, scope, &connect, &say);
    print(args.report.format, &report, || text::render(&report, args.verbose))?;
    // What could not be looked at is not verified either.
    Ok(if report.verdict >= Verdict::Skipped { exit::BAD } else { exit::OK })
}

fn hosts(spec: &crate::spec::Spec, asked: &[HostName]) -> Result<Vec<HostName>, Stop> {
    let count: usize = spec.nodes.iter().map(|group| group.hosts.count()).sum();
    if asked.is_empty() {
        if count > MAX_NODES {
            return Err(Stop::failed(format!(
                "the spec has {count} hosts; name up to {MAX_NODES} of them with --node"
            )));
        }
        return Ok(spec.nodes.iter().flat_map(|group| group.hosts.iter()).collect());
    }
    for host in asked {
        if !spec.nodes.iter().any(|group| group.hosts.contains(host)) {
            return Err(Stop::failed(format!("the spec has no host `{host}`")));
        }
    }
    Ok(asked.to_vec())
}
