//! The journal's records, and what a journal means.
//!
//! Pure: records come in, the state of the transaction goes out. A record is
//! on disk before the effect that it announces.

use serde::{Deserialize, Serialize};

use crate::state::{Change, Object, Owned, States};

/// The format that this version writes. Older ones are read.
pub const FORMAT: u32 = 1;

/// One record, one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// A transaction begins.
    Begin {
        /// [`FORMAT`] of the writer.
        format: u32,
        /// Version of the writer.
        selvedge: String,
        /// The states to go back to.
        before: States,
        /// What was owned before.
        owned: Owned,
    },
    /// Objects that came into view later, and the states to go back to.
    Seen {
        /// The states.
        before: States,
    },
    /// A change is about to be made.
    Doing {
        /// The change.
        change: Change,
    },
    /// It was made and read back.
    Done {
        /// The object changed.
        object: Object,
    },
    /// All changes hold; undone unless confirmed by then.
    AwaitingConfirm {
        /// Seconds since the epoch.
        deadline: u64,
        /// What will be owned once confirmed.
        owned: Owned,
    },
    /// The transaction stands.
    Committed {
        /// What is owned from now on.
        owned: Owned,
    },
    /// The changes are being undone.
    RollingBack {
        /// Why.
        cause: String,
    },
    /// All is as it was.
    RolledBack,
    /// Undoing did not succeed.
    RollbackFailed {
        /// Object by object.
        failures: Vec<String>,
    },
}

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It ended before its first record was whole: nothing was changed.
    Nothing,
    /// It was cut off in the middle, or its rollback was.
    Open,
    /// It holds and waits for its confirmation.
    AwaitingConfirm {
        /// Seconds since the epoch.
        deadline: u64,
    },
    /// It stands.
    Committed,
    /// It was undone.
    RolledBack,
}

/// What the records of one journal say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Where it stands.
    pub phase: Phase,
    /// The states to go back to.
    pub before: States,
    /// The changes announced so far.
    pub changes: Vec<Change>,
    /// What was owned before it.
    pub owned_before: Owned,
    /// What is owned after it, once it holds.
    pub owned_after: Owned,
}

impl Transaction {
    /// Reads the records of one journal.
    #[must_use]
    pub fn read(records: Vec<Record>) -> Self {
        let mut transaction = Self {
            phase: Phase::Nothing,
            before: States::default(),
            changes: Vec::new(),
            owned_before: Owned::default(),
            owned_after: Owned::default(),
        };
        for record in records {
            transaction.add(record);
        }
        transaction
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Begin { before, owned, .. } => {
                self.before = before;
                self.owned_after.clone_from(&owned);
                self.owned_before = owned;
                self.phase = Phase::Open;
            }
            Record::Seen { before } => {
                for (object, state) in before.0 {
                    self.before.0.entry(object).or_insert(state);
                }
            }
            Record::Doing { change } => self.changes.push(change),
            Record::Done { .. } => {}
            Record::AwaitingConfirm { deadline, owned } => {
                self.owned_after = owned;
                self.phase = Phase::AwaitingConfirm { deadline };
            }
            Record::Committed { owned } => {
                self.owned_after = owned;
                self.phase = Phase::Committed;
            }
            Record::RollingBack { .. } | Record::RollbackFailed { .. } => self.phase = Phase::Open,
            Record::RolledBack => self.phase = Phase::RolledBack,
        }
    }

    /// What is owned now.
    #[must_use]
    pub fn owned(&self) -> &Owned {
        match self.phase {
            Phase::Committed | Phase::AwaitingConfirm { .. } => &self.owned_after,
            Phase::Nothing | Phase::Open | Phase::RolledBack => &self.owned_before,
        }
    }
}
