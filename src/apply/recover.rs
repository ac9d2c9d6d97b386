//! Ends a transaction that was cut off, undoes the last one, or keeps it.

use thiserror::Error;

use super::Rollback;
use super::journal::{Phase, Record, Transaction};
use super::rollback::{WayBack, When, roll_back};
use super::store::{Last, Store, StoreError};
use crate::machine::Machine;

/// What was found of an earlier transaction.
#[derive(Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Nothing was open.
    Nothing,
    /// One waits for its confirmation, until these seconds since the epoch.
    Awaiting(u64),
    /// One was open and has been undone, or not.
    Undone(Rollback),
}

/// Why the last apply cannot be confirmed or undone.
#[derive(Debug, Error)]
pub enum UndoError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such apply.
    #[error("{0}")]
    NothingToDo(&'static str),
    /// The journal cannot be written.
    #[error("cannot write the journal: {0}")]
    Journal(#[from] std::io::Error),
}

/// Undoes a transaction that was cut off, and one whose confirmation did not come in time.
///
/// # Errors
/// When the store cannot be used.
pub fn recover<M: Machine>(machine: &mut M, store: &Store, when: When, now: u64) -> Result<Recovered, StoreError> {
    recover_last(machine, store, when, |_, deadline| now < deadline)
}

/// The same, when the time to confirm the transaction number `due` is over.
///
/// The timer that says so is not misled when somebody sets the clock; the deadline in the journal would be.
///
/// # Errors
/// When the store cannot be used.
pub fn recover_due<M: Machine>(machine: &mut M, store: &Store, due: u64) -> Result<Recovered, StoreError> {
    recover_last(machine, store, When::Running, |last, _| last.number() != Some(due))
}

fn recover_last<M: Machine>(
    machine: &mut M,
    store: &Store,
    when: When,
    has_time: impl FnOnce(&Last, u64) -> bool,
) -> Result<Recovered, StoreError> {
    let Some(last) = store.last()? else { return Ok(Recovered::Nothing) };
    let cause = match last.transaction.phase {
        Phase::AwaitingConfirm { deadline } if when == When::Running && has_time(&last, deadline) => {
            return Ok(Recovered::Awaiting(deadline));
        }
        Phase::AwaitingConfirm { .. } if when == When::Boot => "not confirmed before the node was restarted",
        Phase::AwaitingConfirm { .. } => "not confirmed in time",
        Phase::Open => "cut off before it was complete",
        Phase::Nothing | Phase::Committed | Phase::RolledBack => {
            store.close(&last)?;
            return Ok(Recovered::Nothing);
        }
    };
    undo(machine, store, &last, cause, when).map(Recovered::Undone)
}

/// Undoes the last apply, whatever its age.
///
/// # Errors
/// When there is none, or it was undone already.
pub fn undo_last<M: Machine>(machine: &mut M, store: &Store) -> Result<Rollback, UndoError> {
    let last = store.last()?.ok_or(UndoError::NothingToDo("nothing was ever applied on this node"))?;
    match last.transaction.phase {
        Phase::RolledBack => Err(UndoError::NothingToDo("the last apply was undone already")),
        Phase::Nothing => Err(UndoError::NothingToDo("the last apply changed nothing")),
        Phase::Open | Phase::AwaitingConfirm { .. } | Phase::Committed => {
            Ok(undo(machine, store, &last, "asked for", When::Running)?)
        }
    }
}

/// Keeps the last apply for good.
///
/// # Errors
/// When none waits for its confirmation.
pub fn confirm(store: &Store) -> Result<(), UndoError> {
    let none = UndoError::NothingToDo("no apply waits for its confirmation");
    let Some(last) = store.last()? else { return Err(none) };
    let Phase::AwaitingConfirm { .. } = last.transaction.phase else { return Err(none) };
    let owned = last.transaction.owned_after.clone();
    store.reopen(&last)?.append(&Record::Committed { owned })?;
    Ok(())
}

fn undo<M: Machine>(
    machine: &mut M,
    store: &Store,
    last: &Last,
    cause: &str,
    when: When,
) -> Result<Rollback, StoreError> {
    let mut log = store.reopen(last)?;
    let Transaction { before, changes, .. } = &last.transaction;
    let touched = changes.iter().map(|change| change.object.clone()).collect();
    Ok(roll_back(machine, &mut *log, &WayBack { before, touched: &touched, when }, cause))
}
