//! Goes back to recorded states: looks again, and makes what differs as it was.
//!
//! Not a list of inverse commands, since one change can bring others (a mode
//! switch resets the MTU, a parent going down drops its children).

use std::collections::BTreeSet;

use super::Rollback;
use super::journal::{Record, Saved};
use super::log::Log;
use crate::machine::{Machine, MachineError};
use crate::name::IfName;
use crate::plan::{carried, diff_back, lost, order, readers, reloads};
use crate::rdma::IpoibMode;
use crate::state::{Blobs, Change, Condition, ConfigSystem, Digest, FilePath, Object, Observed, Reason, State, States};

/// Enough for what one restored object brings with it.
const MAX_ROUNDS: usize = 4;

/// When a rollback runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// On a running node: everything goes back.
    Running,
    /// At boot, before the network: files go back, and of what runs only what is there; the rest is made from the files.
    Boot,
    /// In an image: files go back, and nothing runs.
    AtRest,
}

/// Where a rollback goes, and from where.
#[derive(Debug, Clone, Copy)]
pub struct WayBack<'a> {
    /// The states to go back to.
    pub before: &'a States,
    /// The folders above files that were not there.
    pub missing: &'a BTreeSet<FilePath>,
    /// The changes that may have been made. Who reads such a file has to read it again, whoever put it back.
    pub changes: &'a [Change],
    /// Whether it is the end of the apply itself, so that what links carried before it is what they carry now.
    pub fresh: bool,
    /// When.
    pub when: When,
}

impl WayBack<'_> {
    /// Whether a file is somebody else's: neither as the transaction made it, nor as it was before.
    fn is_foreign(&self, object: &Object, found: &State) -> bool {
        let before = self.before.get(object);
        let made = self.changes.iter().filter(|change| change.object == *object).map(|change| &change.after);
        found.holds_other_contents(&made.chain([&before]).collect::<Vec<_>>())
    }

    /// The links that a step back can disturb: those of the change that it takes back, and what goes with a module.
    fn links(&self, step: &Change) -> BTreeSet<IfName> {
        let there = self.changes.iter().filter(|change| change.object == step.object);
        let mut links: BTreeSet<IfName> = there.flat_map(|change| change.disturbs.iter().cloned()).collect();
        links.extend(step.disturbs.iter().cloned());
        match (&step.object, &step.before) {
            (Object::Interface { .. }, State::Named { name }) => drop(links.insert(name.clone())),
            (Object::Module { .. }, _) if step.removes() => {
                let came =
                    self.before.0.iter().filter(|(object, state)| object.is_attribute() && **state == State::Absent);
                links.extend(came.filter_map(|(object, _)| object.link().cloned()));
            }
            _ => {}
        }
        links
    }

    /// What the links carry that is others', and has to be there afterwards.
    fn others(&self, observed: &States) -> BTreeSet<Object> {
        let is_others =
            |object: &&Object| matches!(object, Object::Route { .. }) || !self.before.0.contains_key(object);
        let now = carried(observed).filter(is_others);
        let then = carried(self.before).filter(|object| self.fresh && matches!(object, Object::Route { .. }));
        now.chain(then).cloned().collect()
    }

    /// The folders that the transaction made.
    fn made_folders(&self) -> BTreeSet<FilePath> {
        let made = self.changes.iter().filter(|change| !change.removes());
        let files = made.filter_map(|change| match &change.object {
            Object::File { path } => Some(path),
            _ => None,
        });
        files.flat_map(FilePath::folders).filter(|folder| self.missing.contains(folder)).collect()
    }
}

/// What the first changes of a way back can take from others.
pub struct Ahead {
    /// They, each with the links that it can disturb.
    pub disturbing: Vec<Change>,
    /// What must hold for the subnet managers that they stop.
    pub leaving: Vec<Condition>,
}

/// Looks ahead at the way back. Makes no change.
///
/// # Errors
/// When the machine cannot be looked at.
pub fn ahead<M: Machine>(machine: &mut M, way_back: &WayBack<'_>) -> Result<Ahead, MachineError> {
    let scope: Vec<Object> = way_back.before.0.keys().cloned().collect();
    let observed = machine.observe(&scope)?;
    let stale = way_back.changes.iter().flat_map(|change| readers(&change.object)).collect();
    let steps = steps(way_back, &observed.states, &stale);
    let stops = |step: &&Change| step.before == State::Running && step.after != State::Running;
    let conditions = |step: &Change| {
        let there = way_back.changes.iter().filter(move |change| change.object == step.object);
        there.filter_map(|change| change.condition.as_ref().map(Condition::of_leaving)).collect::<Vec<_>>()
    };
    let leaving = steps.iter().filter(stops).flat_map(conditions).collect();
    let with_links = |step: Change| Change { disturbs: way_back.links(&step), ..step };
    Ok(Ahead { disturbing: steps.into_iter().map(with_links).collect(), leaving })
}

/// Brings `machine` back, and writes how it went.
pub fn roll_back<M: Machine>(machine: &mut M, log: &mut dyn Log, way_back: &WayBack<'_>, cause: &str) -> Rollback {
    let mut failures = Vec::new();
    // The way back does not depend on this record: an open journal is rolled back in any case.
    if let Err(error) = log.append(&Record::RollingBack { cause: cause.to_owned() }) {
        failures.push(format!("cannot write the journal: {error}"));
    }
    let blobs = recall(log, way_back.before, &mut failures);
    let mut saved = Vec::new();
    let mut left = restore(machine, log, way_back, &blobs, &mut saved);
    machine.leave(&way_back.made_folders());
    if left.is_empty() {
        match log.append(&Record::RolledBack) {
            Ok(()) => return Rollback::Done { saved },
            Err(error) => left.push(format!("cannot write the journal: {error}")),
        }
    }
    failures.extend(left);
    // The failures are reported to the caller; that they cannot be written as well adds nothing.
    let _ = log.append(&Record::RollbackFailed { failures: failures.clone() });
    Rollback::Failed { saved, failures, journal: log.place() }
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
fn restore<M: Machine>(
    machine: &mut M,
    log: &mut dyn Log,
    way_back: &WayBack<'_>,
    blobs: &Blobs,
    saved: &mut Vec<Saved>,
) -> Vec<String> {
    let scope: Vec<Object> = way_back.before.0.keys().cloned().collect();
    // The files may be as they were while the program still has what it read in between.
    let mut stale: BTreeSet<ConfigSystem> =
        way_back.changes.iter().flat_map(|change| readers(&change.object)).collect();
    let mut failures = Vec::new();
    let mut left = Vec::new();
    machine.refresh(&scope);
    let mut others: Option<BTreeSet<Object>> = None;
    for round in 0..MAX_ROUNDS {
        let observed = match machine.observe(&scope) {
            Ok(observed) => observed,
            Err(error) => {
                failures = vec![error.to_string()];
                continue;
            }
        };
        let mut changes = steps(way_back, &observed.states, &stale);
        if round > 0 {
            changes.retain(|change| !is_cut_by_the_fabric(change, way_back.before));
        }
        let others = others.get_or_insert_with(|| way_back.others(&observed.states));
        if changes.is_empty() {
            for change in lost(others.iter(), &observed.states) {
                // Best effort: a route by an address that was ours is gone with it.
                let _ = machine.perform(&change, blobs);
            }
            return Vec::new();
        }
        failures.clear();
        for change in &changes {
            let kept = if way_back.is_foreign(&change.object, &change.before) {
                save(machine, log, change, &observed, saved)
            } else {
                Ok(())
            };
            match kept.and_then(|()| machine.perform(change, blobs)) {
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

/// Keeps a file of somebody else's beside it, before its place is taken.
fn save<M: Machine>(
    machine: &mut M,
    log: &mut dyn Log,
    change: &Change,
    observed: &Observed,
    saved: &mut Vec<Saved>,
) -> Result<(), MachineError> {
    let Some((file, copy)) = copy_of(&change.object, &change.before) else { return Ok(()) };
    let object = Object::File { path: copy.clone() };
    let there = machine.observe(std::slice::from_ref(&object))?.states.get(&object);
    let other = || MachineError::File {
        operation: "keep what somebody else wrote as",
        path: copy.to_string(),
        source: std::io::ErrorKind::AlreadyExists.into(),
    };
    if !matches!(there, State::Absent) && there.holds_other_contents(&[&change.before]) {
        return Err(other());
    }
    let one = Saved { file, copy: copy.clone() };
    // That the copy is there does not depend on this record.
    let _ = log.append(&Record::Saved(one.clone()));
    let reason = Reason("kept, since somebody else wrote it".to_owned());
    let after = change.before.clone();
    let keep = Change { object, before: there, after, reason, disturbs: BTreeSet::new(), condition: None };
    machine.perform(&keep, &observed.blobs)?;
    let found = machine.observe(std::slice::from_ref(&keep.object))?.states.get(&keep.object);
    if found != keep.after {
        return Err(other());
    }
    if !saved.contains(&one) {
        saved.push(one);
    }
    Ok(())
}

/// Where the contents of a file are kept: beside it, by a name that no program which reads that folder takes.
///
/// Their digest is in the name, so that no copy takes another's place.
fn copy_of(object: &Object, found: &State) -> Option<(FilePath, FilePath)> {
    let Object::File { path } = object else { return None };
    let digest = match found {
        State::File { digest, .. } => *digest,
        State::Symlink { target } => Digest::of(target.as_bytes()),
        _ => return None,
    };
    // Whatever is called `ifcfg-` and not a backup is configuration to its readers.
    let backup = if path.as_str().rsplit('/').next()?.starts_with("ifcfg-") { ".bak" } else { "" };
    let copy = format!("{path}.selvedge-saved-{:.8}{backup}", digest.to_string()).parse().ok()?;
    Some((path.clone(), copy))
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
        (When::AtRest, _) => object.is_persistent(),
        // It comes and goes with IPv6, and that with the MTU.
        (_, Object::LinkLocal { .. }) => observed.get(object) != State::Absent,
        (When::Running, _) => true,
        // A start would wait for the boot, which waits for this: what is to run is started from the files.
        (When::Boot, Object::Unit { .. }) => {
            matches!(state, State::Stopped | State::Failed | State::Restarting)
        }
        (When::Boot, _) => object.is_persistent() || observed.get(object) != State::Absent,
    };
    // Routes are never ours: see `WayBack::others`.
    let managed = before.0.iter().filter(|(object, _)| !matches!(object, Object::Route { .. }));
    let pairs = managed.filter(|(object, state)| restorable(object, state));
    pairs.map(|(object, state)| (object.clone(), state.clone())).collect()
}
