//! A route of the kernel, with what it takes to put it back.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel's main table (`RT_TABLE_MAIN`).
pub const MAIN_TABLE: u32 = 254;

/// A unicast route over one link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// Where to: an address with its prefix length.
    #[schemars(with = "String")]
    pub to: IpNet,
    /// The gateway.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub via: Option<IpAddr>,
    /// The address to send from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<IpAddr>,
    /// The routing table.
    pub table: u32,
    /// Of two routes to one place the smaller one counts; 0 on IPv4 for none given.
    pub metric: u32,
    /// Who made it: 3 for `ip route add`, 4 for a static one of a network manager; see rtnetlink(7).
    pub protocol: u8,
    /// How far it reaches: 0 everywhere, 253 on the link itself.
    pub scope: u8,
    /// The gateway is on the link whatever the addresses say.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub onlink: bool,
}

/// As `ip route` writes it.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to.prefix_len() {
            0 => f.write_str("default")?,
            _ => write!(f, "{}", self.to)?,
        }
        if let Some(via) = self.via {
            write!(f, " via {via}")?;
        }
        if self.table != MAIN_TABLE {
            write!(f, " table {}", self.table)?;
        }
        if self.metric != 0 {
            write!(f, " metric {}", self.metric)?;
        }
        Ok(())
    }
}
