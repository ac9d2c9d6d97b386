//! What `show` and `render` report: the state that the spec asks of a node, and its files.

use schemars::JsonSchema;
use serde::Serialize;

use crate::name::HostName;
use crate::plan::{Deferred, Desired};
use crate::state::{FilePath, Object, State};

/// What a node is to be, object by object.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Shown {
    /// The node.
    node: HostName,
    /// What the spec asks of it.
    objects: Vec<ShownObject>,
    /// What can only be known once the node has changed.
    deferred: Vec<Deferred>,
    /// Choices that were made for the reader, and why.
    notes: Vec<String>,
}

/// One object and the state that is asked of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShownObject {
    /// The object.
    object: Object,
    /// Its state.
    state: State,
    /// Why, with the place in the spec.
    reason: String,
}

/// The files of a node.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rendered {
    /// The node.
    node: HostName,
    /// In the order of their paths.
    files: Vec<RenderedFile>,
    /// Symbolic links, such as those that enable units, in the order of their paths.
    links: Vec<RenderedLink>,
}

/// One file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RenderedFile {
    /// Where it is on the node.
    path: FilePath,
    /// Its permissions as a number: 420 is 0644.
    mode: u32,
    /// Its text.
    content: String,
}

/// One symbolic link.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RenderedLink {
    /// Where it is on the node.
    path: FilePath,
    /// What it points to.
    target: String,
}

impl Shown {
    /// All that is desired of `node`.
    pub(super) fn new(node: HostName, desired: &Desired) -> Self {
        let objects = desired.items.iter().map(|(object, wanted)| ShownObject {
            object: object.clone(),
            state: wanted.state.clone(),
            reason: wanted.reason.to_string(),
        });
        let objects = objects.collect();
        Self { node, objects, deferred: desired.deferred.clone(), notes: desired.notes.clone() }
    }

    /// As a person reads it.
    pub(super) fn to_text(&self) -> String {
        let mut lines = vec![format!("{} is to be", self.node)];
        let state = |state: &State| match state {
            State::File { mode, .. } => format!("as rendered, mode {mode:04o}"),
            other => other.to_string(),
        };
        let line = |row: &ShownObject| format!("  {}: {}  ({})", row.object, state(&row.state), row.reason);
        lines.extend(self.objects.iter().map(line));
        lines.extend(
            self.deferred.iter().map(|deferred| format!("  later: {}; waits until {}", deferred.what, deferred.until)),
        );
        lines.extend(self.notes.iter().map(|note| format!("  note: {note}")));
        lines.join("\n") + "\n"
    }
}

impl Rendered {
    /// The files that are desired of `node`.
    pub(super) fn new(node: HostName, desired: &Desired) -> Self {
        let files = desired.items.iter().filter_map(|(object, wanted)| match (object, &wanted.state) {
            (Object::File { path }, State::File { digest, mode }) => {
                let content = String::from_utf8_lossy(desired.blobs.get(digest)?).into_owned();
                Some(RenderedFile { path: path.clone(), mode: *mode, content })
            }
            _ => None,
        });
        let links = desired.items.iter().filter_map(|(object, wanted)| match (object, &wanted.state) {
            (Object::File { path }, State::Symlink { target }) => {
                Some(RenderedLink { path: path.clone(), target: target.clone() })
            }
            _ => None,
        });
        Self { node, files: files.collect(), links: links.collect() }
    }

    /// Of all, in their order.
    pub(super) fn paths(&self) -> impl Iterator<Item = &FilePath> {
        let files = self.files.iter().map(|file| &file.path);
        let mut paths: Vec<&FilePath> = files.chain(self.links.iter().map(|link| &link.path)).collect();
        paths.sort();
        paths.into_iter()
    }

    /// One after the other, each below a line with its path.
    pub(super) fn to_text(&self) -> String {
        let file = |file: &RenderedFile| {
            let RenderedFile { path, mode, content } = file;
            format!("# ==> {path} (mode {mode:04o})\n{content}")
        };
        let link = |link: &RenderedLink| format!("# ==> {} is a link to {}\n", link.path, link.target);
        self.files.iter().map(file).chain(self.links.iter().map(link)).collect()
    }
}
