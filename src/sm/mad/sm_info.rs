//! SMInfo (14.2.5.13, table 162).

use std::fmt;

use serde::Serialize;

use super::{Block, be32, be64, high, low, put};
use crate::rdma::Guid;
use crate::sm::election::Priority;

/// What a manager says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmInfo {
    /// Port GUID of the port it runs on.
    pub guid: Guid,
    /// Its key, sent only to those that showed the same one.
    pub key: SmKey,
    /// Grows with each management packet that it sends, answers included.
    pub act_count: u32,
    /// 0 to 15.
    pub priority: Priority,
    /// Its place in the election.
    pub state: SmState,
}

/// An SM_Key. It can be compared and sent, and never be printed.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SmKey(u64);

impl SmKey {
    /// A key as it is on the wire.
    #[must_use]
    pub fn new(key: u64) -> Self {
        Self(key)
    }
}

impl fmt::Debug for SmKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmKey(hidden)")
    }
}

/// `SMInfo:SMState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmState {
    /// Told by another manager to stay out of the election.
    NotActive,
    /// Looking at the fabric, not yet in the election.
    Discovering,
    /// Polls the master.
    Standby,
    /// Manages the fabric.
    Master,
    /// None that the specification knows.
    Reserved(u8),
}

impl SmState {
    /// From the four bits.
    #[must_use]
    pub fn from_bits(bits: u8) -> Self {
        match bits & 0x0f {
            0 => Self::NotActive,
            1 => Self::Discovering,
            2 => Self::Standby,
            3 => Self::Master,
            other => Self::Reserved(other),
        }
    }

    /// The four bits.
    #[must_use]
    pub fn bits(self) -> u8 {
        match self {
            Self::NotActive => 0,
            Self::Discovering => 1,
            Self::Standby => 2,
            Self::Master => 3,
            Self::Reserved(other) => other & 0x0f,
        }
    }
}

impl fmt::Display for SmState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotActive => f.pad("not-active"),
            Self::Discovering => f.pad("discovering"),
            Self::Standby => f.pad("standby"),
            Self::Master => f.pad("master"),
            Self::Reserved(bits) => write!(f, "reserved state {bits}"),
        }
    }
}

impl SmInfo {
    /// From the attribute.
    #[must_use]
    pub fn decode(block: &Block) -> Self {
        Self {
            guid: Guid(be64(block, 0)),
            key: SmKey(be64(block, 8)),
            act_count: be32(block, 16),
            priority: Priority::from_nibble(high(block[20])),
            state: SmState::from_bits(low(block[20])),
        }
    }

    /// To the attribute; the rest of it is reserved and zero.
    #[must_use]
    pub fn encode(&self) -> Block {
        let Self { guid, key, act_count, priority, state } = self;
        let mut block = [0; 64];
        put(&mut block, 0, guid.0.to_be_bytes());
        put(&mut block, 8, key.0.to_be_bytes());
        put(&mut block, 16, act_count.to_be_bytes());
        block[20] = priority.get() << 4 | state.bits();
        block
    }
}
