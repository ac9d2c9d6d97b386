//! The lock by which one process at a time changes a machine.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};

use super::{Store, StoreError, at};

/// Longer than the lock is held by who only looks.
const A_LOOK: Duration = Duration::from_millis(100);

/// Keeps other processes from changing this machine.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held for its drop")] Flock<File>);

impl Store {
    /// Keeps other processes out until the lock is dropped; `None` where nothing was ever applied, which makes nothing.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another process holds it.
    pub fn lock(&self) -> Result<Option<Lock>, StoreError> {
        if !self.is_there() {
            return Ok(None);
        }
        match self.lock_with(FlockArg::LockExclusiveNonblock) {
            // Who only looks, holds it for a moment.
            Err(StoreError::Busy(_)) => {
                thread::sleep(A_LOOK);
                self.lock_with(FlockArg::LockExclusiveNonblock).map(Some)
            }
            other => other.map(Some),
        }
    }

    /// The same, and waits for another process to end.
    ///
    /// # Errors
    /// When the lock cannot be made.
    pub fn lock_in_turn(&self) -> Result<Option<Lock>, StoreError> {
        if self.is_there() { self.lock_with(FlockArg::LockExclusive).map(Some) } else { Ok(None) }
    }

    /// The lock for the first apply, which makes the store.
    ///
    /// # Errors
    /// [`StoreError::Busy`] or [`StoreError::Overtaken`] when another process was first.
    pub fn lock_first(&self) -> Result<Lock, StoreError> {
        let lock = self.lock_with(FlockArg::LockExclusiveNonblock)?;
        if self.journals()?.is_empty() { Ok(lock) } else { Err(StoreError::Overtaken) }
    }

    /// Whether another process is changing this machine now. Makes nothing.
    ///
    /// # Errors
    /// When the lock cannot be looked at.
    pub fn is_busy(&self) -> Result<bool, StoreError> {
        let path = self.lock_path();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(at(&path)(error)),
        };
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_) => Ok(false),
            Err((_, Errno::EWOULDBLOCK)) => Ok(true),
            Err((_, errno)) => Err(at(&path)(errno.into())),
        }
    }

    /// What cannot be looked at is taken to be there, and the error comes when it is used.
    fn is_there(&self) -> bool {
        let looked = fs::metadata(self.folder.join("journal"));
        !looked.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    fn lock_path(&self) -> PathBuf {
        self.folder.join("lock")
    }

    fn lock_with(&self, how: FlockArg) -> Result<Lock, StoreError> {
        self.make_folders()?;
        let path = self.lock_path();
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
}
