//! The frames between a controller and `selvedge node`: one JSON object a line.
//!
//! Values only. The node says `hello` first. Each call gets any number of
//! `progress` frames and then one `reply` or `error` with its id.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::report::PlanReport;
use super::session::{SpecText, WhichApply};
use crate::apply::journal::Saved;
use crate::facts::Facts;
use crate::name::{HostName, Label};
use crate::perf;
use crate::rdma::Guid;
use crate::state::Change;
use crate::verify::{Check, NodeChecks, Ping, PingResult};

/// The version of this protocol. Both ends must speak the same.
pub const VERSION: u32 = 1;

/// The longest line that either end takes, in bytes: a spec of 100,000 hosts is far below.
pub const MAX_LINE_BYTES: u64 = 64 << 20;

/// A call, from the controller to the node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Chosen by the controller, and repeated in the answer.
    pub id: u64,
    /// What is asked.
    pub request: Request,
}

/// What a controller can ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What the host has.
    Facts {},
    /// The changes an apply would make.
    Plan {
        /// The spec.
        spec: SpecText,
        /// This host's name in it.
        node: HostName,
    },
    /// Make them.
    Apply {
        /// The spec.
        spec: SpecText,
        /// This host's name in it.
        node: HostName,
        /// Undo all unless confirmed within this many seconds.
        confirm_seconds: Option<u64>,
    },
    /// Keep the last apply.
    Confirm {},
    /// Undo the last apply.
    RollBack {
        /// Even where that can cut the reader off.
        #[serde(default)]
        allow_cut: bool,
    },
    /// Look whether the host is as the spec says, down to the fabric.
    Check {
        /// The spec.
        spec: SpecText,
        /// This host's name in it.
        node: HostName,
    },
    /// Ask a fabric for its subnet managers.
    Managers {
        /// The spec.
        spec: SpecText,
        /// This host's name in it.
        node: HostName,
        /// The fabric.
        fabric: Label,
        /// The GUIDs of hosts' ports on it, as far as they are known.
        guids: BTreeMap<HostName, Guid>,
    },
    /// Send don't-fragment pings of the full MTU.
    Ping(Ping),
    /// Hand a request to a measuring worker, which the first one starts.
    Perf {
        /// Which worker, chosen by the controller.
        worker: u32,
        /// The request.
        request: perf::model::Request,
    },
}

impl Request {
    /// What the node does with itself for it, if it does: a lost answer then leaves open whether it did.
    #[must_use]
    pub fn changes(&self) -> Option<&'static str> {
        match self {
            Self::Apply { .. } => Some("apply"),
            Self::Confirm {} => Some("confirm"),
            Self::RollBack { .. } => Some("rollback"),
            Self::Facts {}
            | Self::Plan { .. }
            | Self::Check { .. }
            | Self::Managers { .. }
            | Self::Ping(_)
            | Self::Perf { .. } => None,
        }
    }
}

/// A frame from the node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Frame {
    /// The first frame.
    Hello {
        /// [`VERSION`] of the node.
        protocol: u32,
        /// Version of its selvedge.
        selvedge: String,
        /// The node's host name.
        host: String,
    },
    /// Something happens.
    Progress {
        /// The call's id.
        id: u64,
        /// The change that is about to be made.
        change: Box<Change>,
    },
    /// The call is done.
    Reply {
        /// The call's id.
        id: u64,
        /// What came of it.
        reply: Box<Reply>,
    },
    /// The call could not be done.
    Error {
        /// The call's id.
        id: u64,
        /// Why, with its causes.
        message: String,
        /// The exit code of a local command that fails so.
        code: u8,
    },
}

/// What a call gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reply {
    /// To `facts`.
    Facts(Facts),
    /// To `plan` and `apply`.
    Plan(PlanReport),
    /// To `confirm`.
    Done {},
    /// To `roll-back`.
    RolledBack {
        /// The apply that was undone.
        #[serde(default)]
        which: Option<WhichApply>,
        /// Files that somebody else had changed since.
        saved: Vec<Saved>,
    },
    /// To `check`.
    Checks(NodeChecks),
    /// To `managers`.
    Managers(Vec<Check>),
    /// To `ping`.
    Ping(PingResult),
    /// To `perf`.
    Perf(perf::model::Reply),
}
