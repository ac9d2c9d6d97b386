//! systemd's units while the system's D-Bus is not there yet: by `systemctl`,
//! which as root speaks to systemd's own socket.
//!
//! So it is at boot, when an apply that was cut off is undone before the network starts.

use std::collections::BTreeMap;
use std::path::Path;

use super::{program, systemd};
use crate::machine::MachineError;
use crate::name::UnitName;
use crate::state::{Object, State};

/// Whether the system's D-Bus can be expected to answer.
pub(super) fn has_bus() -> bool {
    std::env::var_os("DBUS_SYSTEM_BUS_ADDRESS").is_some() || Path::new("/run/dbus/system_bus_socket").exists()
}

/// The states of `units`.
pub(super) fn observe(units: &[&UnitName]) -> BTreeMap<Object, State> {
    let names = units.iter().map(|name| name.as_str());
    let arguments: Vec<&str> =
        ["show", "--property=Id,ActiveState,SubState,Job", "--"].into_iter().chain(names).collect();
    match program::run("systemctl", &arguments) {
        Ok(shown) => states(units, &shown),
        Err(error) => systemd::unseen(units, &error.to_string()),
    }
}

/// Starts or stops a unit; a start that is queued for later in the boot is called off by a stop.
pub(super) fn perform(name: &UnitName, after: &State) -> Result<(), MachineError> {
    let verb = match after {
        State::Running => "start",
        State::Stopped | State::Failed | State::Restarting => "stop",
        other => {
            let object = Object::Unit { name: name.clone() };
            return Err(MachineError::Impossible { object, state: other.to_string() });
        }
    };
    program::run("systemctl", &[verb, "--", name.as_str()]).map(drop)
}

/// Restarts a unit if it runs.
pub(super) fn restart(name: &UnitName) -> Result<(), MachineError> {
    if !is_active(name.as_str()) {
        return Ok(());
    }
    program::run("systemctl", &["try-restart", "--", name.as_str()]).map(drop)
}

/// Has systemd read its unit files again.
pub(super) fn reload() -> Result<(), MachineError> {
    program::run("systemctl", &["daemon-reload"]).map(drop)
}

/// Whether a unit is active.
pub(super) fn is_active(name: &str) -> bool {
    program::run("systemctl", &["is-active", "--quiet", "--", name]).is_ok()
}

/// Reads blocks of `KEY=VALUE` lines, one block a unit.
fn states(units: &[&UnitName], shown: &str) -> BTreeMap<Object, State> {
    let mut states = systemd::unseen(units, "systemctl did not show it");
    for block in shown.split("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let Some(name) = field("Id").and_then(|id| id.parse().ok()) else { continue };
        let queued = field("Job").is_some_and(|job| !job.is_empty());
        let meaning = systemd::meaning(field("ActiveState").unwrap_or_default(), field("SubState").unwrap_or_default());
        let on_its_way = || State::Unknown { why: "it is about to start or stop".to_owned() };
        let state = if queued { on_its_way() } else { meaning.unwrap_or_else(on_its_way) };
        states.insert(Object::Unit { name }, state);
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queued_start_is_not_a_stopped_unit() {
        let names: [UnitName; 3] = ["a.service", "b.service", "c.service"].map(|name| name.parse().unwrap());
        let units: Vec<&UnitName> = names.iter().collect();
        let shown = "Id=a.service\nActiveState=inactive\nSubState=dead\nJob=\n\n\
                     Id=b.service\nActiveState=inactive\nSubState=dead\nJob=117\n";
        let states = states(&units, shown);
        let state = |name: &UnitName| &states[&Object::Unit { name: name.clone() }];
        assert_eq!(state(units[0]), &State::Stopped);
        assert!(matches!(state(units[1]), State::Unknown { .. }));
        assert!(matches!(state(units[2]), State::Unknown { .. }));
    }
}
