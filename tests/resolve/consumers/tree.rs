//! A case's files on disk, and what they are meant to bring about.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use selvedge::plan::Desired;
use selvedge::state::{Object, State};
use selvedge::tag::Tag;
use tempfile::TempDir;

use crate::case::Case;

/// The files of a case, and the state that they are for.
#[derive(Clone)]
pub(crate) struct Tree {
    files: BTreeMap<String, (String, u32)>,
    links: BTreeMap<String, Link>,
}

/// What is meant for a link: from the live objects, not from the files.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) mode: Option<String>,
    pub(crate) mtu: u32,
    pub(crate) addresses: Vec<String>,
    pub(crate) infiniband: bool,
    /// Of a child.
    pub(crate) on: Option<(String, Tag)>,
}

impl Tree {
    /// The files of a case; `None` when it has a message instead.
    pub(crate) fn of_case(folder: &Path) -> Option<Self> {
        let case = Case::read(folder).unwrap();
        let desired = case.resolve().ok()?;
        // A mode that waits is in the files and not among the live objects.
        if desired.deferred.is_empty() { Some(Self::of(&desired)) } else { None }
    }

    fn of(desired: &Desired) -> Self {
        let mut tree = Self { files: BTreeMap::new(), links: BTreeMap::new() };
        for (object, wanted) in &desired.items {
            match (object, &wanted.state) {
                (Object::File { path }, State::File { digest, mode }) => {
                    let text = String::from_utf8(desired.blobs.get(digest).unwrap().to_vec()).unwrap();
                    tree.files.insert(path.to_string(), (text, *mode));
                }
                (Object::LinkMode { link }, State::Mode { mode }) => {
                    let link = tree.links.entry(link.to_string()).or_default();
                    link.infiniband = true;
                    link.mode = Some(mode.to_string());
                }
                (Object::LinkMtu { link }, State::Mtu { bytes }) => {
                    tree.links.entry(link.to_string()).or_default().mtu = *bytes;
                }
                (Object::Child { link, parent, tag }, _) => {
                    tree.links.entry(link.to_string()).or_default().on = Some((parent.to_string(), *tag));
                }
                (Object::Address { link, address }, _) => {
                    tree.links.entry(link.to_string()).or_default().addresses.push(address.to_string());
                }
                _ => {}
            }
        }
        tree
    }

    pub(crate) fn links(&self) -> &BTreeMap<String, Link> {
        &self.links
    }

    /// Those that ports have themselves.
    pub(crate) fn own_links(&self) -> impl Iterator<Item = (&String, &Link)> {
        self.links.iter().filter(|(_, link)| link.on.is_none())
    }

    pub(crate) fn has(&self, folder: &str) -> bool {
        self.under(folder).next().is_some()
    }

    /// Paths and texts of the files in `folder`.
    pub(crate) fn under<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let files = self.files.iter().filter(move |(path, _)| path.starts_with(folder));
        files.map(|(path, (text, _))| (path.as_str(), text.as_str()))
    }

    /// With `text` replaced in the files of `folder`.
    pub(crate) fn edited(&self, folder: &str, text: &str, other: &str) -> Result<Self, String> {
        let mut edited = self.clone();
        let mut found = false;
        for (_, (content, _)) in edited.files.iter_mut().filter(|(path, _)| path.starts_with(folder)) {
            found |= content.contains(text);
            *content = content.replace(text, other);
        }
        if found { Ok(edited) } else { Err(format!("no file has `{text}`")) }
    }

    /// With each file of `folder` as `edit` makes it of path and text.
    pub(crate) fn each(&self, folder: &str, edit: impl Fn(&str, &str) -> String) -> Self {
        let mut edited = self.clone();
        for (path, (content, _)) in edited.files.iter_mut().filter(|(path, _)| path.starts_with(folder)) {
            *content = edit(path, content);
        }
        edited
    }

    /// Writes all files below a new root.
    pub(crate) fn written(&self) -> (TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for (path, (text, mode)) in &self.files {
            let path = root.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        let path = root.path().to_owned();
        (root, path)
    }
}
