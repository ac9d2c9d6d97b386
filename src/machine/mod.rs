//! The seam between selvedge and a machine: look at objects, perform a change.
//!
//! [`real`] does it with netlink, sysfs, files and D-Bus; the simulated one
//! keeps a model of the kernel in memory. Both are tested to agree.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::name::{IfName, UnitName};
use crate::state::{Blobs, Change, Condition, FilePath, Object, Observed};

pub mod real;
pub mod sim;

/// A machine that can be looked at and changed.
pub trait Machine {
    /// Looks at `scope`, and at every attribute and address of each link in it.
    ///
    /// An object that cannot be seen is `Unknown`; an error means that nothing could be seen.
    ///
    /// # Errors
    /// When the kernel does not answer at all.
    fn observe(&mut self, scope: &[Object]) -> Result<Observed, MachineError>;

    /// The names of all links that exist.
    ///
    /// # Errors
    /// When the kernel does not answer.
    fn links(&mut self) -> Result<BTreeSet<IfName>, MachineError>;

    /// Makes one change. That it holds is for the caller to read back.
    ///
    /// # Errors
    /// When the machine refuses, with what it said.
    fn perform(&mut self, change: &Change, blobs: &Blobs) -> Result<(), MachineError>;

    /// Whether it does not run: it has files, and nothing else can be seen or changed.
    fn is_at_rest(&self) -> bool {
        false
    }

    /// Makes ready for a rollback: opens its connections anew, and removes what an interrupted write of `scope` left.
    ///
    /// Best effort: what matters of it shows when the states are looked at.
    fn refresh(&mut self, scope: &[Object]) {
        let _ = scope;
    }

    /// Removes those of `folders` that are empty.
    ///
    /// Best effort: an empty folder that stays does no harm.
    fn leave(&mut self, folders: &BTreeSet<FilePath>);

    /// Whether a condition holds now.
    ///
    /// # Errors
    /// When it does not hold, or could not be asked.
    fn require(&mut self, condition: &Condition) -> Result<(), MachineError>;
}

/// What a machine said when it could not do something.
#[derive(Debug, Error)]
pub enum MachineError {
    /// The kernel refused a netlink or sysfs operation.
    #[error("the kernel refused to set {object} to {asked}: {source}")]
    Refused {
        /// The object.
        object: Object,
        /// The state asked for.
        asked: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A file operation failed.
    #[error("cannot {operation} {path}: {source}")]
    File {
        /// The verb: "write", "read", "remove".
        operation: &'static str,
        /// The file.
        path: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A program that had to be run failed.
    #[error("`{program}` failed ({status}): {stderr}")]
    Program {
        /// Program and arguments, for the reader.
        program: String,
        /// How it ended.
        status: String,
        /// What it wrote to standard error, trimmed.
        stderr: String,
    },
    /// systemd or another service on D-Bus refused.
    #[error("{service} refused to {operation}: {source}")]
    Bus {
        /// The service.
        service: &'static str,
        /// What was asked.
        operation: String,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Something that was awaited did not come.
    #[error("{what} did not come within {seconds} s")]
    Timeout {
        /// What was awaited.
        what: String,
        /// For how long.
        seconds: u64,
    },
    /// The driver of an IPoIB link has no connected mode.
    #[error(
        "{link} cannot do connected mode: its driver offers no reliable connections for IPoIB \
         (bit 0x80 of the first byte of its hardware address is off), as mlx5 with enhanced IPoIB \
         and kernels without CONFIG_INFINIBAND_IPOIB_CM; ask for mode \"auto\" or \"datagram\", or, with \
         vendor OFED, load ib_ipoib with ipoib_enhanced=0"
    )]
    NoConnectedMode {
        /// The link.
        link: IfName,
    },
    /// A unit did not start or stop.
    #[error("{name} did not {action} ({result}){}", last_lines(.journal))]
    Unit {
        /// The unit.
        name: UnitName,
        /// "start" or "stop".
        action: &'static str,
        /// The result of systemd's job and of the unit: "failed, exit-code".
        result: String,
        /// The last lines of its journal; empty when there are none.
        journal: String,
    },
    /// A file system image has files and nothing that runs.
    #[error("{object} cannot be changed in an image: {IMAGE}")]
    Image {
        /// The object.
        object: Object,
    },
    /// A condition of a change does not hold.
    #[error("{0}")]
    Condition(String),
    /// The change makes no sense for this object: a fault in selvedge.
    #[error("{object} has no state `{state}` (a fault in selvedge, please report it)")]
    Impossible {
        /// The object.
        object: Object,
        /// The state asked for.
        state: String,
    },
    /// Netlink does not answer.
    #[error("cannot ask the kernel over netlink: {0}")]
    Netlink(String),
}

/// Why nothing but files can be seen or changed below `--root`.
pub(crate) const IMAGE: &str = "an image has no running kernel";

fn last_lines(journal: &str) -> String {
    if journal.is_empty() { String::new() } else { format!("; its last words:\n{journal}") }
}
