//! One journal's file: read whole, or written record by record.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use super::{StoreError, at};
use crate::apply::journal::{FORMAT, Record};
use crate::apply::log::Log;
use crate::state::{Blobs, Digest};

/// Room kept on the disk behind each record, bytes: a rollback can write its own even when the disk is full.
const RESERVE_BYTES: i64 = 4096;

/// Reads a journal. A last line without its newline was never finished and does not count.
pub(super) fn read_records(path: &Path) -> Result<Vec<Record>, StoreError> {
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
pub(super) fn drop_torn_tail(path: &Path) -> io::Result<()> {
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

pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// One journal, open for writing.
pub(super) struct Journal {
    pub(super) blobs: PathBuf,
    pub(super) path: PathBuf,
    pub(super) file: File,
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
