//! The locked-memory limit of the services that start jobs.
//!
//! systemd ignores limits.conf, so the limit of the running process is the evidence.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::model::Memlock;
use crate::name::UnitName;
use crate::program;

/// Jobs inherit their limit from these.
const JOB_STARTERS: [&str; 3] = ["slurmd", "sshd", "containerd"];

/// A unit as systemd has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name.
    pub name: UnitName,
    /// Whether systemd finds its file.
    pub installed: bool,
    /// Its main process; `None` while it has none.
    pub main_pid: Option<u32>,
}

/// What systemd says of `names`; nothing where it cannot be asked.
#[must_use]
pub fn units(names: &BTreeSet<UnitName>) -> Vec<Unit> {
    let ask = |name: &UnitName| {
        let arguments = ["show", "--property=LoadState,MainPID", "--", name.as_str()];
        let output = program::command("systemctl").args(arguments).output().ok()?;
        unit(name, &String::from_utf8_lossy(&output.stdout))
    };
    names.iter().filter_map(ask).collect()
}

/// Reads `KEY=VALUE` lines.
fn unit(name: &UnitName, shown: &str) -> Option<Unit> {
    let field = |key: &str| shown.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let main_pid = field("MainPID").and_then(|pid| pid.parse().ok()).filter(|pid| *pid != 0);
    Some(Unit { name: name.clone(), installed: field("LoadState")? != "not-found", main_pid })
}

/// The limit of a unit's main process, if it has one.
#[must_use]
pub fn of_unit(root: &Path, unit: &Unit) -> Option<Memlock> {
    let limits = fs::read_to_string(root.join(format!("proc/{}/limits", unit.main_pid?))).ok()?;
    Some(Memlock { unit: unit.name.clone(), named: true, bytes: soft_limit(&limits)? })
}

/// What of `units` an apply does not do: a running service keeps its limit, and what is not there has none.
#[must_use]
pub fn notes(root: &Path, units: &[Unit]) -> Vec<String> {
    let missing = units
        .iter()
        .filter(|unit| !unit.installed)
        .map(|unit| format!("memlock: {} is not installed here: its drop-in has an effect once it is", unit.name));
    let limited = units.iter().filter_map(|unit| of_unit(root, unit)).filter(|memlock| memlock.bytes.is_some());
    let keep = limited.map(|Memlock { unit, .. }| {
        let slurm = match unit.as_str() {
            "slurmd.service" => ", and slurm.conf needs PropagateResourceLimitsExcept=MEMLOCK",
            _ => "",
        };
        format!(
            "memlock: {unit} runs and keeps its old limit until it is restarted, which selvedge never does: \
             `systemctl restart {unit}` when that disturbs nobody{slurm}"
        )
    });
    missing.chain(keep).collect()
}

/// Of each job starter that runs, the lowest limit among its processes.
#[must_use]
pub fn of_job_starters(root: &Path) -> Vec<Memlock> {
    let mut found: Vec<Memlock> = Vec::new();
    for entry in fs::read_dir(root.join("proc")).into_iter().flatten().flatten() {
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
        let Some(service) = read("comm").map(|comm| comm.trim().to_owned()) else { continue };
        if !JOB_STARTERS.contains(&service.as_str()) {
            continue;
        }
        let Ok(unit) = format!("{service}.service").parse::<UnitName>() else { continue };
        let Some(bytes) = read("limits").and_then(|limits| soft_limit(&limits)) else { continue };
        match found.iter_mut().find(|known| known.unit == unit) {
            Some(known) => known.bytes = [known.bytes, bytes].into_iter().flatten().min(),
            None => found.push(Memlock { unit, named: false, bytes }),
        }
    }
    found
}

/// The soft limit in `/proc/PID/limits`: inner `None` is unlimited, outer `None` not found.
fn soft_limit(limits: &str) -> Option<Option<u64>> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(None),
        bytes => bytes.parse().ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units\n\
                          Max locked memory         8388608              8388608              bytes\n";

    #[test]
    fn limits_read_as_the_kernel_prints_them() {
        assert_eq!(soft_limit(LIMITS), Some(Some(8_388_608)));
        assert_eq!(soft_limit(&LIMITS.replace("8388608", "unlimited")), Some(None));
        assert_eq!(soft_limit(""), None);
    }

    #[test]
    fn units_read_as_systemctl_shows_them() {
        let name: UnitName = "slurmd.service".parse().unwrap();
        let read = |shown: &str| unit(&name, shown).map(|unit| (unit.installed, unit.main_pid));
        assert_eq!(read("MainPID=812\nLoadState=loaded\n"), Some((true, Some(812))));
        assert_eq!(read("MainPID=0\nLoadState=not-found\n"), Some((false, None)));
        assert_eq!(read(""), None, "systemd does not run");
    }

    #[test]
    fn a_unit_that_keeps_its_limit_and_one_that_is_missing_are_said() {
        let root = tempfile::tempdir().unwrap();
        for (pid, limits) in [("7", LIMITS.to_owned()), ("8", LIMITS.replace("8388608", "unlimited"))] {
            fs::create_dir_all(root.path().join("proc").join(pid)).unwrap();
            fs::write(root.path().join("proc").join(pid).join("limits"), limits).unwrap();
        }
        let unit = |name: &str, installed, main_pid| Unit { name: name.parse().unwrap(), installed, main_pid };
        let units = [
            unit("slurmd.service", true, Some(7)),
            unit("sshd.service", true, Some(8)),
            unit("containerd.service", false, None),
        ];
        let notes = notes(root.path(), &units);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("containerd.service is not installed"), "{}", notes[0]);
        assert!(notes[1].contains("`systemctl restart slurmd.service`"), "{}", notes[1]);
        assert!(notes[1].contains("PropagateResourceLimitsExcept=MEMLOCK"), "{}", notes[1]);
    }
}
