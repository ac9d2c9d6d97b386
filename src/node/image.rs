//! Where the journals of an image are: inside of it, whatever its links say.

use std::fs;

use super::session::SessionError;
use crate::apply::store::Store;
use crate::machine::real::RealMachine;

/// The store at `path` (without the leading slash) in the image that `machine` is.
///
/// # Errors
/// When it cannot be inside of the image, or a link among the journals could lead out of it.
pub(super) fn store(machine: &RealMachine, path: &str) -> Result<Store, SessionError> {
    // A link in the image may name a folder of this host, which the journals are not of.
    let folder = machine.place_of(path)?;
    let parts = ["lock", "journal", "blobs"].map(|name| folder.join(name));
    let journals = fs::read_dir(folder.join("journal")).into_iter().flatten().flatten().map(|entry| entry.path());
    match parts.into_iter().chain(journals).find(|path| path.is_symlink()) {
        Some(link) => Err(SessionError::StoreLink(link)),
        None => Ok(Store::new(folder)),
    }
}
