//! The journals on disk, and the contents they refer to.
//!
//! `DIR/journal/NNNNNNNN.open` is a transaction under way, `.done` one that
//! ended; the recovery unit looks for `*.open`. `DIR/blobs/DIGEST` is 0600,
//! since it can be the before-image of a secret file.

mod file;
mod lock;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use thiserror::Error;

pub use self::lock::Lock;

use self::file::{Journal, drop_torn_tail, read_records, sync_folder};
use super::journal::{FORMAT, Phase, Transaction};
use super::log::Log;
use crate::state::{Blobs, Digest, Owned, State};

/// Ended journals that are kept, so that the recent past can be read.
const KEPT_JOURNALS: usize = 20;

/// The digits of a journal's number.
const DIGITS: usize = 8;
/// The last number that has so many.
const LAST_NUMBER: u64 = 99_999_999;

/// The journals of one machine.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Why the store cannot be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A record cannot be read.
    #[error("{path} line {line} is not a journal record ({source}); move the file away to go on without it")]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// A newer version wrote it.
    #[error(
        "{path} was written by selvedge {selvedge} in journal format {format}, and this is {} with format {FORMAT}; \
         use that version, or move the file away to go on without it",
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// The journal.
        path: PathBuf,
        /// The version that wrote it.
        selvedge: String,
        /// Its format.
        format: u64,
    },
    /// Another selvedge is at work on this machine.
    #[error("another selvedge is changing this machine now (it holds {0}); wait for it to end")]
    Busy(PathBuf),
    /// Another selvedge began while this one looked.
    #[error("another selvedge has changed this machine meanwhile; try again")]
    Overtaken,
    /// There is no number left for a journal.
    #[error("{0} has the last number that a journal can have; move it away to go on")]
    NumbersUsedUp(PathBuf),
}

/// The last transaction on a machine.
#[derive(Debug)]
pub struct Last {
    /// The journal.
    pub path: PathBuf,
    /// What it says.
    pub transaction: Transaction,
}

impl Last {
    /// The transaction's number.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        number(&self.path)
    }

    /// When its journal was last written: at the end of the apply or its confirmation. Seconds since the epoch.
    #[must_use]
    pub fn written_at(&self) -> Option<u64> {
        let written = fs::metadata(&self.path).and_then(|metadata| metadata.modified()).ok()?;
        Some(written.duration_since(UNIX_EPOCH).ok()?.as_secs())
    }
}

/// The number of the transaction whose journal is at `place`.
#[must_use]
pub fn number_at(place: &str) -> Option<u64> {
    number(Path::new(place))
}

impl Store {
    /// The store in `folder`, which is made when it is first written to.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// All transactions, the newest first, each read when it is asked for.
    ///
    /// # Errors
    /// When the journals cannot be listed.
    pub fn newest_first(&self) -> Result<impl Iterator<Item = Result<Last, StoreError>>, StoreError> {
        Ok(self.journals()?.into_iter().rev().map(read))
    }

    /// The last transaction that began, if there ever was one.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn last(&self) -> Result<Option<Last>, StoreError> {
        let began = |last: &Result<Last, _>| !matches!(last, Ok(last) if last.transaction.phase == Phase::Nothing);
        self.newest_first()?.find(began).transpose()
    }

    /// The last one that was not undone. All after it were, so what is there now is what it left.
    ///
    /// # Errors
    /// When a journal cannot be read.
    pub fn standing(&self) -> Result<Option<Last>, StoreError> {
        let counts = |last: &Result<Last, _>| !matches!(last, Ok(last) if !last.transaction.counts());
        self.newest_first()?.find(counts).transpose()
    }

    /// What selvedge owns on this machine.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn owned(&self) -> Result<Owned, StoreError> {
        let mut before = Owned::default();
        for last in self.newest_first()? {
            let transaction = last?.transaction;
            match transaction.phase {
                Phase::Nothing => {}
                // What was owned before the oldest, when all that are kept were undone.
                Phase::RolledBack => before = transaction.owned_before,
                _ => return Ok(transaction.owned().clone()),
            }
        }
        Ok(before)
    }

    /// The contents that going back to the origin of what is owned needs.
    #[must_use]
    pub fn origins(&self, owned: &Owned) -> Blobs {
        let mut blobs = Blobs::default();
        for origin in owned.0.values() {
            if let State::File { digest, .. } = origin.state
                && let Ok(bytes) = fs::read(self.blob(&digest))
            {
                blobs.insert(bytes);
            }
        }
        blobs
    }

    /// Begins a journal.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn begin(&self) -> io::Result<Box<dyn Log>> {
        self.make_folders().map_err(io::Error::other)?;
        let journals = self.journals().map_err(io::Error::other)?;
        let last = journals.last();
        let number = last.and_then(|path| number(path)).map_or(1, |last| last + 1);
        if number > LAST_NUMBER {
            return Err(io::Error::other(StoreError::NumbersUsedUp(last.cloned().unwrap_or_default())));
        }
        let path = self.folder.join("journal").join(format!("{number:0DIGITS$}.open"));
        let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&path)?;
        let mut journal = Journal { blobs: self.folder.join("blobs"), path, file };
        if let Err(error) = sync_folder(&journal.path) {
            journal.abandon();
            return Err(error);
        }
        Ok(Box::new(journal))
    }

    /// Opens the last journal to add to it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn reopen(&self, last: &Last) -> Result<Box<dyn Log>, StoreError> {
        let path = last.path.with_extension("open");
        if path != last.path {
            fs::rename(&last.path, &path).and_then(|()| sync_folder(&path)).map_err(at(&path))?;
        }
        drop_torn_tail(&path).map_err(at(&path))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(at(&path))?;
        Ok(Box::new(Journal { blobs: self.folder.join("blobs"), path, file }))
    }

    /// Closes a journal that ended and was cut off before its file was renamed; removes one that never began.
    ///
    /// # Errors
    /// When the file cannot be renamed or removed.
    pub fn close(&self, last: &Last) -> Result<(), StoreError> {
        let path = &last.path;
        let closed = match last.transaction.phase {
            Phase::Nothing => fs::remove_file(path),
            Phase::Committed | Phase::RolledBack if path.extension().is_some_and(|extension| extension == "open") => {
                fs::rename(path, path.with_extension("done"))
            }
            _ => return Ok(()),
        };
        closed.and_then(|()| sync_folder(path)).map_err(at(path))
    }

    /// Removes journals and contents that nothing needs any more.
    ///
    /// # Errors
    /// When they cannot be read or removed.
    pub fn prune(&self) -> Result<(), StoreError> {
        let journals = self.journals()?;
        let standing = self.standing()?.and_then(|last| journals.iter().position(|path| *path == last.path));
        // However many applies failed after it, the one that holds can be undone.
        let old = journals.len().saturating_sub(KEPT_JOURNALS).min(standing.unwrap_or(usize::MAX));
        for path in &journals[..old] {
            fs::remove_file(path).map_err(at(path))?;
        }
        let mut needed = std::collections::BTreeSet::new();
        for path in &journals[old..] {
            let transaction = read(path.clone())?.transaction;
            let origins = transaction.owned_after.0.values().chain(transaction.owned_before.0.values());
            let states = transaction.before.0.values().chain(origins.map(|origin| &origin.state));
            needed.extend(states.filter_map(|state| match state {
                State::File { digest, .. } => Some(digest.to_string()),
                _ => None,
            }));
        }
        let blobs = self.folder.join("blobs");
        for entry in fs::read_dir(&blobs).map_err(at(&blobs))? {
            let path = entry.map_err(at(&blobs))?.path();
            if path.file_name().and_then(|name| name.to_str()).is_none_or(|name| !needed.contains(name)) {
                fs::remove_file(&path).map_err(at(&path))?;
            }
        }
        Ok(())
    }

    fn make_folders(&self) -> Result<(), StoreError> {
        // An image may lack /var/lib, which is not only ours.
        if let Some(above) = self.folder.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(above).map_err(at(above))?;
        }
        for folder in [self.folder.clone(), self.folder.join("journal"), self.folder.join("blobs")] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(at(&folder))?;
        }
        Ok(())
    }

    /// All journals, oldest first.
    fn journals(&self) -> Result<Vec<PathBuf>, StoreError> {
        let folder = self.folder.join("journal");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at(&folder)(error)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(at(&folder))?.path();
            if number(&path).is_some() {
                paths.push(path);
            }
        }
        paths.sort_by_key(|path| number(path));
        Ok(paths)
    }

    fn blob(&self, digest: &Digest) -> PathBuf {
        self.folder.join("blobs").join(digest.to_string())
    }
}

/// The number of a journal's file name; `None` for any other file.
fn number(path: &Path) -> Option<u64> {
    let known = path.extension().is_some_and(|extension| extension == "open" || extension == "done");
    let stem = path.file_stem()?.to_str()?;
    let ours = known && stem.len() == DIGITS && stem.bytes().all(|byte| byte.is_ascii_digit());
    if ours { stem.parse().ok() } else { None }
}

fn read(path: PathBuf) -> Result<Last, StoreError> {
    let (records, path) = match read_records(&path) {
        // It ended, and got its other name, between the look at the folder and this.
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let ended = path.with_extension("done");
            (read_records(&ended)?, ended)
        }
        other => (other?, path),
    };
    Ok(Last { path, transaction: Transaction::read(records) })
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    |source| StoreError::Io { path: path.to_owned(), source }
}
