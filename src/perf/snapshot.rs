//! The counters of a port and of its network interfaces at one moment. Values only.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All counters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Snapshot {
    /// `ports/P/counters`: `port_xmit_data` and `port_rcv_data` are in words of
    /// 4 bytes. Empty where the driver has none, as soft-RoCE.
    pub port: BTreeMap<String, u64>,
    /// `ports/P/hw_counters`: the driver's own.
    pub hw: BTreeMap<String, u64>,
    /// The network interfaces on the same port, by name.
    pub netdevs: BTreeMap<String, Netdev>,
}

/// A network interface's bytes, as the kernel's IP stack saw them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Netdev {
    /// Sent.
    pub tx_bytes: u64,
    /// Received.
    pub rx_bytes: u64,
}
