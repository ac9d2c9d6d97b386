//! Why an apply did not succeed, and what became of the changes before that.

use std::fmt;

use thiserror::Error;

use super::journal::Saved;
use crate::machine::MachineError;
use crate::plan::Refusal;
use crate::state::{Change, Object, State};

/// An apply that did not succeed.
#[derive(Debug, Error)]
#[error("{cause}; {rollback}")]
pub struct ApplyError {
    /// What went wrong.
    pub cause: Box<Cause>,
    /// What became of the changes made before.
    pub rollback: Rollback,
}

/// What went wrong in an apply.
#[derive(Debug, Error)]
pub enum Cause {
    /// What is wanted could not be worked out.
    #[error("{0}")]
    Desire(Box<dyn std::error::Error + Send + Sync>),
    /// The machine could not be looked at.
    #[error("cannot look at this node: {0}")]
    Observe(#[source] MachineError),
    /// The state of an object before the change cannot be seen, so it could not be restored.
    #[error("cannot see {object} as it is now, so it could not be put back: {why}")]
    BeforeUnknown {
        /// The object.
        object: Object,
        /// What stood in the way.
        why: String,
    },
    /// A link that carries something vital would be disturbed.
    #[error("{}. Give --confirm SECONDS to have it undone unless you confirm in time", refusals(.0))]
    CutsOwnBranch(Vec<Refusal>),
    /// The journal cannot be written.
    #[error("cannot write the journal: {0}")]
    Journal(#[source] std::io::Error),
    /// The timer that would undo it cannot be set.
    #[error("cannot have it undone unless confirmed: {0}")]
    Timer(#[source] std::io::Error),
    /// It was told to stop before it was complete.
    #[error("stopped by {why}")]
    Stopped {
        /// By what: "SIGINT".
        why: String,
    },
    /// A change failed.
    #[error("{change}: {source}")]
    Change {
        /// The change.
        change: Box<Change>,
        /// What the machine said.
        source: MachineError,
    },
    /// A change was made without complaint and does not hold.
    #[error("{change}: the machine took it, and reads back `{found}`")]
    ReadBack {
        /// The change.
        change: Box<Change>,
        /// The state read back.
        found: State,
    },
    /// The changes do not come to rest.
    #[error("after {rounds} rounds {left} still differs from what was asked")]
    NoRest {
        /// How many rounds were made.
        rounds: usize,
        /// The first object that differs.
        left: Object,
    },
}

/// What became of the changes that were made before a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rollback {
    /// Nothing had been changed.
    NotNeeded,
    /// All is as it was.
    Done {
        /// What somebody else had put in its place.
        saved: Vec<Saved>,
    },
    /// It failed too.
    Failed {
        /// What somebody else had put in its place, as far as it was put back.
        saved: Vec<Saved>,
        /// Object by object, what went wrong.
        failures: Vec<String>,
        /// Where the journal is.
        journal: String,
    },
}

impl Rollback {
    /// The files of somebody else's that were kept under another name.
    #[must_use]
    pub fn saved(&self) -> &[Saved] {
        match self {
            Self::NotNeeded => &[],
            Self::Done { saved } | Self::Failed { saved, .. } => saved,
        }
    }
}

impl fmt::Display for Rollback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNeeded => f.write_str("nothing was changed"),
            Self::Done { .. } => f.write_str("all changes were rolled back, the node is as it was"),
            Self::Failed { failures, journal, .. } => {
                write!(f, "THE ROLLBACK FAILED: {}; the states to restore are in {journal}", failures.join("; "))
            }
        }?;
        self.saved().iter().try_for_each(|saved| write!(f, "; {saved}"))
    }
}

impl From<Cause> for ApplyError {
    /// A failure before the first change.
    fn from(cause: Cause) -> Self {
        Self { cause: Box::new(cause), rollback: Rollback::NotNeeded }
    }
}

/// Each refusal in words.
pub(super) fn refusals(refusals: &[Refusal]) -> String {
    refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("; ")
}

impl ApplyError {
    /// True when the rollback failed: the node is neither as it was nor as it was asked to be.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        matches!(self.rollback, Rollback::Failed { .. })
    }
}
