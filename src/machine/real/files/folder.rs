//! Folders by descriptor: everything done in one stays in it, whatever happens to its path.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{Mode, fchmod, mkdirat};
use nix::unistd::fsync;

use crate::state::FilePath;

const FOLDER: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// Permissions of a folder that had to be made.
const NEW_FOLDER: Mode =
    Mode::S_IRWXU.union(Mode::S_IRGRP).union(Mode::S_IXGRP).union(Mode::S_IROTH).union(Mode::S_IXOTH);

/// Where paths start.
pub(super) enum Root {
    /// At this host's root.
    Live,
    /// At the root of an image.
    Image(OwnedFd),
}

/// An open folder.
pub(super) struct Folder(OwnedFd);

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Root {
    /// The root of the image at `path`.
    pub(super) fn image(path: &Path) -> io::Result<Self> {
        Ok(Self::Image(open(path, FOLDER, Mode::empty())?))
    }

    /// The folder that `path` is in, and the name of `path` there.
    pub(super) fn folder_of<'a>(&self, path: &'a FilePath) -> io::Result<(Folder, &'a str)> {
        let (parent, name) = split(path);
        Ok((self.open(parent)?, name))
    }

    /// The same; folders that are missing are made, 0755.
    pub(super) fn make_folder_of<'a>(&self, path: &'a FilePath) -> io::Result<(Folder, &'a str)> {
        let (parent, name) = split(path);
        Ok((self.make(parent)?, name))
    }

    /// Where on this host the folder at `path` is, or is to be made: never outside of the root.
    ///
    /// `path` is without the leading slash. No part of it that is missing is made here.
    pub(super) fn place_of(&self, path: &str) -> io::Result<PathBuf> {
        let Self::Image(root) = self else { return Ok(Path::new("/").join(path)) };
        match self.open(path) {
            Ok(folder) => std::fs::read_link(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()))
                .map_err(|error| io::Error::new(error.kind(), format!("{error}; is /proc mounted here?"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_empty() => {
                let link = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC);
                if openat2(root, path, link.resolve(ResolveFlag::RESOLVE_IN_ROOT)).is_ok() {
                    let why = format!("/{path} is a link to a folder that the image does not have");
                    return Err(io::Error::new(io::ErrorKind::NotFound, why));
                }
                let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
                Ok(self.place_of(above)?.join(name))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether something is at `folder`. What cannot be looked at is taken to be there.
    pub(super) fn has(&self, folder: &FilePath) -> bool {
        let opened = self.open(folder.as_str().trim_start_matches('/'));
        !opened.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    fn make(&self, path: &str) -> io::Result<Folder> {
        match self.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_empty() => {
                let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
                let above = self.make(above)?;
                match mkdirat(&above, name, NEW_FOLDER) {
                    Ok(()) => {
                        let made = openat(&above, name, FOLDER | OFlag::O_NOFOLLOW, Mode::empty())?;
                        // The caller's umask has no say in what a system's folders look like.
                        fchmod(&made, NEW_FOLDER)?;
                        fsync(&above)?;
                        Ok(Folder(made))
                    }
                    Err(Errno::EEXIST) => self.open(path),
                    Err(error) => Err(error.into()),
                }
            }
            other => other,
        }
    }

    /// Opens a folder by its path without the leading slash.
    ///
    /// In an image symbolic links are followed as its own kernel would: from its root.
    fn open(&self, path: &str) -> io::Result<Folder> {
        let opened = match self {
            Self::Live => open(format!("/{path}").as_str(), FOLDER, Mode::empty())?,
            Self::Image(root) => {
                let how = OpenHow::new().flags(FOLDER).resolve(ResolveFlag::RESOLVE_IN_ROOT);
                openat2(root, if path.is_empty() { "." } else { path }, how)?
            }
        };
        Ok(Folder(opened))
    }
}

fn split(path: &FilePath) -> (&str, &str) {
    let path = path.as_str().trim_start_matches('/');
    path.rsplit_once('/').unwrap_or(("", path))
}
