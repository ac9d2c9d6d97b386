//! The journals on disk, and the contents they refer to.
//!
//! `DIR/journal/NNNNNNNN.open` is a transaction under way, `.done` one that
//! ended; the recovery unit looks for `*.open`. `DIR/blobs/DIGEST` is 0600,
//! since it can be the before-image of a secret file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, FdFlag, Flock, FlockArg, fallocate, fcntl};
use thiserror::Error;

use super::journal::{FORMAT, Phase, Record, Transaction};
use super::log::Log;
use crate::state::{Blobs, Digest, Owned, State};

/// Ended journals that are kept, so that the recent past can be read.
const KEPT_JOURNALS: usize = 20;

/// Room kept on the disk behind each record, bytes: a rollback can write its own even when the disk is full.
const RESERVE_BYTES: i64 = 4096;

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
}

/// Keeps other processes from changing this machine.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held for its drop")] Flock<File>);

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

    /// Keeps other processes out until the lock is dropped.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another process holds it.
    pub fn lock(&self) -> Result<Lock, StoreError> {
        self.lock_with(FlockArg::LockExclusiveNonblock)
    }

    /// The same, and waits for another process to end.
    ///
    /// # Errors
    /// When the lock cannot be made.
    pub fn lock_in_turn(&self) -> Result<Lock, StoreError> {
        self.lock_with(FlockArg::LockExclusive)
    }

    fn lock_with(&self, how: FlockArg) -> Result<Lock, StoreError> {
        self.make_folders()?;
        let path = self.folder.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.map_err(at(&path))?;
        match Flock::lock(file, how) {
            // Inherited by the programs that are run: should this process be killed, a modprobe
            // that it left behind still changes this machine, and keeps the others out until it ends.
            Ok(lock) => match fcntl(&*lock, FcntlArg::F_SETFD(FdFlag::empty())) {
                Ok(_) => Ok(Lock(lock)),
                Err(errno) => Err(at(&path)(errno.into())),
            },
            Err((_, Errno::EWOULDBLOCK)) => Err(StoreError::Busy(path)),
            Err((_, errno)) => Err(at(&path)(errno.into())),
        }
    }

    /// The last transaction, if there ever was one.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn last(&self) -> Result<Option<Last>, StoreError> {
        let Some(path) = self.journals()?.pop() else { return Ok(None) };
        let records = read_records(&path)?;
        Ok(Some(Last { path, transaction: Transaction::read(records) }))
    }

    /// What selvedge owns on this machine.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn owned(&self) -> Result<Owned, StoreError> {
        Ok(self.last()?.map(|last| last.transaction.owned().clone()).unwrap_or_default())
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
        let number = journals.last().and_then(|path| number(path)).map_or(1, |last| last + 1);
        let path = self.folder.join("journal").join(format!("{number:08}.open"));
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
        let old = journals.len().saturating_sub(KEPT_JOURNALS);
        for path in &journals[..old] {
            fs::remove_file(path).map_err(at(path))?;
        }
        let mut needed = std::collections::BTreeSet::new();
        for path in &journals[old..] {
            let transaction = Transaction::read(read_records(path)?);
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
        paths.sort();
        Ok(paths)
    }

    fn blob(&self, digest: &Digest) -> PathBuf {
        self.folder.join("blobs").join(digest.to_string())
    }
}

/// The number of a journal's file name; `None` for any other file.
fn number(path: &Path) -> Option<u64> {
    let known = path.extension().is_some_and(|extension| extension == "open" || extension == "done");
    if known { path.file_stem()?.to_str()?.parse().ok() } else { None }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    |source| StoreError::Io { path: path.to_owned(), source }
}

/// Reads a journal. A last line without its newline was never finished and does not count.
fn read_records(path: &Path) -> Result<Vec<Record>, StoreError> {
    let bytes = fs::read(path).map_err(at(path))?;
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else { return Ok(Vec::new()) };
    let lines = bytes[..end].split(|byte| *byte == b'\n');
    let records = lines.enumerate().map(|(index, line)| {
        let damaged = |source| StoreError::Damaged { path: path.to_owned(), line: index + 1, source };
        if index == 0
            && let Some(newer) = newer(path, line)
        {
            return Err(newer);
        }
        serde_json::from_slice(line).map_err(damaged)
    });
    records.collect()
}

/// The error for a first record whose writer uses a format that this version does not know.
fn newer(path: &Path, line: &[u8]) -> Option<StoreError> {
    #[derive(serde::Deserialize)]
    struct Writer {
        format: u64,
        selvedge: String,
    }
    let Writer { format, selvedge } = serde_json::from_slice(line).ok()?;
    (format > u64::from(FORMAT)).then(|| StoreError::Newer { path: path.to_owned(), selvedge, format })
}

/// Cuts off a last line that was never finished, so that the next record starts on a line of its own.
fn drop_torn_tail(path: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < bytes.len() {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(whole as u64)?;
        file.sync_all()?;
    }
    Ok(())
}

fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// One journal, open for writing.
struct Journal {
    blobs: PathBuf,
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Room for a record and for those of a rollback after it. A file system that cannot keep room is no fault.
    fn reserve(&self, end: u64, record: usize) -> io::Result<()> {
        let (Ok(end), Ok(record)) = (i64::try_from(end), i64::try_from(record)) else { return Ok(()) };
        match fallocate(&self.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, end, record + RESERVE_BYTES) {
            Err(errno @ (Errno::ENOSPC | Errno::EDQUOT | Errno::EIO | Errno::EROFS)) => Err(errno.into()),
            _ => Ok(()),
        }
    }

    /// Whether the transaction is under way can be seen from the file's name.
    fn name(&mut self, extension: &str) -> io::Result<()> {
        let named = self.path.with_extension(extension);
        if named == self.path {
            return Ok(());
        }
        fs::rename(&self.path, &named)?;
        self.path = named;
        sync_folder(&self.path)
    }
}

impl Log for Journal {
    fn keep(&mut self, blobs: &Blobs) -> io::Result<()> {
        for (digest, bytes) in blobs.iter() {
            let path = self.blobs.join(digest.to_string());
            if path.exists() {
                continue;
            }
            let mut file = tempfile::NamedTempFile::new_in(&self.blobs)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
        }
        File::open(&self.blobs)?.sync_all()
    }

    fn append(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let end = self.file.metadata()?.len();
        if !matches!(record, Record::RollingBack { .. } | Record::RolledBack | Record::RollbackFailed { .. }) {
            self.reserve(end, line.len())?;
        }
        if let Err(error) = self.file.write_all(&line) {
            // The next record must not begin in the middle of this one's line.
            let _ = self.file.set_len(end);
            return Err(error);
        }
        self.file.sync_data()?;
        if matches!(record, Record::RollingBack { .. }) {
            self.name("open")?;
        }
        if matches!(record, Record::Committed { .. } | Record::RolledBack) {
            self.name("done")?;
        }
        Ok(())
    }

    fn abandon(&mut self) {
        // Best effort: a journal without a whole record says that nothing was changed.
        if fs::remove_file(&self.path).is_ok() {
            let _ = sync_folder(&self.path);
        }
    }

    fn recall(&mut self, digest: &Digest) -> io::Result<Vec<u8>> {
        let bytes = fs::read(self.blobs.join(digest.to_string()))?;
        if Digest::of(&bytes) == *digest { Ok(bytes) } else { Err(io::Error::other("it is damaged")) }
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }
}
