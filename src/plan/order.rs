//! The order in which changes are made.
//!
//! What a reboot reads comes first, then what runs, from the parent link
//! outwards. Additions come before removals, and removals run inwards. A unit
//! is stopped before its files go. First of all comes the unit that undoes the
//! rest if it is cut off, and it is the last to go.

use crate::state::{Change, FilePath, Object, RECOVER_ENABLEMENT, RECOVER_UNIT, State};

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
    SeatBelt,
    StopUnits,
    WriteFiles,
    RemoveFiles,
    Reload,
    Live,
    Remove,
    UnfastenSeatBelt,
}

/// What undoes the rest if it is cut off.
fn is_seat_belt(path: &FilePath) -> bool {
    [RECOVER_UNIT, RECOVER_ENABLEMENT].contains(&path.as_str())
}

fn phase(change: &Change) -> Phase {
    match (&change.object, &change.after) {
        (Object::File { path }, State::Absent) if is_seat_belt(path) => Phase::UnfastenSeatBelt,
        (Object::File { path }, _) if is_seat_belt(path) => Phase::SeatBelt,
        (Object::Unit { .. }, State::Stopped | State::Failed | State::Restarting | State::Absent) => Phase::StopUnits,
        (Object::File { .. }, State::Absent) => Phase::RemoveFiles,
        (Object::File { .. }, _) => Phase::WriteFiles,
        (Object::Reload { .. }, _) => Phase::Reload,
        (_, State::Absent) => Phase::Remove,
        _ => Phase::Live,
    }
}
