//! Goes back to recorded states: looks again, and makes what differs as it was.
//!
//! Not a list of inverse commands, since one change can bring others (a mode
//! switch resets the MTU, a parent going down drops its children).

use std::collections::BTreeSet;

use super::Rollback;
use super::journal::Record;
use super::log::Log;
use crate::machine::Machine;
use crate::plan::{diff_back, order, readers, reloads};
use crate::rdma::IpoibMode;
use crate::state::{Blobs, Change, ConfigSystem, Object, State, States};

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

/// Where a rollback goes, and from where.
#[derive(Debug, Clone, Copy)]
pub struct WayBack<'a> {
    /// The states to go back to.
    pub before: &'a States,
    /// The objects that may have been changed. Who reads such a file has to read it again, whoever put it back.
    pub touched: &'a BTreeSet<Object>,
    /// When.
    pub when: When,
}

/// Brings `machine` back, and writes how it went.
pub fn roll_back<M: Machine>(machine: &mut M, log: &mut dyn Log, way_back: &WayBack<'_>, cause: &str) -> Rollback {
    let mut failures = Vec::new();
    // The way back does not depend on this record: an open journal is rolled back in any case.
    if let Err(error) = log.append(&Record::RollingBack { cause: cause.to_owned() }) {
        failures.push(format!("cannot write the journal: {error}"));
    }
    let blobs = recall(log, way_back.before, &mut failures);
    let mut left = restore(machine, way_back, &blobs);
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
fn restore<M: Machine>(machine: &mut M, way_back: &WayBack<'_>, blobs: &Blobs) -> Vec<String> {
    let scope: Vec<Object> = way_back.before.0.keys().cloned().collect();
    // The files may be as they were while the program still has what it read in between.
    let mut stale: BTreeSet<ConfigSystem> = way_back.touched.iter().flat_map(readers).collect();
    let mut failures = Vec::new();
    let mut left = Vec::new();
    machine.refresh(&scope);
    for round in 0..MAX_ROUNDS {
        let observed = match machine.observe(&scope) {
            Ok(observed) => observed.states,
            Err(error) => {
                failures = vec![error.to_string()];
                continue;
            }
        };
        let mut changes = steps(way_back, &observed, &stale);
        if round > 0 {
            changes.retain(|change| !is_cut_by_the_fabric(change, way_back.before));
        }
        if changes.is_empty() {
            return Vec::new();
        }
        failures.clear();
        for change in &changes {
            match machine.perform(change, blobs) {
                Ok(()) => note_readers(change, &mut stale),
                Err(error) => failures.push(format!("{}: {error}", change.object)),
            }
        }
        left = changes.into_iter().map(|change| change.object.to_string()).collect();
    }
    if failures.is_empty() {
        failures.push(format!("restored, and it does not hold: {}", left.join(", ")));
    }
    failures
}

fn steps(way_back: &WayBack<'_>, observed: &States, stale: &BTreeSet<ConfigSystem>) -> Vec<Change> {
    let mut changes = diff_back(&within(way_back.before, observed, way_back.when), observed);
    let starts = |system: &ConfigSystem| {
        let ConfigSystem::Unit(name) = system else { return false };
        changes.iter().any(|change| change.object == Object::Unit { name: name.clone() })
    };
    let is_there =
        |system: &ConfigSystem| changes.iter().any(|change| change.object == Object::Reload { system: system.clone() });
    let missing: Vec<ConfigSystem> =
        stale.iter().filter(|system| !is_there(system) && !starts(system)).cloned().collect();
    changes.extend(reloads(missing));
    order(changes)
}

/// Whether a datagram MTU was set and then cut to the one of the multicast groups.
///
/// The kernel keeps their MTU from the moment the link first joined one, also when no subnet manager is left: a
/// larger one from before that moment can be asked for again, and does not come back until `ib_ipoib` is loaded anew.
fn is_cut_by_the_fabric(change: &Change, before: &States) -> bool {
    let (Object::LinkMtu { link }, State::Mtu { bytes: found }, State::Mtu { bytes: asked }) =
        (&change.object, &change.before, &change.after)
    else {
        return false;
    };
    let mode = before.get(&Object::LinkMode { link: link.clone() });
    mode == State::Mode { mode: IpoibMode::Datagram } && found < asked
}

/// Keeps book of the programs that have not read their files since these last changed.
fn note_readers(change: &Change, stale: &mut BTreeSet<ConfigSystem>) {
    match &change.object {
        Object::Reload { system } => {
            stale.remove(system);
        }
        // It reads its files when it starts, and one that does not run reads none.
        Object::Unit { name } => {
            stale.remove(&ConfigSystem::Unit(name.clone()));
        }
        object => stale.extend(readers(object)),
    }
}

/// The states that can and need to be restored now.
fn within(before: &States, observed: &States, when: When) -> States {
    let restorable = |object: &Object, state: &State| match (when, object) {
        (When::Running, _) => true,
        // A start would wait for the boot, which waits for this: what is to run is started from the files.
        (When::Boot, Object::Unit { .. }) => matches!(state, State::Stopped | State::Failed),
        (When::Boot, _) => object.is_persistent() || observed.get(object) != State::Absent,
    };
    let pairs = before.0.iter().filter(|(object, state)| restorable(object, state));
    pairs.map(|(object, state)| (object.clone(), state.clone())).collect()
}
