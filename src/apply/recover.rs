//! Ends a transaction that was cut off, undoes the last one, or keeps it.

use thiserror::Error;

use super::Rollback;
use super::error::refusals;
use super::journal::{ASKED_FOR, CUT_OFF, NOT_BEFORE_RESTART, NOT_IN_TIME, Phase, Record, Transaction};
use super::rollback::{WayBack, When, ahead, roll_back};
use super::store::{Last, Store, StoreError};
use crate::machine::{Machine, MachineError};
use crate::plan::{Protected, Refusal, guard};

/// What was found of an earlier transaction.
#[derive(Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Nothing was open.
    Nothing,
    /// One waits for its confirmation, until these seconds since the epoch.
    Awaiting(u64),
    /// One was open and has been undone, or not.
    Undone {
        /// Why: "not confirmed in time".
        cause: &'static str,
        /// How it went.
        rollback: Rollback,
    },
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
    /// There was one, and nobody confirmed it.
    #[error("too late: the last apply was {cause}, and was undone")]
    Unconfirmed {
        /// How so: "not confirmed in time".
        cause: String,
    },
    /// The machine cannot be looked at.
    #[error("cannot look at this node: {0}")]
    Observe(#[from] MachineError),
    /// A link that carries something vital would be disturbed.
    #[error(
        "going back to the state before the last apply ({cause}) could cut you off: {}. \
         Give `selvedge rollback --allow-cut` to do it all the same",
        refusals(.links)
    )]
    CutsOwnBranch {
        /// Why it is to be undone.
        cause: &'static str,
        /// The links.
        links: Vec<Refusal>,
    },
    /// A subnet manager would be stopped, and the fabric be left without one.
    #[error(
        "going back to the state before the last apply stops this node's subnet manager: {0}; or give `selvedge rollback \
         --allow-cut` to do it all the same"
    )]
    LeavesTheFabric(MachineError),
    /// The journal cannot be written.
    #[error("cannot write the journal: {0}")]
    Journal(#[from] std::io::Error),
}

/// What is to be done about an earlier transaction.
enum Due {
    Nothing,
    Awaiting(u64),
    Undo(Box<Last>, &'static str),
}

/// Undoes a transaction that was cut off, and one whose confirmation did not come in time, whatever it disturbs.
///
/// # Errors
/// When the store cannot be used.
pub fn recover<M: Machine>(machine: &mut M, store: &Store, when: When, now: u64) -> Result<Recovered, StoreError> {
    recover_last(machine, store, when, |_, deadline| now < deadline)
}

/// The same, when the time to confirm the transaction number `number`, until `deadline`, is over.
///
/// Numbers begin anew when the journals are removed, so that a timer could find another one by its number alone.
/// The timer that says so is not misled when somebody sets the clock; the deadline in the journal would be.
///
/// # Errors
/// When the store cannot be used.
pub fn recover_due<M: Machine>(
    machine: &mut M,
    store: &Store,
    number: u64,
    deadline: u64,
) -> Result<Recovered, StoreError> {
    recover_last(machine, store, When::Running, |last, until| (last.number(), until) != (Some(number), deadline))
}

fn recover_last<M: Machine>(
    machine: &mut M,
    store: &Store,
    when: When,
    has_time: impl FnOnce(&Last, u64) -> bool,
) -> Result<Recovered, StoreError> {
    Ok(match due(store, when, has_time)? {
        Due::Nothing => Recovered::Nothing,
        Due::Awaiting(deadline) => Recovered::Awaiting(deadline),
        Due::Undo(last, cause) => Recovered::Undone { cause, rollback: undo(machine, store, &last, cause, when)? },
    })
}

/// The same before an apply: somebody is there, perhaps by a link that going back would disturb.
///
/// # Errors
/// When the store cannot be used, or a protected link would be disturbed.
pub fn settle<M: Machine>(
    machine: &mut M,
    store: &Store,
    now: u64,
    protected: &[Protected],
) -> Result<Recovered, UndoError> {
    Ok(match due(store, When::Running, |_, deadline| now < deadline)? {
        Due::Nothing => Recovered::Nothing,
        Due::Awaiting(deadline) => Recovered::Awaiting(deadline),
        Due::Undo(last, cause) => {
            cuts_nothing(machine, &last, cause, protected)?;
            Recovered::Undone { cause, rollback: undo(machine, store, &last, cause, When::Running)? }
        }
    })
}

/// Finds what is to be undone, and closes the journals of what ended and was cut off before that.
fn due(store: &Store, when: When, has_time: impl FnOnce(&Last, u64) -> bool) -> Result<Due, StoreError> {
    for last in store.newest_first()? {
        let last = last?;
        let cause = match last.transaction.phase {
            Phase::Nothing | Phase::RolledBack => {
                store.close(&last)?;
                continue;
            }
            Phase::Committed => {
                store.close(&last)?;
                break;
            }
            Phase::AwaitingConfirm { deadline } if when == When::Running && has_time(&last, deadline) => {
                return Ok(Due::Awaiting(deadline));
            }
            Phase::AwaitingConfirm { .. } if when == When::Boot => NOT_BEFORE_RESTART,
            Phase::AwaitingConfirm { .. } => NOT_IN_TIME,
            Phase::Open => CUT_OFF,
        };
        return Ok(Due::Undo(Box::new(last), cause));
    }
    Ok(Due::Nothing)
}

/// Undoes the last apply that holds, whatever its age: those after it were undone when they failed.
///
/// One that was undone by hand is the end of it, so that a rollback which is given twice undoes one apply.
///
/// # Errors
/// When there is none, it was undone already, or what is guarded would be lost: a protected link would be disturbed, or
/// the fabric be left without a manager. Nothing is guarded without `protected`.
pub fn undo_last<M: Machine>(
    machine: &mut M,
    store: &Store,
    protected: Option<&[Protected]>,
) -> Result<Rollback, UndoError> {
    let mut nothing = "nothing was ever applied on this node";
    for last in store.newest_first()? {
        let last = last?;
        match last.transaction.phase {
            Phase::Nothing => {}
            Phase::RolledBack if last.transaction.undone.as_deref() == Some(ASKED_FOR) => {
                return Err(UndoError::NothingToDo(
                    "the last apply was undone already; to go back further, apply the spec of that time",
                ));
            }
            Phase::RolledBack => nothing = "no apply holds on this node: all were undone when they failed",
            Phase::Open | Phase::AwaitingConfirm { .. } | Phase::Committed => {
                if let Some(protected) = protected {
                    cuts_nothing(machine, &last, ASKED_FOR, protected)?;
                    leaves_no_fabric(machine, &last)?;
                }
                return Ok(undo(machine, store, &last, ASKED_FOR, When::Running)?);
            }
        }
    }
    Err(UndoError::NothingToDo(nothing))
}

/// Keeps the last apply for good.
///
/// # Errors
/// When none waits for its confirmation.
pub fn confirm(store: &Store) -> Result<(), UndoError> {
    let none = UndoError::NothingToDo("no apply waits for its confirmation");
    let Some(last) = store.last()? else { return Err(none) };
    match (last.transaction.phase, &last.transaction.undone) {
        (Phase::AwaitingConfirm { .. }, _) => {
            let owned = last.transaction.owned_after.clone();
            store.reopen(&last)?.append(&Record::Committed { owned })?;
            Ok(())
        }
        (Phase::RolledBack, Some(cause)) if last.transaction.is_unconfirmed() => {
            Err(UndoError::Unconfirmed { cause: cause.clone() })
        }
        (Phase::Open, _) => Err(UndoError::NothingToDo(
            "the last apply was cut off before it was complete; `selvedge rollback` undoes it",
        )),
        _ => Err(none),
    }
}

/// What an apply that comes now finds of an earlier one, in words. Changes nothing.
///
/// # Errors
/// When the store cannot be used.
pub fn pending(store: &Store, now: u64) -> Result<Option<String>, StoreError> {
    let Some(last) = store.standing()? else { return Ok(None) };
    let number = last.number().unwrap_or_default();
    Ok(match last.transaction.phase {
        Phase::Open => Some(format!("apply {number} was {CUT_OFF}: the next apply undoes it before anything else")),
        Phase::AwaitingConfirm { deadline } if now < deadline => Some(format!(
            "apply {number} waits for its confirmation and is undone in {} s: `selvedge confirm` keeps it",
            deadline - now
        )),
        Phase::AwaitingConfirm { .. } => {
            Some(format!("apply {number} was {NOT_IN_TIME}: it is undone before anything else"))
        }
        Phase::Nothing | Phase::Committed | Phase::RolledBack => None,
    })
}

fn way_back<'a, M: Machine>(machine: &M, last: &'a Last, when: When) -> WayBack<'a> {
    let when = if machine.is_at_rest() { When::AtRest } else { when };
    let Transaction { before, missing, changes, phase, .. } = &last.transaction;
    WayBack { before, missing, changes, fresh: *phase == Phase::Open, when }
}

fn cuts_nothing<M: Machine>(
    machine: &mut M,
    last: &Last,
    cause: &'static str,
    protected: &[Protected],
) -> Result<(), UndoError> {
    let way_back = way_back(machine, last, When::Running);
    let ahead = ahead(machine, &way_back)?;
    let refusals = guard(&ahead.disturbing, protected);
    if refusals.is_empty() { Ok(()) } else { Err(UndoError::CutsOwnBranch { cause, links: refusals }) }
}

/// Only where somebody asks for it: what failed, was cut off or not confirmed goes back in any case.
fn leaves_no_fabric<M: Machine>(machine: &mut M, last: &Last) -> Result<(), UndoError> {
    let way_back = way_back(machine, last, When::Running);
    let ahead = ahead(machine, &way_back)?;
    ahead.leaving.iter().try_for_each(|condition| machine.require(condition)).map_err(UndoError::LeavesTheFabric)
}

fn undo<M: Machine>(
    machine: &mut M,
    store: &Store,
    last: &Last,
    cause: &str,
    when: When,
) -> Result<Rollback, StoreError> {
    let mut log = store.reopen(last)?;
    let way_back = way_back(machine, last, when);
    Ok(roll_back(machine, &mut *log, &way_back, cause))
}
