//! Files and symbolic links, replaced whole or not at all.
//!
//! A path and a state come in. What was there before stays until its successor
//! is on the disk: write beside it, fsync, rename, fsync the folder. Nothing
//! is ever written through a symbolic link at the path itself, and below an
//! image's root no link in the image leads out of it.

mod folder;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{Mode, SFlag, fchmod, fstatat};
use nix::unistd::{UnlinkatFlags, fsync, symlinkat, unlinkat};

use self::folder::{Folder, Root};
use crate::machine::MachineError;
use crate::state::{Blobs, FilePath, Object, State};

/// The most that a file may have to be looked at, bytes: those that are managed have a thousandth of it.
const MOST_BYTES: u64 = 16 << 20;

/// The files of a host or of an image.
pub(super) struct Files {
    root: Root,
}

impl Files {
    /// The files of this host.
    pub(super) fn live() -> Self {
        Self { root: Root::Live }
    }

    /// The files of an image.
    pub(super) fn image(root: &Path) -> Result<Self, MachineError> {
        let opened = Root::image(root);
        opened.map(|root| Self { root }).map_err(|source| MachineError::File {
            operation: "open",
            path: root.display().to_string(),
            source,
        })
    }

    /// Where on this host the folder at `path` (without the leading slash) is, or is to be made.
    pub(super) fn place_of(&self, path: &str) -> Result<PathBuf, MachineError> {
        let error = |source| MachineError::File { operation: "use", path: format!("/{path}"), source };
        self.root.place_of(path).map_err(error)
    }

    /// What is at `path`; a file's content goes into `blobs`.
    pub(super) fn observe(&self, path: &FilePath, blobs: &mut Blobs) -> State {
        let looked = self.root.folder_of(path).and_then(|(folder, name)| look(&folder, name, blobs));
        looked.unwrap_or_else(|error| match Errno::from_raw(error.raw_os_error().unwrap_or_default()) {
            Errno::ENOENT | Errno::ENOTDIR => State::Absent,
            _ => State::Unknown { why: error.to_string() },
        })
    }

    /// Makes `path` be `after`.
    pub(super) fn perform(&self, path: &FilePath, after: &State, blobs: &Blobs) -> Result<(), MachineError> {
        let file_error = |operation| move |source| MachineError::File { operation, path: path.to_string(), source };
        match after {
            State::File { digest, mode } => {
                let missing =
                    || io::Error::new(io::ErrorKind::NotFound, format!("the content {digest} is not at hand"));
                let bytes = blobs.get(digest).ok_or_else(missing).map_err(file_error("write"))?;
                let written = self.root.make_folder_of(path).and_then(|(folder, name)| {
                    replace(&folder, name, |temporary| write(&folder, temporary, bytes, *mode))
                });
                written.map_err(file_error("write"))
            }
            State::Symlink { target } => {
                let linked = self.root.make_folder_of(path).and_then(|(folder, name)| {
                    replace(&folder, name, |temporary| Ok(symlinkat(target.as_str(), &folder, temporary)?))
                });
                linked.map_err(file_error("link"))
            }
            State::Absent => self.remove(path).map_err(file_error("remove")),
            other => {
                Err(MachineError::Impossible { object: Object::File { path: path.clone() }, state: other.to_string() })
            }
        }
    }

    /// Removes what a write of `path` that was cut off left beside it.
    pub(super) fn remove_leftover(&self, path: &FilePath) {
        // Best effort: the next write of this path would replace it.
        if let Ok((folder, name)) = self.root.folder_of(path) {
            let _ = unlinkat(&folder, temporary(name).as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }

    /// The folders above `path` that are not there.
    pub(super) fn missing_above(&self, path: &FilePath) -> Vec<FilePath> {
        path.folders().filter(|folder| !self.root.has(folder)).collect()
    }

    /// Removes a folder; the kernel keeps one that is not empty.
    pub(super) fn remove_folder(&self, folder: &FilePath) {
        // Best effort: see `Machine::leave`.
        if let Ok((above, name)) = self.root.folder_of(folder) {
            let _ = unlinkat(&above, name, UnlinkatFlags::RemoveDir);
            let _ = fsync(&above);
        }
    }

    fn remove(&self, path: &FilePath) -> io::Result<()> {
        let removed = self.root.folder_of(path).and_then(|(folder, name)| {
            unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir)?;
            Ok(fsync(&folder)?)
        });
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

fn look(folder: &Folder, name: &str, blobs: &mut Blobs) -> io::Result<State> {
    let stat = fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => {}
        SFlag::S_IFLNK => {
            let target = readlinkat(folder, name)?.into_string();
            return Ok(target.map_or_else(|_| unknown("its target is not UTF-8"), |target| State::Symlink { target }));
        }
        SFlag::S_IFDIR => return Ok(unknown("it is a folder")),
        _ => return Ok(unknown("it is neither a regular file nor a symbolic link")),
    }
    if u64::try_from(stat.st_size).is_ok_and(|bytes| bytes > MOST_BYTES) {
        return Ok(unknown("it is larger than 16 MiB, which no file of selvedge's is"));
    }
    // Should something else have taken the file's place by now, the open must neither follow nor block.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(folder, name, flags, Mode::empty())?);
    let mut bytes = Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or_default().saturating_add(1));
    file.read_to_end(&mut bytes)?;
    Ok(State::File { digest: blobs.insert(bytes), mode: stat.st_mode & 0o7777 })
}

fn unknown(why: &str) -> State {
    State::Unknown { why: why.to_owned() }
}

/// Makes something under a temporary name in `folder` and gives it `name`.
///
/// The temporary name ends in `~`, which no program that reads a folder of
/// configuration takes, and is always the same, so that a crash leaves one at most.
fn replace(folder: &Folder, name: &str, make: impl Fn(&str) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary(name);
    let remove = || unlinkat(folder, temporary.as_str(), UnlinkatFlags::NoRemoveDir);
    let made = match make(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove()?;
            make(&temporary)
        }
        other => other,
    };
    let moved = made.and_then(|()| Ok(renameat(folder, temporary.as_str(), folder, name)?));
    if let Err(error) = moved {
        // Best effort: the error that matters is the one at hand.
        let _ = remove();
        return Err(error);
    }
    Ok(fsync(folder)?)
}

fn temporary(name: &str) -> String {
    format!(".{name}.selvedge~")
}

fn write(folder: &Folder, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    // 0600 until it is whole: a secret must not be readable in between.
    let mut file = File::from(openat(folder, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    file.write_all(bytes)?;
    fchmod(file.as_fd(), Mode::from_bits_truncate(mode))?;
    file.sync_all()
}
