//! The order in which changes are made.
//!
//! What a reboot reads comes first, then what runs, from the parent link
//! outwards. Additions come before removals, and removals run inwards. A unit
//! is stopped before its files go.

use crate::state::{Change, Object, State};

/// Sorts `changes` into the order in which they are made.
#[must_use]
pub fn order(mut changes: Vec<Change>) -> Vec<Change> {
    changes.sort_by(|a, b| {
        let phases = phase(a).cmp(&phase(b));
        phases.then_with(|| match phase(a) {
            Phase::Remove => b.object.cmp(&a.object),
            _ => a.object.cmp(&b.object),
        })
    });
    changes
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    StopUnits,
    WriteFiles,
    RemoveFiles,
    Reload,
    Live,
    Remove,
}

fn phase(change: &Change) -> Phase {
    match (&change.object, &change.after) {
        (Object::Unit { .. }, State::Stopped | State::Absent) => Phase::StopUnits,
        (Object::File { .. }, State::Absent) => Phase::RemoveFiles,
        (Object::File { .. }, _) => Phase::WriteFiles,
        (Object::Reload { .. }, _) => Phase::Reload,
        (_, State::Absent) => Phase::Remove,
        _ => Phase::Live,
    }
}
