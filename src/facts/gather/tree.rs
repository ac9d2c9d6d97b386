//! Reads below a root folder. What is not there, or may not be read, is `None`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file tree that looks like a host's.
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Whether this is the host itself.
    pub(super) fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The bytes of a file.
    pub(super) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.at(path)).ok()
    }

    /// The text of a file.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok()
    }

    /// The text of a file without the white space around it; `None` when nothing is left.
    pub(super) fn word(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The names in a folder, sorted; none when there is no such folder.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether something has this name, a link to nowhere included.
    pub(super) fn has(&self, path: &str) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    /// The last component of what a symbolic link points to.
    pub(super) fn link_name(&self, path: &str) -> Option<String> {
        fs::read_link(self.at(path)).ok()?.file_name()?.to_str().map(str::to_owned)
    }

    /// Whether a program is there to be run. A link in an image may only make sense from its root.
    pub(super) fn is_program(&self, path: &str) -> bool {
        let executable = |found: fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
        let path = self.at(path);
        path.metadata().is_ok_and(executable) || (!self.is_live() && path.is_symlink())
    }
}
