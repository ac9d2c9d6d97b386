//! Attributes of subnet management as values: 64 bytes in, a value out, and back.
//!
//! Section and table numbers are those of the InfiniBand Architecture
//! Specification, release 1.4, volume 1. All fields are big-endian. Nothing
//! here sends anything, and a key never reaches a message: it has no text form.

mod node;
mod port_info;
mod sm_info;

pub use node::{NodeDescription, NodeInfo, NodeType};
pub use port_info::{CAPABILITY_IS_SM, Mtu, PhysicalState, PortInfo, PortState};
pub use sm_info::{SmInfo, SmKey, SmState};

/// The attribute part of a subnet management packet (14.2.1.1).
pub type Block = [u8; 64];

/// What is asked for (14.2.5, table 144).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Attribute {
    /// The node's text.
    NodeDescription = 0x0010,
    /// What the node is, and the port that was asked.
    NodeInfo = 0x0011,
    /// A port's state; the modifier is the port number.
    PortInfo = 0x0015,
    /// The manager that runs on the port.
    SmInfo = 0x0020,
}

impl Attribute {
    /// As the header carries it.
    #[must_use]
    pub fn id(self) -> u16 {
        self as u16
    }

    /// The specification's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NodeDescription => "NodeDescription",
            Self::NodeInfo => "NodeInfo",
            Self::PortInfo => "PortInfo",
            Self::SmInfo => "SMInfo",
        }
    }
}

fn be16(block: &Block, at: usize) -> u16 {
    u16::from_be_bytes(bytes(block, at))
}

fn be32(block: &Block, at: usize) -> u32 {
    u32::from_be_bytes(bytes(block, at))
}

fn be64(block: &Block, at: usize) -> u64 {
    u64::from_be_bytes(bytes(block, at))
}

/// Offsets are constants of this module, all inside the block.
fn bytes<const N: usize>(block: &Block, at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&block[at..at + N]);
    out
}

fn put<const N: usize>(block: &mut Block, at: usize, value: [u8; N]) {
    block[at..at + N].copy_from_slice(&value);
}

fn high(byte: u8) -> u8 {
    byte >> 4
}

fn low(byte: u8) -> u8 {
    byte & 0x0f
}

#[cfg(test)]
mod tests;
