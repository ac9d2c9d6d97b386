//! Network settings of the kernel, in `/proc/sys`.

use std::io;
use std::path::Path;

use crate::machine::MachineError;
use crate::state::{Object, State, SysctlKey};

/// The value of a setting. Not there: its link or its protocol is not.
pub(super) fn observe(key: &SysctlKey) -> State {
    look(Path::new("/proc/sys"), key)
}

fn look(folder: &Path, key: &SysctlKey) -> State {
    match std::fs::read_to_string(folder.join(key.as_str())) {
        // Settings of several numbers have tabs between them, and take blanks.
        Ok(text) => State::Value { text: text.split_whitespace().collect::<Vec<_>>().join(" ") },
        Err(error) if error.kind() == io::ErrorKind::NotFound => State::Absent,
        Err(error) => State::Unknown { why: error.to_string() },
    }
}

/// Sets it. One that is not there is not made: the error says so.
pub(super) fn perform(key: &SysctlKey, after: &State) -> Result<(), MachineError> {
    let object = Object::Sysctl { key: key.clone() };
    let State::Value { text } = after else {
        return Err(MachineError::Impossible { object, state: after.to_string() });
    };
    let path = Path::new("/proc/sys").join(key.as_str());
    let written = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| io::Write::write_all(&mut file, format!("{text}\n").as_bytes()));
    written.map_err(|source| MachineError::Refused { object, asked: after.to_string(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_single_blanks_and_a_missing_setting_is_absent() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("net/ipv4");
        std::fs::create_dir_all(folder.join("tcp")).unwrap();
        std::fs::write(folder.join("tcp_rmem"), "4096\t131072\t6291456\n").unwrap();
        let look = |key: &str| look(root.path(), &key.parse().unwrap());
        assert_eq!(look("net/ipv4/tcp_rmem"), State::Value { text: "4096 131072 6291456".to_owned() });
        assert_eq!(look("net/ipv4/no"), State::Absent);
        assert!(matches!(look("net/ipv4/tcp"), State::Unknown { .. }));
    }
}
