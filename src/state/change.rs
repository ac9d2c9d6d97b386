//! One change: an object, its state before and after, and why.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Object, State};
use crate::name::{DeviceName, HostName, IfName};
use crate::rdma::Guid;

/// Why a change is made: the place in the spec that asks for it, and what it brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Reason(pub String);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What must hold at the moment of a change, asked of the fabric itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Condition {
    /// No subnet manager other than the spec's is master on the fabric of this port.
    NoForeignMaster {
        /// The HCA that looks.
        device: DeviceName,
        /// Its port.
        port: u8,
        /// The hosts that the spec allows to be manager.
        managers: Vec<HostName>,
        /// Their ports on the fabric, as far as the spec names them by GUID.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        guids: Vec<Guid>,
    },
    /// Another of the spec's subnet managers answers as master or standby.
    AnotherManager {
        /// The HCA that looks.
        device: DeviceName,
        /// Its port, whose own manager does not count.
        port: u8,
    },
}

impl Condition {
    /// What must hold before that is taken back which came under this condition.
    #[must_use]
    pub fn of_leaving(&self) -> Self {
        match self {
            Self::NoForeignMaster { device, port, .. } | Self::AnotherManager { device, port } => {
                Self::AnotherManager { device: device.clone(), port: *port }
            }
        }
    }
}

/// A change of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What is changed.
    pub object: Object,
    /// Its state before.
    pub before: State,
    /// Its state after.
    pub after: State,
    /// Why.
    pub reason: Reason,
    /// The links whose traffic this change can disturb.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub disturbs: BTreeSet<IfName>,
    /// What must hold at that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

impl Change {
    /// True when the object is taken away.
    #[must_use]
    pub fn removes(&self) -> bool {
        self.after == State::Absent
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}: {}", self.object, self.before, self.after, self.reason)
    }
}
