//! NodeInfo (14.2.5.3, table 147) and NodeDescription (14.2.5.2).

use std::fmt;

use super::{Block, be16, be32, be64, put};
use crate::rdma::Guid;

/// What a node is, and the port on which it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// `BaseVersion`.
    pub base_version: u8,
    /// `ClassVersion`.
    pub class_version: u8,
    /// Channel adapter, switch or router.
    pub node_type: NodeType,
    /// Physical ports, port 0 of a switch not counted.
    pub ports: u8,
    /// Shared by the nodes of one chassis.
    pub system_image_guid: Guid,
    /// The node's own; shared by its ports.
    pub node_guid: Guid,
    /// Of the port that answered; of port 0 for a switch.
    pub port_guid: Guid,
    /// Entries of the P_Key table of each port.
    pub partition_cap: u16,
    /// Given by the vendor.
    pub device_id: u16,
    /// Given by the vendor.
    pub revision: u32,
    /// The port by which the question came in.
    pub local_port: u8,
    /// IEEE OUI, 24 bits.
    pub vendor_id: u32,
}

/// `NodeInfo:NodeType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeType {
    /// A host's adapter.
    Ca,
    /// A switch.
    Switch,
    /// A router between subnets.
    Router,
    /// None that the specification knows.
    Reserved(u8),
}

impl NodeType {
    fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Ca,
            2 => Self::Switch,
            3 => Self::Router,
            other => Self::Reserved(other),
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Ca => 1,
            Self::Switch => 2,
            Self::Router => 3,
            Self::Reserved(other) => other,
        }
    }
}

impl NodeInfo {
    /// From the attribute.
    #[must_use]
    pub fn decode(block: &Block) -> Self {
        let last = be32(block, 36);
        Self {
            base_version: block[0],
            class_version: block[1],
            node_type: NodeType::from_byte(block[2]),
            ports: block[3],
            system_image_guid: Guid(be64(block, 4)),
            node_guid: Guid(be64(block, 12)),
            port_guid: Guid(be64(block, 20)),
            partition_cap: be16(block, 28),
            device_id: be16(block, 30),
            revision: be32(block, 32),
            local_port: block[36],
            vendor_id: last & 0x00ff_ffff,
        }
    }

    /// To the attribute.
    #[must_use]
    pub fn encode(&self) -> Block {
        let mut block = [0; 64];
        block[0] = self.base_version;
        block[1] = self.class_version;
        block[2] = self.node_type.byte();
        block[3] = self.ports;
        put(&mut block, 4, self.system_image_guid.0.to_be_bytes());
        put(&mut block, 12, self.node_guid.0.to_be_bytes());
        put(&mut block, 20, self.port_guid.0.to_be_bytes());
        put(&mut block, 28, self.partition_cap.to_be_bytes());
        put(&mut block, 30, self.device_id.to_be_bytes());
        put(&mut block, 32, self.revision.to_be_bytes());
        put(&mut block, 36, (u32::from(self.local_port) << 24 | self.vendor_id & 0x00ff_ffff).to_be_bytes());
        block
    }
}

/// A node's text, as an administrator set it: `node01 mlx5_0`. It comes from
/// the fabric, so what could move a terminal's cursor is taken out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeDescription(String);

impl NodeDescription {
    /// From the attribute: text up to the first NUL.
    #[must_use]
    pub fn decode(block: &Block) -> Self {
        let end = block.iter().position(|b| *b == 0).unwrap_or(block.len());
        let text = String::from_utf8_lossy(&block[..end]);
        let clean: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        Self(clean.trim().to_owned())
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host that the text names, when it is in the usual form of a host name
    /// followed by a device: what `rdma-ndd` writes by default is `%h %d`.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.0.split_whitespace().next()
    }
}

impl fmt::Display for NodeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
