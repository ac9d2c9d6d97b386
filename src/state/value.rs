//! The states that an object can be in.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Digest;
use crate::name::IfName;
use crate::rdma::IpoibMode;

/// The state of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum State {
    /// It is not there.
    Absent,
    /// It could not be seen. Not the same as absent: nothing is concluded from it.
    Unknown {
        /// What stood in the way.
        why: String,
    },
    /// A regular file.
    File {
        /// What is in it.
        digest: Digest,
        /// Permission bits, such as 0o644.
        mode: u32,
    },
    /// A symbolic link.
    Symlink {
        /// What it points to, as it is written in the link.
        target: String,
    },
    /// There, and there is no more to say of it: an address, a loaded module.
    Present,
    /// An interface's name.
    Named {
        /// The name.
        name: IfName,
    },
    /// `IFF_UP` is set.
    Up,
    /// `IFF_UP` is not set.
    Down,
    /// IPoIB mode.
    Mode {
        /// The mode in effect.
        mode: IpoibMode,
    },
    /// MTU.
    Mtu {
        /// Bytes.
        bytes: u32,
    },
    /// An address that the kernel makes.
    Made {
        /// From what.
        by: AddressGeneration,
    },
    /// What a network setting is set to.
    Value {
        /// The value, as the kernel prints it; single blanks between its parts.
        text: String,
    },
    /// A unit that is active.
    Running,
    /// A unit that is inactive.
    Stopped,
    /// A unit that ended in failure.
    Failed,
    /// A unit that failed and that systemd is about to start again: it does not run, and will unless it is stopped.
    Restarting,
    /// The program has read its files as they are now.
    Fresh,
    /// Its files changed after it read them.
    Stale,
}

/// What the kernel makes an interface identifier from (`IN6_ADDR_GEN_MODE_*` of if_link.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressGeneration {
    /// The hardware address.
    Eui64,
    /// Nothing: no address is made.
    None,
    /// A secret and the interface (RFC 7217).
    StablePrivacy,
    /// A random number.
    Random,
}

impl fmt::Display for AddressGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eui64 => "made from the hardware address",
            Self::None => "not made",
            Self::StablePrivacy => "made from a secret",
            Self::Random => "made at random",
        })
    }
}

impl State {
    /// A number above the one of `asked`.
    #[must_use]
    pub fn is_more_than(&self, asked: &Self) -> bool {
        let number = |state: &Self| match state {
            Self::Value { text } => text.parse::<u64>().ok(),
            _ => None,
        };
        matches!((number(self), number(asked)), (Some(own), Some(asked)) if own > asked)
    }

    /// A file or link with contents that none of `known` has. Its permissions do not count.
    #[must_use]
    pub fn holds_other_contents(&self, known: &[&Self]) -> bool {
        match self {
            Self::File { digest, .. } => {
                !known.iter().any(|state| matches!(state, Self::File { digest: known, .. } if known == digest))
            }
            Self::Symlink { .. } => !known.contains(&self),
            _ => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("absent"),
            Self::Unknown { why } => write!(f, "unknown ({why})"),
            Self::File { digest, mode } => write!(f, "{:.8} mode {mode:04o}", digest.to_string()),
            Self::Symlink { target } => write!(f, "link to {target}"),
            Self::Present => f.write_str("present"),
            Self::Named { name } => name.fmt(f),
            Self::Up => f.write_str("up"),
            Self::Down => f.write_str("down"),
            Self::Mode { mode } => mode.fmt(f),
            Self::Mtu { bytes } => write!(f, "{bytes}"),
            Self::Made { by } => by.fmt(f),
            Self::Value { text } => f.write_str(text),
            Self::Running => f.write_str("running"),
            Self::Stopped => f.write_str("stopped"),
            Self::Failed => f.write_str("failed"),
            Self::Restarting => f.write_str("failing again and again"),
            Self::Fresh => f.write_str("read"),
            Self::Stale => f.write_str("changed"),
        }
    }
}
