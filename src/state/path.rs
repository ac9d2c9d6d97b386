//! Paths that cannot leave the place they are meant for.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An absolute path without `.`, `..`, doubled slashes or control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub struct FilePath(String);

/// Not a [`FilePath`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not an absolute path of plain components")]
pub struct PathError(String);

impl FilePath {
    /// The path as text, from `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folders above it, from below `/` downwards.
    pub fn folders(&self) -> impl Iterator<Item = Self> {
        self.0.match_indices('/').skip(1).map(|(end, _)| Self(self.0[..end].to_owned()))
    }

    /// Where the file is when the file system's root is at `root`.
    #[must_use]
    pub fn under(&self, root: &Path) -> PathBuf {
        root.join(self.0.trim_start_matches('/'))
    }
}

impl FromStr for FilePath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.chars().any(char::is_control);
        match text.strip_prefix('/') {
            Some(rest) if rest.split('/').all(plain) => Ok(Self(text.to_owned())),
            _ => Err(PathError(text.escape_debug().to_string())),
        }
    }
}

impl TryFrom<String> for FilePath {
    type Error = PathError;
    fn try_from(text: String) -> Result<Self, PathError> {
        text.parse()
    }
}

impl From<FilePath> for String {
    fn from(path: FilePath) -> Self {
        path.0
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leaves_its_place() {
        for text in ["", "etc", "/", "/a/../b", "/a/./b", "/a//b", "/a/", "/a\n"] {
            assert!(text.parse::<FilePath>().is_err(), "{text:?}");
        }
        let path: FilePath = "/etc/netplan/60-selvedge.yaml".parse().unwrap();
        let folders: Vec<String> = path.folders().map(String::from).collect();
        assert_eq!(folders, ["/etc", "/etc/netplan"]);
        assert_eq!(path.under(Path::new("/image")), Path::new("/image/etc/netplan/60-selvedge.yaml"));
    }
}
