//! The one currency: objects of a node, their states, and changes between them.
//!
//! The dry run prints changes, the journal stores them, apply performs them and
//! drift reports them. Values only; nothing here touches a machine.

mod blobs;
mod change;
mod object;
mod path;
mod route;
mod sysctl;
mod value;

pub use blobs::{Blobs, Digest};
pub use change::{Change, Condition, Reason};
pub use object::{ConfigSystem, OPENSM_FOLDER, Object, RECOVER_ENABLEMENT, RECOVER_UNIT, opensm_unit};
pub use path::{FilePath, PathError};
pub use route::{MAIN_TABLE, Route};
pub use sysctl::{IpFamily, LinkSetting, SysctlKey};
pub use value::{AddressGeneration, State};

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What is known of a set of objects. In JSON a list of pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(Object, State)>", into = "Vec<(Object, State)>")]
pub struct States(pub BTreeMap<Object, State>);

impl States {
    /// The state of `object`; `Unknown` when it was not looked at.
    #[must_use]
    pub fn get(&self, object: &Object) -> State {
        self.0.get(object).cloned().unwrap_or_else(|| State::Unknown { why: "not looked at".to_owned() })
    }
}

impl From<Vec<(Object, State)>> for States {
    fn from(pairs: Vec<(Object, State)>) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl From<States> for Vec<(Object, State)> {
    fn from(states: States) -> Self {
        states.0.into_iter().collect()
    }
}

impl FromIterator<(Object, State)> for States {
    fn from_iter<I: IntoIterator<Item = (Object, State)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// What a look at the machine gave: states, and the contents of the files among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// The objects asked for, and every address and attribute of the links among them.
    pub states: States,
    /// File contents by digest.
    pub blobs: Blobs,
    /// The folders above the files asked for that are not there.
    pub missing: BTreeSet<FilePath>,
}

/// What selvedge made or changed on this node, committed together with the journal.
///
/// What leaves the spec goes back to the state it had before. In JSON a list of pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(Object, Origin)>", into = "Vec<(Object, Origin)>")]
pub struct Owned(pub BTreeMap<Object, Origin>);

/// Where an owned object came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its state before selvedge first changed it.
    pub state: State,
    /// What must hold when it goes back to that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Condition>,
    /// What selvedge last made of a file: what is there when it goes back can be somebody else's by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<State>,
    /// The folders above a file that selvedge made for it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub folders: BTreeSet<FilePath>,
}

impl Origin {
    /// The origin of an object that was in `state`.
    #[must_use]
    pub fn of(state: State) -> Self {
        Self { state, leaving: None, made: None, folders: BTreeSet::new() }
    }
}

impl From<Vec<(Object, Origin)>> for Owned {
    fn from(pairs: Vec<(Object, Origin)>) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl From<Owned> for Vec<(Object, Origin)> {
    fn from(owned: Owned) -> Self {
        owned.0.into_iter().collect()
    }
}
