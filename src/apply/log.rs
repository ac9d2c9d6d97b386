//! Where a transaction writes its records.

use std::io;

use super::journal::Record;
use crate::state::{Blobs, Digest};

/// A journal being written. Each call returns when the record is on disk.
pub trait Log {
    /// Keeps the contents that a rollback needs.
    ///
    /// # Errors
    /// When they cannot be written.
    fn keep(&mut self, blobs: &Blobs) -> io::Result<()>;

    /// Adds a record.
    ///
    /// # Errors
    /// When it cannot be written.
    fn append(&mut self, record: &Record) -> io::Result<()>;

    /// Leaves no trace of a journal whose first record could not be written.
    fn abandon(&mut self);

    /// Reads kept contents back.
    ///
    /// # Errors
    /// When they cannot be read, or are not what they were.
    fn recall(&mut self, digest: &Digest) -> io::Result<Vec<u8>>;

    /// Where the journal is, for messages.
    fn place(&self) -> String;
}
