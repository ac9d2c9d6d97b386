//! Kernel modules: seen in sysfs, loaded and unloaded by modprobe.
//!
//! modprobe and not `finit_module`: it knows the module's dependencies, its
//! options in /etc/modprobe.d and how the file is compressed.

use std::io;
use std::path::{Path, PathBuf};

use super::program;
use crate::machine::MachineError;
use crate::name::ModuleName;
use crate::state::{Object, State};

/// Whether the module is loaded or built in.
pub(super) fn observe(name: &ModuleName) -> State {
    look(Path::new("/sys/module"), name)
}

/// A module that still comes or already goes can't be used: only `live` counts.
fn look(folder: &Path, name: &ModuleName) -> State {
    let folder: PathBuf = folder.join(name.as_str());
    match std::fs::read_to_string(folder.join("initstate")) {
        Ok(state) if state.trim() == "live" => State::Present,
        Ok(_) => State::Absent,
        // What is built into the kernel has a folder, for its parameters, and no state.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if folder.is_dir() {
                State::Present
            } else {
                State::Absent
            }
        }
        Err(error) => State::Unknown { why: error.to_string() },
    }
}

/// Loads or unloads the module.
pub(super) fn perform(name: &ModuleName, after: &State) -> Result<(), MachineError> {
    match after {
        State::Present => program::run("modprobe", &["--", name.as_str()]).map(drop),
        State::Absent => program::run("modprobe", &["-r", "--", name.as_str()]).map(drop),
        other => {
            Err(MachineError::Impossible { object: Object::Module { name: name.clone() }, state: other.to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_live_module_counts() {
        let folder = tempfile::tempdir().unwrap();
        for (name, state) in [("ib_core", Some("live\n")), ("ib_umad", Some("coming\n")), ("dummy", None)] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            if let Some(state) = state {
                std::fs::write(folder.path().join(name).join("initstate"), state).unwrap();
            }
        }
        let look = |name: &str| look(folder.path(), &name.parse().unwrap());
        assert_eq!(look("ib_core"), State::Present);
        assert_eq!(look("ib_umad"), State::Absent);
        assert_eq!(look("dummy"), State::Present, "built into the kernel");
        assert_eq!(look("ib_ipoib"), State::Absent);
    }
}
