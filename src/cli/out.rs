//! Files below a folder of the user's: all of them, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::Stop;
use crate::machine::real::RealMachine;
use crate::machine::{Machine, MachineError};
use crate::state::{Blobs, Change, Object, Observed, Reason, State};

/// Makes `files`, whose contents are in `blobs`, below `folder` as an apply to an image would: each whole, and never
/// through a link that leads out of `folder`. When one cannot be made, all is as it was before.
pub(super) fn write_below(folder: &Path, files: &BTreeMap<Object, State>, blobs: &Blobs) -> Result<(), Stop> {
    let made = make(folder)?;
    let written = write(folder, files, blobs);
    if written.is_err() {
        // Those that are not empty were not made here, and stay.
        made.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
    written
}

/// Makes the folder; gives those that were not there, the innermost first.
fn make(folder: &Path) -> Result<Vec<PathBuf>, Stop> {
    let missing = |folder: &&Path| !folder.as_os_str().is_empty() && folder.symlink_metadata().is_err();
    let made: Vec<PathBuf> = folder.ancestors().take_while(missing).map(Path::to_owned).collect();
    fs::create_dir_all(folder).map_err(|error| {
        made.iter().for_each(|folder| drop(fs::remove_dir(folder)));
        Stop::failed(format!("cannot make the folder {}: {error}", folder.display()))
    })?;
    Ok(made)
}

fn write(folder: &Path, files: &BTreeMap<Object, State>, blobs: &Blobs) -> Result<(), Stop> {
    let failed = |error: MachineError| Stop::failed(words(folder, &error));
    let mut machine = RealMachine::image(folder).map_err(failed)?;
    let scope: Vec<Object> = files.keys().cloned().collect();
    let before = machine.observe(&scope).map_err(failed)?;
    for (object, found) in &before.states.0 {
        if let (Object::File { path }, State::Unknown { why }) = (object, found) {
            return Err(Stop::failed(format!("cannot write {}: {why}", path.under(folder).display())));
        }
    }
    for (count, (object, after)) in files.iter().enumerate() {
        if let Err(error) = machine.perform(&to(object, after), blobs) {
            let left = back(&mut machine, &before, scope.iter().take(count + 1));
            let left: Vec<String> = left.iter().map(|error| words(folder, error)).collect();
            let end = if left.is_empty() { "all is as it was".to_owned() } else { left.join("; ") };
            return Err(Stop::failed(format!("{}; {end}", words(folder, &error))));
        }
    }
    Ok(())
}

/// Puts back what was there; gives what could not be put back. What was added goes first, which makes room.
fn back<'a>(
    machine: &mut RealMachine,
    before: &Observed,
    objects: impl Iterator<Item = &'a Object> + Clone,
) -> Vec<MachineError> {
    let is_new = |object: &&Object| before.states.get(object) == State::Absent;
    let (new, old) = (objects.clone().filter(is_new), objects.filter(|object| !is_new(object)));
    let step = |object: &Object| machine.perform(&to(object, &before.states.get(object)), &before.blobs).err();
    let left = new.chain(old).filter_map(step).collect();
    machine.leave(&before.missing);
    left
}

fn to(object: &Object, after: &State) -> Change {
    let reason = Reason(String::new());
    Change {
        object: object.clone(),
        before: State::Absent,
        after: after.clone(),
        reason,
        disturbs: BTreeSet::new(),
        condition: None,
    }
}

/// An error with the path as it is on this host.
fn words(folder: &Path, error: &MachineError) -> String {
    match error {
        MachineError::File { operation, path, source } => {
            let path = Path::new(path);
            let path = if path.starts_with(folder) {
                path.to_owned()
            } else {
                folder.join(path.strip_prefix("/").unwrap_or(path))
            };
            format!("cannot {operation} {}: {source}", path.display())
        }
        other => other.to_string(),
    }
}
