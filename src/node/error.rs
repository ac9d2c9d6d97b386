//! Why something could not be done on this machine, in words and as an exit code.

use std::path::PathBuf;

use thiserror::Error;

use crate::apply::recover::UndoError;
use crate::apply::store::StoreError;
use crate::apply::{ApplyError, Rollback};
use crate::compile::CompileError;
use crate::count::counted;
use crate::exit;
use crate::facts::FactsError;
use crate::machine::MachineError;
use crate::name::{HostName, Label};
use crate::resolve::ResolveFaults;
use crate::spec::{Faults, Look};

/// Why something could not be done on this machine.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The spec has faults.
    #[error("the spec has {}", counted(.0.faults.len(), "fault"))]
    Spec(Faults),
    /// The spec asks nothing of this host.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The host cannot be looked at.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// The host cannot have what the spec asks.
    #[error(transparent)]
    Resolve(#[from] ResolveFaults),
    /// The machine cannot be looked at.
    #[error("cannot look at this machine: {0}")]
    Machine(#[from] MachineError),
    /// The apply did not succeed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The journals cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing to confirm or to undo.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// An earlier apply waits for its confirmation.
    #[error("the last apply waits for its confirmation; give `selvedge confirm` or `selvedge rollback` first")]
    Awaiting,
    /// An earlier apply was cut off, and undoing it failed.
    #[error("an earlier apply was cut off and cannot be undone: {0}")]
    Torn(Rollback),
    /// An earlier apply was undone, and then this could not be done.
    #[error("{undone}; then: {then}")]
    AfterUndoing {
        /// What was undone.
        undone: String,
        /// What went wrong afterwards.
        then: Box<SessionError>,
    },
    /// The host is not on the fabric.
    #[error("the spec gives `{host}` no port on the fabric `{fabric}`; name one with --device")]
    NoPortOn {
        /// The host.
        host: HostName,
        /// The fabric.
        fabric: Label,
    },
    /// The fabric cannot be asked for its subnet managers.
    #[error(transparent)]
    Managers(#[from] crate::sm::umad::StatusError),
    /// Signals cannot be held back.
    #[error("cannot hold signals back while this machine is changed: {0}")]
    Signals(#[source] std::io::Error),
    /// A link in an image's store could lead out of it.
    #[error("{0} is a symbolic link, and selvedge makes none there: look where it leads, then remove it")]
    StoreLink(PathBuf),
    /// Something in an image's store that selvedge did not make.
    #[error("{0} is none of the files and folders that selvedge makes there: look what it is, then remove it")]
    StoreKind(PathBuf),
    /// `--confirm` on an image.
    #[error("an image has nothing to undo in time: --confirm is for a running node")]
    ConfirmOnImage,
}

impl SessionError {
    /// Its exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Apply(error) if error.is_torn() => exit::TORN,
            Self::Torn(_) => exit::TORN,
            Self::AfterUndoing { then, .. } => then.code(),
            _ => exit::FAILED,
        }
    }

    /// In words: all faults of a spec, or the error with its causes.
    #[must_use]
    pub fn message(&self, look: Look) -> String {
        match self {
            Self::Spec(faults) => exit::rendered(faults, look),
            other if exit::is_denied(other) && !nix::unistd::geteuid().is_root() => {
                format!("this needs root, or --sudo for another node: {}", exit::causes(other).join(": "))
            }
            other => exit::causes(other).join(": "),
        }
    }
}
