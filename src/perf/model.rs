//! What a measuring worker is asked and what it answers: one JSON object a line.
//!
//! Values only. A conversation: `open` gives an `endpoint`; whoever relays gives
//! each side the other's endpoint with `connect` and both say `ready`; then
//! `run` on one side gives a `result`, and `check` says whether the bytes are
//! the peer's. `close` ends it, and so does the end of the input.

use std::net::Ipv6Addr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::Checked;
use super::snapshot::Snapshot;
use super::stats::Latency;
use super::units::Bandwidth;
use crate::name::DeviceName;

/// The message size of a bandwidth test unless told otherwise, in bytes: perftest's own.
pub const DEFAULT_WRITE_BYTES: u32 = 65_536;
/// The message size of a latency test, in bytes: perftest's own.
pub const DEFAULT_READ_BYTES: u32 = 2;
/// Work requests in flight: perftest's `tx_depth`.
pub const DEFAULT_DEPTH: u32 = 128;
/// Work requests posted at a time, the last of them signalled.
pub const DEFAULT_POST_LIST: u32 = 16;
/// READs of a latency test: perftest's own.
pub const DEFAULT_READS: u64 = 1000;
/// The longest a worker waits for a completion before it gives the peer up, in milliseconds.
pub const STALL_MS: u64 = 10_000;

/// To the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Open a device, register memory, make a queue pair.
    Open(Open),
    /// Connect the queue pair to the peer's.
    Connect(Endpoint),
    /// Measure.
    Run(Run),
    /// Compare what arrived with the peer's pattern, and clear it.
    Check(Check),
    /// Read the port's counters.
    Counters {},
    /// Release everything and end.
    Close {},
}

/// From the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reply {
    /// To `open`.
    Endpoint(Endpoint),
    /// To `connect`.
    Ready {},
    /// To `run`.
    Result(Outcome),
    /// To `check`.
    Checked(Checked),
    /// To `counters`.
    Counters(Snapshot),
    /// To `close`.
    Closed {},
    /// To anything that could not be done.
    Error(Fault),
}

/// What to open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Open {
    /// The RDMA device.
    pub device: DeviceName,
    /// Its port, from 1.
    #[serde(default = "one")]
    pub port: u8,
    /// The largest message that will be asked for, in bytes.
    #[serde(default = "write_bytes")]
    pub size: u32,
    /// The send queue, in work requests.
    #[serde(default = "depth")]
    pub depth: u32,
    /// RoCE: the subnet in which the GID must be.
    #[serde(default)]
    pub subnet: Option<IpNet>,
    /// InfiniBand: the partition; the default one without it.
    #[serde(default)]
    pub pkey: Option<u16>,
    /// Service level.
    #[serde(default)]
    pub sl: u8,
    /// RoCE: traffic class, DSCP x 4 plus the ECN bits.
    #[serde(default)]
    pub traffic_class: u8,
}

impl Open {
    /// A device's port with the defaults of perftest.
    #[must_use]
    pub fn new(device: DeviceName, port: u8) -> Self {
        let (size, depth) = (DEFAULT_WRITE_BYTES, DEFAULT_DEPTH);
        Self { device, port, size, depth, subnet: None, pkey: None, sl: 0, traffic_class: 0 }
    }
}

/// One end of a connection: what the peer must know of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Endpoint {
    /// Queue pair number.
    pub qpn: u32,
    /// First packet sequence number, 24 bits.
    pub psn: u32,
    /// LID; 0 on RoCE.
    pub lid: u16,
    /// RoCE: the GID chosen.
    pub gid: Option<Ipv6Addr>,
    /// RoCE: its index in the table of its own port, for reports.
    pub gid_index: Option<u8>,
    /// The path MTU that the port can do, in bytes.
    pub mtu: u32,
    /// READs that this end answers at a time.
    pub reads: u8,
    /// The address of the registered memory.
    pub addr: u64,
    /// The key that opens it.
    pub rkey: u32,
    /// The largest message, in bytes. The memory has two parts of this size
    /// rounded up to pages: first what is sent, then what arrives.
    pub size: u32,
    /// The seed of the pattern in the first part.
    pub seed: u64,
}

/// A kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// RDMA WRITE bandwidth, one direction, as `ib_write_bw`.
    WriteBw,
    /// RDMA READ latency, as `ib_read_lat`.
    ReadLat,
}

/// What to measure. Without a limit: [`DEFAULT_READS`] READs, or two seconds of WRITEs.
/// With both, the one reached first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Run {
    /// Which measurement.
    pub test: Test,
    /// Message size, in bytes.
    pub size: u32,
    /// For how long, in milliseconds.
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// How many messages.
    #[serde(default)]
    pub iterations: Option<u64>,
    /// Work requests in flight; at most the depth of the queue opened.
    #[serde(default = "depth")]
    pub depth: u32,
    /// Work requests posted at a time.
    #[serde(default = "post_list")]
    pub post_list: u32,
}

impl Run {
    /// WRITE bandwidth with perftest's size and depth.
    #[must_use]
    pub fn write_bw() -> Self {
        let (test, size) = (Test::WriteBw, DEFAULT_WRITE_BYTES);
        Self { test, size, duration_ms: None, iterations: None, depth: DEFAULT_DEPTH, post_list: DEFAULT_POST_LIST }
    }

    /// READ latency with perftest's size and count.
    #[must_use]
    pub fn read_lat() -> Self {
        let (test, size) = (Test::ReadLat, DEFAULT_READ_BYTES);
        Self { test, size, duration_ms: None, iterations: None, depth: DEFAULT_DEPTH, post_list: 1 }
    }
}

/// What a measurement found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Outcome {
    /// The numbers.
    pub measured: Measured,
    /// The port's counters before.
    pub before: Snapshot,
    /// And after.
    pub after: Snapshot,
}

/// The numbers of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// Of [`Test::WriteBw`].
    WriteBw(Bandwidth),
    /// Of [`Test::ReadLat`].
    ReadLat(Latency),
}

/// What to compare: the peer's seed, and how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Check {
    /// The seed of the peer's endpoint.
    pub seed: u64,
    /// The size of the message, in bytes.
    pub size: u32,
}

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fault {
    /// The error and its causes, outermost first.
    pub causes: Vec<String>,
    /// Whether the peer is gone or unreachable, rather than this end broken.
    pub peer_lost: bool,
}

fn one() -> u8 {
    1
}

fn write_bytes() -> u32 {
    DEFAULT_WRITE_BYTES
}

fn depth() -> u32 {
    DEFAULT_DEPTH
}

fn post_list() -> u32 {
    DEFAULT_POST_LIST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_requests_have_the_defaults() {
        let open: Request = serde_json::from_str(r#"{"open":{"device":"mlx5_0"}}"#).unwrap();
        assert_eq!(open, Request::Open(Open::new("mlx5_0".parse().unwrap(), 1)));
        let run: Request = serde_json::from_str(r#"{"run":{"test":"write-bw","size":65536}}"#).unwrap();
        assert_eq!(run, Request::Run(Run::write_bw()));
        assert_eq!(serde_json::to_string(&Request::Close {}).unwrap(), r#"{"close":{}}"#);
        assert_eq!(serde_json::to_string(&Reply::Ready {}).unwrap(), r#"{"ready":{}}"#);
        assert!(serde_json::from_str::<Request>(r#"{"open":{"device":"../x"}}"#).is_err());
        assert!(serde_json::from_str::<Request>(r#"{"open":{"device":"mlx5_0","prot":1}}"#).is_err());
    }
}
