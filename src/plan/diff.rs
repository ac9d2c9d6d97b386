//! Where wanted and observed states differ.
//!
//! Only what is managed is compared: what the spec wants, and what selvedge
//! made earlier and the spec no longer names.

use std::collections::{BTreeMap, BTreeSet};

use super::{Desired, Wanted};
use crate::name::IfName;
use crate::state::{Change, ConfigSystem, Object, Origin, Owned, Reason, State, States};

/// The changes from `observed` to `desired`, in no particular order.
///
/// An owned object that is no longer desired goes back to the state it had
/// before selvedge first touched it. While something is deferred it is not yet
/// known what is desired, and nothing is taken for left over.
#[must_use]
pub fn diff(desired: &Desired, observed: &States, owned: &Owned) -> Vec<Change> {
    let stands = |object: &Object, wanted: &Wanted| {
        let is_file = matches!(observed.get(object), State::File { .. });
        wanted.provisional && is_file && owned.0.contains_key(object)
    };
    let serves = |object: &Object, wanted: &Wanted| {
        matches!(object, Object::Sysctl { key } if key.is_least()) && observed.get(object).is_more_than(&wanted.state)
    };
    let wanted = desired.items.iter().filter(|(object, wanted)| !stands(object, wanted) && !serves(object, wanted));
    let wanted = wanted.map(|(object, wanted)| change(object, wanted, observed));
    let left = owned.0.iter().filter(|(object, origin)| {
        desired.deferred.is_empty()
            && !desired.items.contains_key(object)
            && !follows_its_link(object, &origin.state)
            && !is_gone_with_its_link(object, observed)
            && !stays(object)
    });
    let returned = left.map(|(object, origin)| {
        let why = if edited(origin, &observed.get(object)) { EDITED } else { "no longer in the spec" };
        let back = Wanted { condition: origin.leaving.clone(), ..back_to(object, &origin.state, why) };
        change(object, &back, observed)
    });
    with_reloads(wanted.chain(returned).flatten().collect())
}

const EDITED: &str = "no longer in the spec; edited by hand, which is kept with the journal: a rollback brings it back";

/// Whether a file that selvedge made has other contents by now.
fn edited(origin: &Origin, found: &State) -> bool {
    origin.made.as_ref().is_some_and(|made| found.holds_other_contents(&[made]))
}

/// The changes that bring `observed` back to `before`, for a rollback.
#[must_use]
pub fn diff_back(before: &States, observed: &States) -> Vec<Change> {
    let returning = before.0.iter().filter(|(object, state)| {
        !follows_its_link(object, state)
            && !matches!(state, State::Unknown { .. })
            && !matches!(object, Object::Reload { .. })
    });
    with_reloads(
        returning
            .filter_map(|(object, state)| {
                change(object, &back_to(object, state, "rollback to the state before"), observed)
            })
            .collect(),
    )
}

fn back_to(object: &Object, state: &State, why: &str) -> Wanted {
    let disturbs = object.link().cloned().into_iter().collect();
    let reason = Reason(why.to_owned());
    Wanted { state: state.clone(), reason, disturbs, condition: None, leaving: None, provisional: false }
}

/// An attribute or interface is gone when its link or module is, never by an act of its own.
fn follows_its_link(object: &Object, state: &State) -> bool {
    *state == State::Absent
        && (object.is_attribute() || matches!(object, Object::Interface { .. } | Object::Sysctl { .. }))
}

/// A setting that is not there has nothing to go back from.
fn is_gone_with_its_link(object: &Object, observed: &States) -> bool {
    matches!(object, Object::Sysctl { .. }) && observed.get(object) == State::Absent
}

/// A module that others may use by now stays loaded when the spec no longer names it.
fn stays(object: &Object) -> bool {
    matches!(object, Object::Module { .. })
}

fn change(object: &Object, wanted: &Wanted, observed: &States) -> Option<Change> {
    let before = observed.get(object);
    let done = before == wanted.state || (rests(&wanted.state) && matches!(before, State::Stopped | State::Failed));
    (!done).then(|| Change {
        object: object.clone(),
        before,
        after: wanted.state.clone(),
        reason: wanted.reason.clone(),
        disturbs: wanted.disturbs.clone(),
        condition: wanted.condition.clone(),
    })
}

/// A unit that is not to run. One that waits for its next try does not rest.
fn rests(wanted: &State) -> bool {
    matches!(wanted, State::Stopped | State::Failed | State::Restarting)
}

/// To a program that runs as root it is the same file with other permissions, and no reason to disturb it;
/// networkd runs as a user of its own, and NetworkManager refuses a profile that others may read.
fn matters(change: &Change) -> bool {
    match (&change.object, &change.before, &change.after) {
        (Object::File { path }, State::File { digest: before, .. }, State::File { digest: after, .. })
            if before == after =>
        {
            matches!(ConfigSystem::reading(path), Some(ConfigSystem::Networkd | ConfigSystem::NetworkManager))
        }
        _ => true,
    }
}

/// Adds a reload for each program whose files change. netplan's output is read by networkd in turn.
fn with_reloads(mut changes: Vec<Change>) -> Vec<Change> {
    let mut reloads: BTreeMap<ConfigSystem, (usize, BTreeSet<IfName>)> = BTreeMap::new();
    let changing: Vec<ConfigSystem> = changes
        .iter()
        .filter_map(|change| match &change.object {
            Object::Unit { name } => Some(ConfigSystem::Unit(name.clone())),
            _ => None,
        })
        .collect();
    for change in changes.iter().filter(|change| matters(change)) {
        for system in readers(&change.object) {
            let disturbing =
                matches!(system, ConfigSystem::Netplan | ConfigSystem::Networkd | ConfigSystem::NetworkManager);
            let (files, disturbs) = reloads.entry(system).or_default();
            *files += 1;
            if disturbing {
                disturbs.extend(change.disturbs.iter().cloned());
            }
        }
    }
    // A unit reads its files when it starts, and one that is stopped has none to read.
    reloads.retain(|system, _| !changing.contains(system));
    changes.extend(reloads.into_iter().map(|(system, (files, disturbs))| {
        let why = format!("{files} of its files {} changed above", if files == 1 { "is" } else { "are" });
        reload(system, why, disturbs)
    }));
    changes
}

/// A reload of each of `systems`, whose files changed earlier.
pub fn reloads(systems: impl IntoIterator<Item = ConfigSystem>) -> impl Iterator<Item = Change> {
    systems.into_iter().map(|system| reload(system, "its files changed before".to_owned(), BTreeSet::new()))
}

fn reload(system: ConfigSystem, why: String, disturbs: BTreeSet<IfName>) -> Change {
    let object = Object::Reload { system };
    Change { object, before: State::Stale, after: State::Fresh, reason: Reason(why), disturbs, condition: None }
}

/// The programs that have to read `object` again when it changed.
pub fn readers(object: &Object) -> impl Iterator<Item = ConfigSystem> {
    let reader = match object {
        Object::File { path } => ConfigSystem::reading(path),
        _ => None,
    };
    let then = (reader == Some(ConfigSystem::Netplan)).then_some(ConfigSystem::Networkd);
    [reader, then].into_iter().flatten()
}
