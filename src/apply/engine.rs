//! Makes the changes, reads each back, and goes back when one fails.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::journal::{FORMAT, Record};
use super::log::Log;
use super::rollback::{WayBack, When, roll_back};
use super::{ApplyError, Cause};
use crate::machine::{Machine, MachineError};
use crate::name::IfName;
use crate::plan::{Deferred, Desired, Protected, guard};
use crate::state::{Blobs, Change, FilePath, Object, Observed, Origin, Owned, State, States};

/// A mode switch resets the MTU, a module brings its interface: a few rounds settle all of it.
const MAX_ROUNDS: usize = 6;

/// How an apply is to be done.
#[derive(Clone, Default)]
pub struct Options<'a> {
    /// Links that must not be disturbed.
    pub protected: Vec<Protected>,
    /// Disturb them all the same, since all is undone unless it is confirmed.
    pub confirm: Option<Confirm<'a>>,
}

/// Sees to it that the transaction whose journal is at a place is undone unless confirmed.
///
/// Asked once all changes hold, so that the time to confirm starts then. Gives the deadline, seconds since the epoch.
pub type Confirm<'a> = &'a dyn Fn(&str) -> std::io::Result<u64>;

/// What an apply did.
#[derive(Debug)]
pub struct Applied {
    /// The changes in the order in which they were made; empty when the node was in sync.
    pub changes: Vec<Change>,
    /// Choices that were made for the reader.
    pub notes: Vec<String>,
    /// What could not be resolved even after the changes.
    pub deferred: Vec<Deferred>,
    /// Undone unless confirmed by then, seconds since the epoch.
    pub confirm_by: Option<u64>,
}

/// Works out what is wanted. Asked again after each round, since a change can bring new facts.
pub type Desire<'a, M> = &'a mut dyn FnMut(&mut M) -> Result<Desired, Box<dyn std::error::Error + Send + Sync>>;

/// Opens the journal. Asked for only when there is something to change.
pub type OpenLog<'a> = &'a mut dyn FnMut() -> std::io::Result<Box<dyn Log>>;

/// Sees each change before it is made, and can stop the apply there, saying why.
pub type Watch<'a> = &'a mut dyn FnMut(&Change) -> ControlFlow<String>;

/// Brings `machine` to what is desired, or leaves it as it was.
///
/// # Errors
/// [`ApplyError`], after a rollback where something had been changed.
pub fn apply<M: Machine>(
    machine: &mut M,
    desire: Desire<'_, M>,
    owned: &Owned,
    options: &Options<'_>,
    open_log: OpenLog<'_>,
    watch: Watch<'_>,
) -> Result<Applied, ApplyError> {
    let desired = desire(machine).map_err(Cause::Desire)?;
    let observed = machine.observe(&desired.scope(owned)).map_err(Cause::Observe)?;
    let changes = desired.changes(&observed, owned);
    if changes.is_empty() {
        return Ok(Applied { changes, notes: desired.notes, deferred: desired.deferred, confirm_by: None });
    }
    check(&changes, options)?;
    let links = machine.links().map_err(Cause::Observe)?;
    let mut log = open_log().map_err(Cause::Journal)?;
    let mut run = Run {
        machine,
        log: &mut *log,
        options,
        owned,
        links,
        before: States::default(),
        missing: BTreeSet::new(),
        announced: Vec::new(),
        made: Vec::new(),
    };
    if let Err(error) = run.begin(&observed) {
        run.log.abandon();
        return Err(Cause::Journal(error).into());
    }
    let made = run.rounds(desired, changes, desire, watch).and_then(|desired| run.end(desired));
    made.map_err(|cause| {
        let way_back = WayBack {
            before: &run.before,
            missing: &run.missing,
            changes: &run.announced,
            fresh: true,
            when: When::Running,
        };
        let rollback = roll_back(run.machine, run.log, &way_back, &cause.to_string());
        ApplyError { cause: Box::new(cause), rollback }
    })
}

/// What must be sure before a change: that it can be undone, and that it cuts nothing off.
fn check(changes: &[Change], options: &Options<'_>) -> Result<(), Cause> {
    for change in changes {
        if let (State::Unknown { why }, false) = (&change.before, matches!(change.object, Object::Reload { .. })) {
            return Err(Cause::BeforeUnknown { object: change.object.clone(), why: why.clone() });
        }
    }
    let refusals = guard(changes, &options.protected);
    if refusals.is_empty() || options.confirm.is_some() { Ok(()) } else { Err(Cause::CutsOwnBranch(refusals)) }
}

struct Run<'a, M> {
    machine: &'a mut M,
    log: &'a mut dyn Log,
    options: &'a Options<'a>,
    owned: &'a Owned,
    /// The links that existed at the start.
    links: BTreeSet<IfName>,
    /// The states to go back to.
    before: States,
    /// The folders above the files that were not there.
    missing: BTreeSet<FilePath>,
    /// The changes that were announced in the journal, made or not.
    announced: Vec<Change>,
    made: Vec<Change>,
}

impl<M: Machine> Run<'_, M> {
    fn begin(&mut self, observed: &Observed) -> std::io::Result<()> {
        self.before = observed.states.clone();
        self.missing = observed.missing.clone();
        self.log.keep(&observed.blobs)?;
        self.log.append(&Record::Begin {
            format: FORMAT,
            selvedge: env!("CARGO_PKG_VERSION").to_owned(),
            before: self.before.clone(),
            owned: self.owned.clone(),
            missing: self.missing.clone(),
        })
    }

    fn rounds(
        &mut self,
        mut desired: Desired,
        mut changes: Vec<Change>,
        desire: Desire<'_, M>,
        watch: Watch<'_>,
    ) -> Result<Desired, Cause> {
        for _ in 0..MAX_ROUNDS {
            for change in changes {
                if let ControlFlow::Break(why) = watch(&change) {
                    return Err(Cause::Stopped { why });
                }
                self.make(&desired, change)?;
            }
            desired = desire(self.machine).map_err(Cause::Desire)?;
            let observed = self.machine.observe(&desired.scope(self.owned)).map_err(Cause::Observe)?;
            changes = desired.changes(&observed, self.owned);
            if changes.is_empty() {
                let lost = desired.lost(&self.before, &observed.states, self.owned);
                desired.notes.extend(self.put_back(lost)?);
                return Ok(desired);
            }
            self.widen(&observed).map_err(Cause::Journal)?;
            check(&changes, self.options)?;
        }
        Err(Cause::NoRest { rounds: MAX_ROUNDS, left: changes.swap_remove(0).object })
    }

    /// Puts back what is others'; gives what could not be put back, such as a route by an address that is gone.
    fn put_back(&mut self, lost: Vec<Change>) -> Result<Vec<String>, Cause> {
        let mut notes = Vec::new();
        for change in lost {
            self.log.append(&Record::Doing { change: change.clone() }).map_err(Cause::Journal)?;
            match self.machine.perform(&change, &Blobs::default()) {
                Ok(()) => self.made.push(change),
                Err(error) => notes.push(format!("{} is gone and could not be put back: {error}", change.object)),
            }
        }
        Ok(notes)
    }

    /// Records the states of objects that came into view. What is on a link that did not exist was absent.
    fn widen(&mut self, observed: &Observed) -> std::io::Result<()> {
        let is_new = |object: &Object| object.link().is_some_and(|link| !self.links.contains(link));
        let unseen = observed.states.0.iter().filter(|(object, _)| !self.before.0.contains_key(object));
        let before: States = unseen
            .map(|(object, state)| (object.clone(), if is_new(object) { State::Absent } else { state.clone() }))
            .collect();
        if before.0.is_empty() {
            return Ok(());
        }
        self.log.keep(&observed.blobs)?;
        self.before.0.extend(before.0.clone());
        self.missing.extend(observed.missing.clone());
        self.log.append(&Record::Seen { before, missing: observed.missing.clone() })
    }

    fn make(&mut self, desired: &Desired, change: Change) -> Result<(), Cause> {
        let refused = |source: MachineError| Cause::Change { change: Box::new(change.clone()), source };
        if let Some(condition) = &change.condition {
            self.machine.require(condition).map_err(refused)?;
        }
        self.log.append(&Record::Doing { change: change.clone() }).map_err(Cause::Journal)?;
        self.announced.push(change.clone());
        self.machine.perform(&change, &desired.blobs).map_err(refused)?;
        if !matches!(change.object, Object::Reload { .. }) {
            let observed = self.machine.observe(std::slice::from_ref(&change.object)).map_err(refused)?;
            let found = observed.states.get(&change.object);
            if found != change.after {
                return Err(Cause::ReadBack { change: Box::new(change), found });
            }
        }
        self.log.append(&Record::Done { object: change.object.clone() }).map_err(Cause::Journal)?;
        self.made.push(change);
        Ok(())
    }

    fn end(&mut self, desired: Desired) -> Result<Applied, Cause> {
        let owned = own(self.owned, &desired, &self.made, &self.before, &self.missing);
        self.machine.leave(&folders(self.owned).difference(&folders(&owned)).cloned().collect());
        let confirm_by = match self.options.confirm {
            Some(confirm) => Some(confirm(&self.log.place()).map_err(Cause::Timer)?),
            None => None,
        };
        let record = match confirm_by {
            Some(deadline) => Record::AwaitingConfirm { deadline, owned },
            None => Record::Committed { owned },
        };
        self.log.append(&record).map_err(Cause::Journal)?;
        let changes = std::mem::take(&mut self.made);
        Ok(Applied { changes, notes: desired.notes, deferred: desired.deferred, confirm_by })
    }
}

/// What is owned once `made` stands: all that was owned and is still desired, or may be while something is deferred,
/// and what was changed for the first time.
fn own(owned: &Owned, desired: &Desired, made: &[Change], before: &States, missing: &BTreeSet<FilePath>) -> Owned {
    let ours: BTreeSet<FilePath> = folders(owned).union(missing).cloned().collect();
    let is_unseen = |object: &Object| desired.at_rest && !object.is_persistent();
    let is_kept =
        |object: &Object| !desired.deferred.is_empty() || is_unseen(object) || desired.items.contains_key(object);
    let kept = owned.0.iter().filter(|(object, _)| is_kept(object));
    let mut owned = Owned(kept.map(|(object, origin)| (object.clone(), origin.clone())).collect());
    for change in made {
        if let Some(wanted) = desired.items.get(&change.object) {
            let origin = || Origin { leaving: wanted.leaving.clone(), ..Origin::of(before.get(&change.object)) };
            let origin = owned.0.entry(change.object.clone()).or_insert_with(origin);
            if let Object::File { path } = &change.object {
                origin.made = Some(change.after.clone());
                origin.folders.extend(path.folders().filter(|folder| ours.contains(folder)));
            }
        }
    }
    owned
}

/// The folders that were made for what is owned.
fn folders(owned: &Owned) -> BTreeSet<FilePath> {
    owned.0.values().flat_map(|origin| origin.folders.clone()).collect()
}
