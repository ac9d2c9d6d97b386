//! Refuses changes that would cut the branch one sits on.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::IfName;
use crate::state::{Change, Object};

/// A link that must not be disturbed without a way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Protected {
    /// The link.
    pub link: IfName,
    /// What it carries: "the default route", "this SSH connection from 10.0.2.2".
    pub carries: String,
}

/// A change that is not made without `--confirm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The first change that would disturb the link.
    pub change: Change,
    /// The link and what it carries.
    pub protected: Protected,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, protected } = self;
        write!(f, "{} carries {}, and changing {} would disturb it", protected.link, protected.carries, change.object)
    }
}

/// The protected links that `changes` would disturb, each with its first change.
#[must_use]
pub fn guard(changes: &[Change], protected: &[Protected]) -> Vec<Refusal> {
    let refusal = |protected: &Protected| {
        let disturbing = |change: &&Change| disturbs(change) && change.disturbs.as_ref() == Some(&protected.link);
        changes.iter().find(disturbing).map(|change| Refusal { change: change.clone(), protected: protected.clone() })
    };
    protected.iter().filter_map(refusal).collect()
}

/// Adding an address or writing a file does not disturb a link; all else on it can.
fn disturbs(change: &Change) -> bool {
    match change.object {
        Object::Address { .. } => change.removes(),
        Object::File { .. } => false,
        _ => true,
    }
}
