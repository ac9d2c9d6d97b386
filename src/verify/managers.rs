//! Asks each InfiniBand fabric for its subnet managers, through one of the nodes.
//!
//! One is enough: the answer is the fabric's. A manager's own host is asked
//! first, since it has what it takes; the next one when that cannot.

use std::collections::BTreeMap;
use std::time::Duration;

use super::model::{Check, CheckedPort, FabricReport, NodeChecks, Verdict};
use crate::compile::compile;
use crate::name::{HostName, Label};
use crate::node::SpecText;
use crate::node::protocol::{Reply, Request};
use crate::node::remote::Remote;
use crate::rdma::{Guid, Transport};
use crate::spec::{Fabric, Spec};

/// A walk of a large fabric with ports that do not answer.
const WALK: Duration = Duration::from_secs(120);
/// A fabric that three of its nodes cannot ask is not asked by a thousand.
const MAX_ASKED: usize = 3;

/// The fabrics that the nodes are on.
pub(super) fn ask(spec: &Spec, text: &SpecText, nodes: &mut [(NodeChecks, Remote)]) -> Vec<FabricReport> {
    let infiniband = spec.fabrics.iter().filter(|(_, fabric)| fabric.transport == Transport::Infiniband);
    let report = |(name, fabric): (&Label, &Fabric)| {
        let askers = askers(spec, name, fabric, nodes);
        if askers.is_empty() {
            return None;
        }
        let guids = guids(spec, name, nodes);
        let mut reasons = Vec::new();
        for asker in askers.into_iter().take(MAX_ASKED) {
            let (checks, remote) = &mut nodes[asker];
            let (node, fabric, guids) = (checks.node.clone(), name.clone(), guids.clone());
            let request = Request::Managers { spec: text.clone(), node, fabric, guids };
            match remote.call(request, WALK, &mut |_| {}) {
                Ok(Reply::Managers(found)) => return Some(FabricReport { fabric: name.clone(), checks: found }),
                Ok(_) => reasons.push(format!("{}: {}", checks.node, remote.out_of_turn())),
                Err(error) => reasons.push(format!("{}: {error}", checks.node)),
            }
        }
        let words = ["an answer".into(), reasons.join("; "), "see `selvedge sm status` on that node".into()];
        let check = Check::new("subnet-managers", format!("fabric {name}"), false, words).or(Verdict::Skipped);
        Some(FabricReport { fabric: name.clone(), checks: vec![check] })
    };
    infiniband.filter_map(report).collect()
}

/// The first port of each node on the fabric. A node's description may not say whose it is.
fn guids(spec: &Spec, fabric: &Label, nodes: &[(NodeChecks, Remote)]) -> BTreeMap<HostName, Guid> {
    let is_on = |port: &&CheckedPort| spec.networks.get(&port.network).is_some_and(|network| network.fabric == *fabric);
    let first = |(node, _): &(NodeChecks, Remote)| Some((node.node.clone(), node.ports.iter().find(is_on)?.guid));
    nodes.iter().filter_map(first).collect()
}

/// The nodes that the spec puts on the fabric, in the order in which they are asked.
fn askers(spec: &Spec, name: &Label, fabric: &Fabric, nodes: &[(NodeChecks, Remote)]) -> Vec<usize> {
    let is_on =
        |node: &HostName| compile(spec, node).is_ok_and(|intent| intent.ports.iter().any(|port| port.fabric == *name));
    let managers = fabric.subnet_manager.iter();
    let managers: Vec<&HostName> = managers.flat_map(|of| std::iter::once(&of.primary).chain(&of.standby)).collect();
    // A port without a link sees nothing of the fabric.
    let is_cut = |node: &NodeChecks| {
        node.checks.iter().any(|check| check.check == "physical-state" && check.verdict == Verdict::Fail)
    };
    let mut askers: Vec<usize> = (0..nodes.len()).filter(|index| is_on(&nodes[*index].0.node)).collect();
    askers.sort_by_key(|index| {
        let node = &nodes[*index].0;
        (is_cut(node), managers.iter().position(|host| **host == node.node).unwrap_or(usize::MAX))
    });
    askers
}
