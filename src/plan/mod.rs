//! From what is wanted and what is there to the changes that lead from one to the other.
//!
//! Desired and observed states come in, an ordered list of changes goes out.
//! Nothing here looks at a machine or changes one.

mod diff;
mod guard;
mod order;
#[cfg(test)]
mod tests;

pub use diff::{diff, diff_back, readers, reloads};
pub use guard::{Protected, Refusal, guard, refused};
pub use order::order;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::IfName;
use crate::state::{Blobs, Change, Condition, Object, Observed, Owned, Reason, State, States};

/// The state that the spec asks of one node, resolved with that node's facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired {
    /// Object by object.
    pub items: BTreeMap<Object, Wanted>,
    /// Contents of the files among them.
    pub blobs: Blobs,
    /// What can only be known once earlier changes are made.
    pub deferred: Vec<Deferred>,
    /// What the reader should know: choices that were made for him, and why.
    pub notes: Vec<String>,
    /// Of a host that does not run: what is not on disk is neither looked at nor changed.
    pub at_rest: bool,
}

/// A wanted state and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The state.
    pub state: State,
    /// Why.
    pub reason: Reason,
    /// The links whose traffic a change of this object can disturb.
    pub disturbs: BTreeSet<IfName>,
    /// What must hold when it is changed to this state.
    pub condition: Option<Condition>,
    /// What must hold when it goes back, once the spec no longer names it.
    pub leaving: Option<Condition>,
    /// Made without what is deferred: good for the first time, and no reason to change what was made with it.
    pub provisional: bool,
}

/// Something that the spec asks for and that cannot be resolved yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deferred {
    /// What is asked: "IPoIB mode, MTU and address of mlx5_0 port 1".
    pub what: String,
    /// What it waits for.
    pub until: String,
}

/// The addresses and routes that links have.
pub fn carried(states: &States) -> impl Iterator<Item = &Object> {
    let there = states.0.iter().filter(|(object, state)| object.is_carried() && **state == State::Present);
    there.map(|(object, _)| object)
}

/// The changes that put back those of `objects` that are gone from a link that is up.
///
/// A network manager that reads a changed file configures its link anew, and drops what the file does not name.
#[must_use]
pub fn lost<'a>(objects: impl Iterator<Item = &'a Object>, observed: &States) -> Vec<Change> {
    let is_lost = |object: &&Object| {
        let link = object.link().map(|link| Object::LinkUp { link: link.clone() });
        let is_up = link.is_some_and(|link| observed.get(&link) == State::Up);
        is_up && observed.0.get(object).is_none_or(|state| *state == State::Absent)
    };
    let back = |object: &Object| Change {
        object: object.clone(),
        before: State::Absent,
        after: State::Present,
        reason: Reason("it was there before, and whoever configured the link anew dropped it".to_owned()),
        disturbs: BTreeSet::new(),
        condition: None,
    };
    order(objects.filter(is_lost).map(back).collect())
}

impl Desired {
    /// Adds a wanted state; the link that it disturbs is the object's own.
    pub fn want(&mut self, object: Object, state: State, reason: impl Into<String>) -> &mut Wanted {
        let disturbs = object.link().cloned().into_iter().collect();
        let reason = Reason(reason.into());
        let wanted = Wanted { state, reason, disturbs, condition: None, leaving: None, provisional: false };
        self.items.entry(object).insert_entry(wanted).into_mut()
    }

    /// What of it is to be on disk, for a host that does not run. Nothing is left for later: all else follows at boot.
    #[must_use]
    pub fn on_disk(mut self) -> Self {
        self.items.retain(|object, _| object.is_persistent());
        self.deferred.clear();
        self.at_rest = true;
        self
    }

    /// The objects to look at before a diff: all that is wanted and all that is owned.
    #[must_use]
    pub fn scope(&self, owned: &Owned) -> Vec<Object> {
        let mut scope: Vec<Object> = self.items.keys().chain(owned.0.keys()).cloned().collect();
        scope.sort();
        scope.dedup();
        scope.retain(|object| !self.at_rest || object.is_persistent());
        scope
    }

    /// What the links carried `before` that is others', and is gone now.
    #[must_use]
    pub fn lost(&self, before: &States, observed: &States, owned: &Owned) -> Vec<Change> {
        let is_others = |object: &Object| !self.items.contains_key(object) && !owned.0.contains_key(object);
        lost(carried(before).filter(|object| is_others(object)), observed)
    }

    /// The ordered changes that lead from `observed` to this.
    #[must_use]
    pub fn changes(&self, observed: &Observed, owned: &Owned) -> Vec<Change> {
        let mut changes = diff(self, &observed.states, owned);
        changes.retain(|change| !self.at_rest || change.object.is_persistent());
        order(changes)
    }
}
