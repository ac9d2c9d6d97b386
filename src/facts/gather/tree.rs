//! Reads below a root folder. What is not there, or may not be read, is `None`.
//!
//! In an image symbolic links lead where they will lead once it runs: never out of it. Its /proc, /sys, /dev and /run
//! are empty, whatever a chroot has mounted there: that would be of the host that builds it.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2, readlinkat};
use nix::sys::stat::Mode;

/// What a running kernel and its services fill.
const RUNTIME: [&str; 4] = ["/proc/", "/sys/", "/dev/", "/run/"];

/// The most that is read of a file in an image, bytes: what is read here is far below.
const MOST_BYTES: u64 = 1 << 20;

/// A file tree that looks like a host's.
pub(super) struct Tree {
    /// None on the host itself.
    root: Option<Image>,
    /// Whether nothing runs in it.
    at_rest: bool,
}

struct Image(Option<OwnedFd>);

impl Tree {
    pub(super) fn new(root: &Path) -> Self {
        if root == Path::new("/") {
            return Self { root: None, at_rest: false };
        }
        Self { root: Some(Image::open_root(root)), at_rest: false }
    }

    /// An image of a host, which is not running; its root may be this host's own.
    pub(super) fn at_rest(root: &Path) -> Self {
        Self { root: Some(Image::open_root(root)), at_rest: true }
    }

    fn is_empty_at(&self, path: &str) -> bool {
        self.at_rest && RUNTIME.iter().any(|folder| path.starts_with(folder))
    }

    /// What is at a path, a link there followed.
    fn open(&self, path: &str) -> Option<File> {
        match &self.root {
            None => File::open(path).ok(),
            Some(_) if self.is_empty_at(path) => None,
            Some(image) => image.open_readable(path),
        }
    }

    /// The bytes of a file.
    pub(super) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.open(path)?;
        // The kernel's own files end; what somebody put into an image need not.
        let most = if self.root.is_some() { MOST_BYTES } else { u64::MAX };
        file.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The text of a file.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        String::from_utf8(self.bytes(path)?).ok()
    }

    /// The text of a file without the white space around it; `None` when nothing is left.
    pub(super) fn word(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The names in a folder, sorted; none when there is no such folder.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let folder = self.open(path).and_then(|folder| Dir::from_fd(folder.into()).ok());
        let entries = folder.into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str().map(str::to_owned).ok());
        let mut names: Vec<String> = names.filter(|name| name != "." && name != "..").collect();
        names.sort();
        names
    }

    /// Whether something has this name, a link to nowhere included.
    pub(super) fn has(&self, path: &str) -> bool {
        match &self.root {
            None => Path::new(path).symlink_metadata().is_ok(),
            Some(image) => !self.is_empty_at(path) && image.open(path, OFlag::O_PATH | OFlag::O_NOFOLLOW).is_some(),
        }
    }

    /// The last component of what a symbolic link points to.
    pub(super) fn link_name(&self, path: &str) -> Option<String> {
        let target = match &self.root {
            None => fs::read_link(path).ok()?,
            Some(_) if self.is_empty_at(path) => return None,
            Some(image) => {
                let link = image.open(path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?;
                PathBuf::from(readlinkat(&link, "").ok()?)
            }
        };
        target.file_name()?.to_str().map(str::to_owned)
    }

    /// Whether a program is there to be run.
    pub(super) fn is_program(&self, path: &str) -> bool {
        let found = match &self.root {
            None => fs::metadata(path).ok(),
            Some(image) => image.open(path, OFlag::O_PATH).and_then(|file| File::from(file).metadata().ok()),
        };
        found.is_some_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    }

    /// Whether this is the host itself.
    pub(super) fn is_live(&self) -> bool {
        self.root.is_none()
    }
}

impl Image {
    fn open_root(root: &Path) -> Self {
        Self(open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).ok())
    }

    /// A regular file or a folder. To open a fifo or a device can block or do something, so it is looked at before.
    fn open_readable(&self, path: &str) -> Option<File> {
        let found = File::from(self.open(path, OFlag::O_PATH)?).metadata().ok()?;
        if !found.is_file() && !found.is_dir() {
            return None;
        }
        self.open(path, OFlag::O_RDONLY | OFlag::O_NONBLOCK).map(File::from)
    }

    fn open(&self, path: &str, flags: OFlag) -> Option<OwnedFd> {
        let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_IN_ROOT);
        openat2(self.0.as_ref()?, path, how).ok()
    }
}
