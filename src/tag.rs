//! What sets an interface on a port apart from the port's own: the key of its partition, or the number of its VLAN.
//!
//! Values only.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{IfName, NameError};
use crate::rdma::PKey;

/// The partition or VLAN of a child interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tag {
    /// IPoIB on a partition other than the default one.
    Pkey(PKey),
    /// IEEE 802.1Q: 1 to 4094.
    Vlan(u16),
}

impl Tag {
    /// The child's name: `ib0.8001`, as the kernel, initscripts and networkd have it for a partition, and `eth0.100`.
    ///
    /// # Errors
    /// When `parent` leaves no room for it.
    pub fn child_of(self, parent: &IfName) -> Result<IfName, NameError> {
        match self {
            Self::Pkey(pkey) => format!("{parent}.{:04x}", pkey.full()),
            Self::Vlan(number) => format!("{parent}.{number}"),
        }
        .parse()
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pkey(pkey) => write!(f, "partition {pkey}"),
            Self::Vlan(number) => write!(f, "VLAN {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_has_one_name_whatever_the_membership() {
        let parent = "ib0".parse().unwrap();
        for key in [0x000a, 0x800a] {
            assert_eq!(Tag::Pkey(PKey::new(key).unwrap()).child_of(&parent).unwrap().as_str(), "ib0.800a");
        }
        assert_eq!(Tag::Vlan(100).child_of(&parent).unwrap().as_str(), "ib0.100");
        assert!(Tag::Vlan(100).child_of(&"a23456789012345".parse().unwrap()).is_err());
        assert_eq!([PKey::new(0), PKey::new(0x8000)], [None, None]);
    }
}
