//! What verify reports, for people and as JSON.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{DeviceName, HostName, IfName, Label, UnitName};
use crate::perf::model::Measured;
use crate::rdma::Guid;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Pass,
    /// Works, and is likely to bite later.
    Warning,
    /// Could not be looked at. Never counts as passed.
    Skipped,
    /// Not as it should be.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// A stable name: `port-state`.
    pub check: String,
    /// What was looked at: "mlx5_0 port 1".
    pub object: String,
    /// How it came out.
    pub verdict: Verdict,
    /// What should be.
    pub expected: String,
    /// What was seen.
    pub seen: String,
    /// What to do next; empty when it passed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
}

impl Check {
    /// A check that passes when `holds`, and else says `next`.
    #[must_use]
    pub fn new(check: &str, object: impl Into<String>, holds: bool, words: [String; 3]) -> Self {
        let [expected, seen, next] = words;
        let (verdict, next) = if holds { (Verdict::Pass, String::new()) } else { (Verdict::Fail, next) };
        Self { check: check.to_owned(), object: object.into(), verdict, expected, seen, next }
    }

    /// The same with another verdict when it fails.
    #[must_use]
    pub fn or(mut self, verdict: Verdict) -> Self {
        if self.verdict == Verdict::Fail {
            self.verdict = verdict;
        }
        self
    }
}

/// The checks of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeChecks {
    /// The node.
    pub node: HostName,
    /// In the order from the device up.
    pub checks: Vec<Check>,
    /// Its ports, for the measurements between nodes.
    pub ports: Vec<CheckedPort>,
}

/// A port as the node resolved it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckedPort {
    /// The network that it is in.
    pub network: Label,
    /// Its RDMA device.
    pub device: DeviceName,
    /// Its number, from 1.
    pub port: u8,
    /// Its GUID.
    pub guid: Guid,
    /// Its network interface.
    pub interface: IfName,
    /// The interface's hardware address as sysfs has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_address: Option<String>,
    /// Its address in the network.
    pub address: IpAddr,
    /// MTU in effect, bytes.
    pub mtu: u32,
}

/// Full-MTU, don't-fragment pings to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// From this interface, whatever the routing table says.
    pub interface: IfName,
    /// To this address.
    pub address: IpAddr,
    /// The MTU that the packets must fill, bytes.
    pub mtu: u32,
}

/// What came of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingResult {
    /// All answered.
    pub answered: bool,
    /// Whether a small one was answered before.
    pub small_answered: bool,
    /// What ping said.
    pub said: String,
    /// The beginning of the peer's hardware address, as this host has it after pings without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<String>,
}

/// What was measured from one node to another over one network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairReport {
    /// The network.
    pub network: Label,
    /// The end that sends.
    pub from: HostName,
    /// The other end.
    pub to: HostName,
    /// Ping, bandwidth, latency and the proof that it was RDMA, each held against its threshold.
    pub checks: Vec<Check>,
    /// The numbers.
    pub measured: Vec<Measured>,
}

/// What was found of one fabric as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FabricReport {
    /// The fabric.
    pub fabric: Label,
    /// Its subnet managers.
    pub checks: Vec<Check>,
}

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The cluster.
    pub cluster: Label,
    /// The thresholds that the verdicts use, in words, and where they are from; none where nothing is measured.
    pub thresholds: Vec<String>,
    /// What else is to be known of the report, such as checks that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Node by node.
    pub nodes: Vec<NodeChecks>,
    /// Fabric by fabric.
    #[serde(default)]
    pub fabrics: Vec<FabricReport>,
    /// Pair by pair.
    pub pairs: Vec<PairReport>,
    /// Nodes that could not be asked, each with why.
    pub unreachable: Vec<Unreachable>,
    /// The worst of all verdicts.
    pub verdict: Verdict,
}

/// A node that could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unreachable {
    /// The node.
    pub node: HostName,
    /// Why.
    pub why: String,
}

impl Report {
    /// All checks, nodes first.
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        let nodes = self.nodes.iter().flat_map(|node| &node.checks);
        let nodes = nodes.chain(self.fabrics.iter().flat_map(|fabric| &fabric.checks));
        nodes.chain(self.pairs.iter().flat_map(|pair| &pair.checks))
    }
}

/// The locked-memory limit of a running service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memlock {
    /// The unit.
    pub unit: UnitName,
    /// Whether the spec names it.
    pub named: bool,
    /// Soft limit, bytes; `None` is unlimited.
    pub bytes: Option<u64>,
}
