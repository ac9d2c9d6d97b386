//! systemd's units, over D-Bus: seen all in one call, started and stopped by jobs whose end is awaited.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use zbus::{MessageStream, OwnedObjectPath};

use super::bus::{Bus, SYSTEMD, refused};
use super::program;
use crate::machine::MachineError;
use crate::name::UnitName;
use crate::state::{Object, State};

/// How long a start or stop may take: more than systemd's own 90 s, so that it is systemd that says why.
const JOB_DEADLINE: Duration = Duration::from_secs(120);

/// How long an observation waits for a unit that is starting or stopping.
const SETTLE_DEADLINE: Duration = Duration::from_secs(10);

/// How long a service that was started has to run before it counts as running.
const STAYS: Duration = Duration::from_secs(2);

/// How long it may take until it does; our own manager's unit is tried again after 5 s.
const STAYS_DEADLINE: Duration = Duration::from_secs(15);

const UNIT_INTERFACE: &str = "org.freedesktop.systemd1.Unit";

/// How many of its last journal lines a failed unit's error carries.
const JOURNAL_LINES: &str = "6";

/// One unit of `ListUnitsByNames`: name, description, load, active and sub state, the unit it
/// follows, its path, and its job's id, type and path.
type Listed = (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

/// Whether systemd is what runs this host (sd_booted(3)).
pub(super) fn is_running() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// The states of `units`.
pub(super) fn observe(bus: &Bus, units: &[&UnitName]) -> Result<BTreeMap<Object, State>, MachineError> {
    bus.runtime.block_on(settled(bus, units))
}

/// The states of units that could not be seen.
pub(super) fn unseen(units: &[&UnitName], why: &str) -> BTreeMap<Object, State> {
    let unknown = |name: &&UnitName| (unit(name), State::Unknown { why: why.to_owned() });
    units.iter().map(unknown).collect()
}

/// Starts or stops a unit and waits until that is done.
///
/// Going back to `Failed` or `Restarting` is to stop: nobody wants the failure itself again.
pub(super) fn perform(bus: &Bus, name: &UnitName, before: &State, after: &State) -> Result<(), MachineError> {
    let (method, action) = match after {
        State::Running => ("StartUnit", "start"),
        State::Stopped | State::Failed | State::Restarting => ("StopUnit", "stop"),
        other => return Err(MachineError::Impossible { object: unit(name), state: other.to_string() }),
    };
    if matches!(before, State::Failed | State::Restarting) && *after == State::Running {
        // A unit that failed too often in a row is not started again until that is forgotten.
        let _ = bus.runtime.block_on(bus.call(SYSTEMD, "ResetFailedUnit", &name.as_str()));
    }
    run_job(bus, method, name, action)?;
    if *after == State::Running { stays(bus, name, action) } else { Ok(()) }
}

/// Waits until a service has run for a moment: the job of a simple one ends when its program begins, and one that
/// dies at once would pass. A service that finds its device late is started again by systemd, and has that chance.
fn stays(bus: &Bus, name: &UnitName, action: &'static str) -> Result<(), MachineError> {
    let deadline = Instant::now() + STAYS_DEADLINE;
    loop {
        let before = bus.runtime.block_on(start_of(bus, name));
        std::thread::sleep(STAYS);
        let after = bus.runtime.block_on(start_of(bus, name));
        if before.is_some() && before == after {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let result = format!("it does not stay up for {} s", STAYS.as_secs());
            return Err(MachineError::Unit { name: name.clone(), action, result, journal: journal(name) });
        }
    }
}

/// Which run of an active unit this is: systemd gives each its own id.
async fn start_of(bus: &Bus, name: &UnitName) -> Option<Vec<u8>> {
    let answer = bus.call(SYSTEMD, "GetUnit", &name.as_str()).await.ok()?;
    let path: OwnedObjectPath = answer.body().deserialize().ok()?;
    let state: String = bus.property(SYSTEMD, path.as_str(), UNIT_INTERFACE, "ActiveState").await?;
    if state != "active" {
        return None;
    }
    bus.property(SYSTEMD, path.as_str(), UNIT_INTERFACE, "InvocationID").await
}

/// Restarts a unit if it runs.
pub(super) fn restart(bus: &Bus, name: &UnitName) -> Result<(), MachineError> {
    let listed = bus.runtime.block_on(list(bus, &[name]))?;
    // A unit whose file is gone is refused even what would be nothing to do.
    if listed.values().all(|state| matches!(state, Some(State::Stopped | State::Failed | State::Restarting))) {
        return Ok(());
    }
    run_job(bus, "TryRestartUnit", name, "restart")
}

/// Has systemd read its unit files again.
pub(super) fn reload(bus: &Bus) -> Result<(), MachineError> {
    bus.runtime.block_on(bus.call(SYSTEMD, "Reload", &())).map(drop)
}

fn unit(name: &UnitName) -> Object {
    Object::Unit { name: name.clone() }
}

async fn settled(bus: &Bus, units: &[&UnitName]) -> Result<BTreeMap<Object, State>, MachineError> {
    let deadline = tokio::time::Instant::now() + SETTLE_DEADLINE;
    let mut changes: Option<MessageStream> = None;
    loop {
        let listed = list(bus, units).await?;
        let changing = listed.values().any(Option::is_none);
        let late = tokio::time::Instant::now() >= deadline;
        if !changing || late {
            let why = || format!("it is still starting or stopping after {} s", SETTLE_DEADLINE.as_secs());
            let state = |state: Option<State>| state.unwrap_or_else(|| State::Unknown { why: why() });
            return Ok(listed.into_iter().map(|(name, found)| (Object::Unit { name }, state(found))).collect());
        }
        match &mut changes {
            // After listening, look once more: it may just have changed.
            None => changes = Some(bus.systemd_signals("org.freedesktop.DBus.Properties", "PropertiesChanged").await?),
            Some(changes) => drop(tokio::time::timeout_at(deadline, changes.next()).await),
        }
    }
}

/// The states of `units`, `None` for one that is on its way to another.
async fn list(bus: &Bus, units: &[&UnitName]) -> Result<BTreeMap<UnitName, Option<State>>, MachineError> {
    let names: Vec<&str> = units.iter().map(|name| name.as_str()).collect();
    let answer = bus.call(SYSTEMD, "ListUnitsByNames", &names).await?;
    let listed: Vec<Listed> =
        answer.body().deserialize().map_err(|error| refused(SYSTEMD.shown, "ListUnitsByNames", error))?;
    let state = |(name, _, _, active, sub, _, _, job, ..): Listed| {
        // With a job queued it is on its way even where that has not begun.
        Some((name.parse().ok()?, if job == 0 { meaning(&active, &sub) } else { None }))
    };
    let mut states: BTreeMap<UnitName, Option<State>> = listed.into_iter().filter_map(state).collect();
    for name in units {
        states.entry((*name).clone()).or_insert(Some(State::Stopped));
    }
    Ok(states)
}

/// What systemd's active state and sub state come to.
pub(super) fn meaning(active: &str, sub: &str) -> Option<State> {
    match (active, sub) {
        ("active" | "reloading" | "refreshing", _) => Some(State::Running),
        // A service that dies again and again is in this state most of the time; before it, for a moment, in the
        // other two.
        ("activating", "auto-restart" | "auto-restart-queued")
        | (_, "dead-before-auto-restart" | "failed-before-auto-restart") => Some(State::Restarting),
        ("failed", _) => Some(State::Failed),
        ("activating" | "deactivating", _) => None,
        _ => Some(State::Stopped),
    }
}

fn run_job(bus: &Bus, method: &str, name: &UnitName, action: &'static str) -> Result<(), MachineError> {
    let job = in_time(bus, name, action, job(bus, method, name))?;
    if job == "done" || job == "skipped" && action == "stop" {
        return Ok(());
    }
    let reason = bus.runtime.block_on(unit_result(bus, name));
    let result = reason.map_or_else(|| job.clone(), |reason| format!("{job}, {reason}"));
    Err(MachineError::Unit { name: name.clone(), action, result, journal: journal(name) })
}

fn in_time(
    bus: &Bus,
    name: &UnitName,
    action: &str,
    job: impl Future<Output = Result<String, MachineError>>,
) -> Result<String, MachineError> {
    let timeout = || MachineError::Timeout { what: format!("the {action} of {name}"), seconds: JOB_DEADLINE.as_secs() };
    bus.runtime.block_on(async { tokio::time::timeout(JOB_DEADLINE, job).await.unwrap_or_else(|_| Err(timeout())) })
}

/// Queues a job and waits for its end: the result, "done" when all is well.
async fn job(bus: &Bus, method: &str, name: &UnitName) -> Result<String, MachineError> {
    // Before the job is queued, so that its end can't be missed.
    let mut ends = bus.systemd_signals(SYSTEMD.interface, "JobRemoved").await?;
    let answer = bus.call(SYSTEMD, method, &(name.as_str(), "replace")).await?;
    let wrong = |error| refused(SYSTEMD.shown, method, error);
    let queued: OwnedObjectPath = answer.body().deserialize().map_err(wrong)?;
    while let Some(signal) = ends.next().await {
        let signal = signal.map_err(wrong)?;
        let body = signal.body();
        let (_, job, _, result): (u32, OwnedObjectPath, String, String) = body.deserialize().map_err(wrong)?;
        if job == queued {
            return Ok(result);
        }
    }
    Err(refused(SYSTEMD.shown, method, "the connection ended before the job did"))
}

/// Why a service failed: "exit-code", "timeout", "start-limit-hit".
async fn unit_result(bus: &Bus, name: &UnitName) -> Option<String> {
    let answer = bus.call(SYSTEMD, "GetUnit", &name.as_str()).await.ok()?;
    let path: OwnedObjectPath = answer.body().deserialize().ok()?;
    let (_, kind) = name.as_str().rsplit_once('.')?;
    let mut interface = kind.to_owned();
    interface.get_mut(..1)?.make_ascii_uppercase();
    let interface = format!("org.freedesktop.systemd1.{interface}");
    bus.property(SYSTEMD, path.as_str(), &interface, "Result").await
}

fn journal(name: &UnitName) -> String {
    let lines = ["--no-pager", "--quiet", "--output=cat", "--lines", JOURNAL_LINES, "--unit", name.as_str()];
    program::run("journalctl", &lines).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemd_says_has_a_meaning() {
        assert_eq!(meaning("active", "running"), Some(State::Running));
        assert_eq!(meaning("active", "exited"), Some(State::Running));
        assert_eq!(meaning("reloading", "reload"), Some(State::Running));
        assert_eq!(meaning("inactive", "dead"), Some(State::Stopped));
        assert_eq!(meaning("failed", "failed"), Some(State::Failed));
        assert_eq!(meaning("activating", "auto-restart"), Some(State::Restarting));
        assert_eq!(meaning("failed", "failed-before-auto-restart"), Some(State::Restarting));
        assert_eq!(meaning("activating", "start-pre"), None);
        assert_eq!(meaning("deactivating", "stop-sigterm"), None);
    }
}
