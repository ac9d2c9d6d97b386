//! Where the journals of an image are: inside of it, whatever its links say.

use std::fs;
use std::path::Path;

use super::session::SessionError;
use crate::apply::store::Store;
use crate::machine::real::RealMachine;

/// The store at `path` (without the leading slash) in the image that `machine` is.
///
/// # Errors
/// When it cannot be inside of the image, or something among the journals could lead out of it or never end.
pub(super) fn store(machine: &RealMachine, path: &str) -> Result<Store, SessionError> {
    // A link in the image may name a folder of this host, which the journals are not of.
    let folder = machine.place_of(path)?;
    let [journals, blobs] = ["journal", "blobs"].map(|name| folder.join(name));
    let within = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let kind = |path: &Path| path.symlink_metadata().map(|found| found.file_type()).ok();
    for part in [&journals, &blobs] {
        match kind(part) {
            Some(kind) if kind.is_symlink() => return Err(SessionError::StoreLink(part.clone())),
            Some(kind) if !kind.is_dir() => return Err(SessionError::StoreKind(part.clone())),
            _ => {}
        }
    }
    for file in within(&journals).chain(within(&blobs)).chain([folder.join("lock")]) {
        match kind(&file) {
            Some(kind) if kind.is_symlink() => return Err(SessionError::StoreLink(file)),
            Some(kind) if !kind.is_file() => return Err(SessionError::StoreKind(file)),
            _ => {}
        }
    }
    Ok(Store::new(folder))
}
