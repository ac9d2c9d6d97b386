//! Goes back to recorded states: looks again, and makes what differs as it was.
//!
//! Not a list of inverse commands, since one change can bring others (a mode
//! switch resets the MTU, a parent going down drops its children).

use super::Rollback;
use super::journal::Record;
use super::log::Log;
use crate::machine::Machine;
use crate::plan::{diff_back, order};
use crate::state::{Blobs, Object, State, States};

/// Enough for what one restored object brings with it.
const MAX_ROUNDS: usize = 4;

/// When a rollback runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// On a running node: everything goes back.
    Running,
    /// At boot, before the network: files go back, and of what runs only what is there; the rest is made from the files.
    Boot,
}

/// Brings `machine` back to `before`, and writes how it went.
pub fn roll_back<M: Machine>(machine: &mut M, log: &mut dyn Log, before: &States, cause: &str, when: When) -> Rollback {
    let mut failures = Vec::new();
    // The way back does not depend on this record: an open journal is rolled back in any case.
    if let Err(error) = log.append(&Record::RollingBack { cause: cause.to_owned() }) {
        failures.push(format!("cannot write the journal: {error}"));
    }
    let blobs = recall(log, before, &mut failures);
    let mut left = restore(machine, before, &blobs, when);
    if left.is_empty() {
        match log.append(&Record::RolledBack) {
            Ok(()) => return Rollback::Done,
            Err(error) => left.push(format!("cannot write the journal: {error}")),
        }
    }
    failures.extend(left);
    // The failures are reported to the caller; that they cannot be written as well adds nothing.
    let _ = log.append(&Record::RollbackFailed { failures: failures.clone() });
    Rollback::Failed { failures, journal: log.place() }
}

fn recall(log: &mut dyn Log, before: &States, failures: &mut Vec<String>) -> Blobs {
    let mut blobs = Blobs::default();
    for (object, state) in &before.0 {
        let State::File { digest, .. } = state else { continue };
        match log.recall(digest) {
            Ok(bytes) => {
                blobs.insert(bytes);
            }
            Err(error) => failures.push(format!("{object}: cannot read its kept contents: {error}")),
        }
    }
    blobs
}

/// Rounds of look and restore; gives what could not be restored.
fn restore<M: Machine>(machine: &mut M, before: &States, blobs: &Blobs, when: When) -> Vec<String> {
    let scope: Vec<Object> = before.0.keys().cloned().collect();
    let mut failures = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let observed = match machine.observe(&scope) {
            Ok(observed) => observed.states,
            Err(error) => return vec![error.to_string()],
        };
        let changes = order(diff_back(&within(before, &observed, when), &observed));
        if changes.is_empty() {
            return Vec::new();
        }
        failures.clear();
        for change in changes {
            if let Err(error) = machine.perform(&change, blobs) {
                failures.push(format!("{}: {error}", change.object));
            }
        }
    }
    if failures.is_empty() {
        failures.push("the restored states do not hold".to_owned());
    }
    failures
}

/// The states that can and need to be restored now.
fn within(before: &States, observed: &States, when: When) -> States {
    let restorable = |object: &Object| match when {
        When::Running => true,
        When::Boot => object.is_persistent() || observed.get(object) != State::Absent,
    };
    let pairs = before.0.iter().filter(|(object, _)| restorable(object));
    pairs.map(|(object, state)| (object.clone(), state.clone())).collect()
}
