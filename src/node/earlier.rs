//! What an earlier apply left behind, as notes to a report.
//!
//! Journals are read here and never written.

use crate::apply::Rollback;
use crate::apply::recover;
use crate::apply::store::{Store, StoreError};

/// What the reader of a plan has to know: an apply that is under way, was cut off, or waits for its confirmation.
///
/// # Errors
/// When the journals cannot be read.
pub(super) fn notes(store: &Store, now: u64) -> Result<Vec<String>, StoreError> {
    if store.is_busy()? {
        let busy = "another selvedge is changing this node now: this is how it was found in the middle of that";
        return Ok(vec![busy.to_owned()]);
    }
    Ok(recover::pending(store, now)?.into_iter().collect())
}

/// What the reader of an apply has to know of one that was undone before it.
pub(super) fn undone(cause: &str, rollback: &Rollback) -> String {
    let saved = rollback.saved().iter().map(|saved| format!("; {saved}"));
    format!("an earlier apply was {cause} and was undone first{}", saved.collect::<String>())
}
