//! The journal's records, and what a journal means.
//!
//! Pure: records come in, the state of the transaction goes out. A record is
//! on disk before the effect that it announces.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::state::{Change, FilePath, Object, Owned, States};

/// The format that this version writes. Older ones are read.
pub const FORMAT: u32 = 1;

/// Why an apply was undone, when somebody wanted it.
pub const ASKED_FOR: &str = "asked for";
/// When its time was over.
pub const NOT_IN_TIME: &str = "not confirmed in time";
/// When the node was restarted meanwhile.
pub const NOT_BEFORE_RESTART: &str = "not confirmed before the node was restarted";
/// When it was killed, or the power went.
pub const CUT_OFF: &str = "cut off before it was complete";

/// A file that is neither as the transaction made it nor as it was before: somebody else's, kept under another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// The file.
    pub file: FilePath,
    /// Its copy.
    pub copy: FilePath,
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} had been changed by somebody else since; that version is kept as {}", self.file, self.copy)
    }
}

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
        /// The folders above the files that were not there.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        missing: BTreeSet<FilePath>,
    },
    /// Objects that came into view later, and the states to go back to.
    Seen {
        /// The states.
        before: States,
        /// The folders above the files among them that were not there.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        missing: BTreeSet<FilePath>,
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
    /// A file of somebody else's is about to be kept before its place is taken.
    Saved(Saved),
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
    /// The folders that were not there.
    pub missing: BTreeSet<FilePath>,
    /// The changes announced so far.
    pub changes: Vec<Change>,
    /// Why it was undone, or was to be.
    pub undone: Option<String>,
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
            missing: BTreeSet::new(),
            changes: Vec::new(),
            undone: None,
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
            Record::Begin { before, owned, missing, .. } => {
                self.missing = missing;
                self.before = before;
                self.owned_after.clone_from(&owned);
                self.owned_before = owned;
                self.phase = Phase::Open;
            }
            Record::Seen { before, missing } => {
                self.missing.extend(missing);
                for (object, state) in before.0 {
                    self.before.0.entry(object).or_insert(state);
                }
            }
            Record::Doing { change } => self.changes.push(change),
            Record::Done { .. } | Record::Saved(_) => {}
            Record::AwaitingConfirm { deadline, owned } => {
                self.owned_after = owned;
                self.phase = Phase::AwaitingConfirm { deadline };
            }
            Record::Committed { owned } => {
                self.owned_after = owned;
                self.phase = Phase::Committed;
            }
            Record::RollingBack { cause } => {
                // A second one takes up what the first did not end.
                self.undone.get_or_insert(cause);
                self.phase = Phase::Open;
            }
            Record::RollbackFailed { .. } => self.phase = Phase::Open,
            Record::RolledBack => self.phase = Phase::RolledBack,
        }
    }

    /// Whether it stands or may yet: it was neither undone nor did it never begin.
    #[must_use]
    pub fn counts(&self) -> bool {
        !matches!(self.phase, Phase::Nothing | Phase::RolledBack)
    }

    /// Whether it was undone since nobody confirmed it.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        self.undone.as_ref().is_some_and(|cause| cause == NOT_IN_TIME || cause == NOT_BEFORE_RESTART)
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
