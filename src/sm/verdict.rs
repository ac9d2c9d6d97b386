//! Judges what was seen of a fabric's managers against the spec.
//!
//! In: what was seen, and what is expected. Out: findings, the worst first, each
//! with the object it is about and the next step. No I/O, and no guess: what
//! was not looked at is said to be unknown.

use super::election::Priority;
pub use super::finding::{Finding, Problem, Severity};
use super::mad::{PhysicalState, PortState, SmState};
use super::mads::path_text;
use super::seen::{Coverage, CutShort, Expected, ExpectedManager, Reading, Says, Seen, SeenPort};

/// All that is wrong, the worst first; empty when the fabric is as the spec says.
#[must_use]
pub fn judge(seen: &Seen, expected: &Expected) -> Vec<Finding> {
    if let Some(finding) = local_port_down(seen) {
        return vec![finding];
    }
    let mut findings = Vec::new();
    findings.extend(masters(seen, expected));
    for (place, manager) in expected.managers.iter().enumerate() {
        findings.extend(of_the_spec(seen, expected, place, manager));
    }
    findings.extend(unknown(seen, expected));
    findings.extend(equal_priorities(seen, expected));
    findings.extend(stale_master_lid(seen, expected));
    findings.extend(incomplete(&seen.coverage, expected));
    findings.sort_by_key(|f| f.severity);
    findings
}

/// A port as a message names it: `node01 mlx5_0 (0x0002c90000a00001, LID 1)`.
#[must_use]
pub fn name_port(port: &SeenPort) -> String {
    let text = port.description.as_str();
    let text = if text.is_empty() { "a node without description" } else { text };
    format!("{text} ({}, LID {})", port.guid, port.lid)
}

fn unit(expected: &Expected) -> String {
    format!("selvedge-opensm-{}.service", expected.fabric)
}

fn local_port_down(seen: &Seen) -> Option<Finding> {
    let local = &seen.local;
    if matches!(local.state, PortState::Initialize | PortState::Armed | PortState::Active) {
        return None;
    }
    let next = match local.physical_state {
        PhysicalState::Disabled => "the port is switched off: `ibportstate` shows by whom; enable it, then ask again",
        PhysicalState::Polling => {
            "nobody is at the other end of the cable: check the cable and the switch port, or ask from another node"
        }
        _ => "check the cable, the switch port and the HCA's driver, or ask from another node",
    };
    Some(Finding::bad(
        Problem::LocalPortDown,
        local.guid.to_string(),
        format!("the port that asks has no link: it is {}, physically {}", local.state, local.physical_state),
        next.to_owned(),
    ))
}

fn masters(seen: &Seen, expected: &Expected) -> Option<Finding> {
    let masters: Vec<&SeenPort> = seen.masters().collect();
    let fabric = format!("fabric {}", expected.fabric);
    match masters.as_slice() {
        [master] => foreign_master(seen, expected, master),
        [] => {
            let told = match seen.local.master_sm_lid {
                0 => "the local port was never told of one".to_owned(),
                lid => format!("the last one that the local port was told of has LID {lid}"),
            };
            let primary = expected.managers.first().map_or("the primary", |m| m.host.as_str());
            let message = format!("no subnet manager is master; {told}");
            let next =
                format!("on {primary}: `systemctl start {unit}`, then `journalctl -u {unit}`", unit = unit(expected));
            Some(Finding::bad(Problem::NoMaster, fabric, message, next))
        }
        several => {
            let names: Vec<String> = several.iter().map(|p| name_port(p)).collect();
            let strangers: Vec<String> =
                several.iter().filter(|p| !is_of_the_spec(seen, expected, p)).map(|p| name_port(p)).collect();
            let next = if strangers.is_empty() {
                "two managers ignore each other when their sm_key differs: give both the same key, then restart the standby".to_owned()
            } else {
                format!("stop the manager that the spec does not name: {}", strangers.join(" and "))
            };
            let message =
                format!("{} subnet managers say that they are master: {}", several.len(), names.join(" and "));
            Some(Finding::bad(Problem::TwoMasters, fabric, message, next))
        }
    }
}

/// The one master is nobody of the spec. A spec without managers leaves them to others.
fn foreign_master(seen: &Seen, expected: &Expected, master: &SeenPort) -> Option<Finding> {
    let primary = expected.managers.first()?;
    if is_of_the_spec(seen, expected, master) {
        return None;
    }
    let (host, name) = (&primary.host, name_port(master));
    let reading = |port: &SeenPort| port.reading().map(|reading| reading.priority);
    let (Some(theirs), ours) = (reading(master), seen.port_of(primary).and_then(reading)) else { return None };
    let message = format!(
        "{name}, priority {theirs}, is master, and the spec does not name it; its directed route from here is {}",
        path_text(&master.path)
    );
    let why = match ours {
        Some(ours) if ours < theirs => {
            format!("the primary {host} with priority {ours} never takes over from {theirs}: ")
        }
        Some(ours) if ours == theirs => format!("the primary {host} has the same priority, and the lower GUID wins: "),
        _ => String::new(),
    };
    let mut next =
        format!("{why}stop the subnet manager on {name}, or add its host to the fabric's subnet-manager table");
    if expected.managers.iter().any(|manager| seen.port_of(manager).is_none()) {
        next.push_str(
            "; if it is a host of the spec, its node description does not say so: see `selvedge facts` there",
        );
    }
    Some(Finding::bad(Problem::ForeignMaster, name, message, next))
}

fn of_the_spec(seen: &Seen, expected: &Expected, place: usize, manager: &ExpectedManager) -> Vec<Finding> {
    let host = manager.host.as_str();
    let role = if place == 0 { "primary" } else { "standby" };
    let unit = unit(expected);
    let warning = |problem, message, next| vec![Finding::warning(problem, host, message, next)];
    let Some(port) = seen.port_of(manager) else {
        // What was not looked at is unknown, not absent.
        if !seen.coverage.is_complete() {
            return Vec::new();
        }
        let by = manager.guid.map_or_else(
            || "no port whose node description names it".to_owned(),
            |g| format!("its port {g} is not there"),
        );
        let message = format!("the {role} {host} is not on the fabric: {by}");
        return warning(
            Problem::PortMissing,
            message,
            format!("check that {host} is up and cabled, and `selvedge facts` there"),
        );
    };
    match port.says {
        Says::Nothing => warning(
            Problem::ManagerMissing,
            format!("no subnet manager runs on the {role}, {}", name_port(port)),
            format!("on {host}: `systemctl start {unit}`, then `journalctl -u {unit}`"),
        ),
        Says::Silence => warning(
            Problem::ManagerSilent,
            format!("the subnet manager of the {role}, {}, does not answer", name_port(port)),
            format!("on {host}: `systemctl status {unit}`; restart it if it hangs"),
        ),
        Says::Manager(reading) => {
            let mut findings = Vec::new();
            findings.extend(wrong_state(seen, expected, place, host, &reading));
            if reading.priority != manager.priority {
                let message = format!(
                    "the {role} {host} has priority {}, and the spec gives it {}",
                    reading.priority, manager.priority
                );
                let next = format!(
                    "on {host}: if {unit} is running, `selvedge apply` has it read its priority again; if not, another \
                     subnet manager holds the port: find it with `pgrep -a opensm`, stop it, then `selvedge apply`"
                );
                findings.push(Finding::warning(Problem::WrongPriority, host, message, next));
            }
            findings
        }
    }
}

fn wrong_state(
    seen: &Seen,
    expected: &Expected,
    place: usize,
    host: &str,
    Reading { state, priority, .. }: &Reading,
) -> Option<Finding> {
    if place == 0 {
        return primary_not_master(seen, expected, host, *state, *priority);
    }
    if matches!(state, SmState::Standby | SmState::Master) {
        return None;
    }
    let message = format!("the standby {host} is in state {state}");
    let next = match state {
        SmState::NotActive => "another manager told it to stay out: restart it",
        _ => "it is still looking at the fabric: ask again in some seconds",
    };
    Some(Finding::warning(Problem::NotStandby, host, message, next.to_owned()))
}

/// A warning only where waiting mends it: a manager of the spec is master, and the primary's priority is higher.
fn primary_not_master(
    seen: &Seen,
    expected: &Expected,
    host: &str,
    state: SmState,
    priority: Priority,
) -> Option<Finding> {
    let other = seen.masters().next().filter(|_| state != SmState::Master)?;
    // That a stranger is master is told of the stranger.
    if !is_of_the_spec(seen, expected, other) {
        return None;
    }
    let unit = unit(expected);
    let theirs = other.reading()?.priority;
    let message = format!(
        "the primary {host} is in state {state}, priority {priority}, and {}, priority {theirs}, is master",
        name_port(other)
    );
    let (severity, next) = if state == SmState::NotActive {
        (Severity::Bad, format!("another manager told it to stay out: `systemctl restart {unit}` on {host}"))
    } else if priority <= theirs {
        let next = format!(
            "priority {priority} does not take over from {theirs}: `selvedge apply` on the managers of fabric {} gives \
             each its own; where {unit} is not running, stop the other subnet manager (`pgrep -a opensm`) first",
            expected.fabric
        );
        (Severity::Bad, next)
    } else {
        let next =
            format!("a primary takes over within a sweep: ask again; if it stays, `journalctl -u {unit}` on {host}");
        (Severity::Warning, next)
    };
    Some(Finding { severity, problem: Problem::PrimaryNotMaster, object: host.to_owned(), message, next })
}

fn is_of_the_spec(seen: &Seen, expected: &Expected, port: &SeenPort) -> bool {
    expected.managers.iter().filter_map(|m| seen.port_of(m)).any(|p| p.guid == port.guid)
}

fn unknown(seen: &Seen, expected: &Expected) -> Vec<Finding> {
    let mut masters = seen.masters();
    let only = if let (Some(master), None) = (masters.next(), masters.next()) { Some(master) } else { None };
    // The one master has a finding of its own, where the spec has managers.
    let is_told =
        |port: &SeenPort| !expected.managers.is_empty() && only.is_some_and(|master| master.guid == port.guid);
    let strangers = seen.ports.iter().filter(|p| p.says != Says::Nothing && !is_of_the_spec(seen, expected, p));
    strangers
        .filter(|port| !is_told(port))
        .map(|port| {
            let state = port.reading().map_or("silent".to_owned(), |r| format!("{}, priority {}", r.state, r.priority));
            let message = format!("the spec does not name the subnet manager on {} ({state})", name_port(port));
            let next = format!(
                "add its host to the fabric's subnet-manager table, or stop it there; its directed route from here is {}",
                path_text(&port.path)
            );
            Finding::warning(Problem::UnknownManager, name_port(port), message, next)
        })
        .collect()
}

fn equal_priorities(seen: &Seen, expected: &Expected) -> Vec<Finding> {
    let running: Vec<_> = seen.ports.iter().filter_map(|p| p.reading().map(|r| (p, r.priority))).collect();
    let mut findings = Vec::new();
    for (n, (port, priority)) in running.iter().enumerate() {
        // Each group of equals once, at its first member.
        if running.iter().take(n).any(|(_, p)| p == priority) {
            continue;
        }
        let ports: Vec<&SeenPort> = running.iter().filter(|(_, p)| p == priority).map(|(p, _)| *p).collect();
        if ports.len() > 1 {
            let equals: Vec<String> = ports.iter().map(|port| name_port(port)).collect();
            let message =
                format!("{} have one priority, {priority}: the lowest GUID wins, not the spec", equals.join(" and "));
            let strangers = ports.iter().filter(|port| !is_of_the_spec(seen, expected, port));
            let strangers: Vec<String> = strangers.map(|port| name_port(port)).collect();
            let next = if strangers.is_empty() {
                format!("`selvedge apply` on the managers of fabric {} gives each its own", expected.fabric)
            } else {
                format!("stop what the spec does not name: {}", strangers.join(" and "))
            };
            findings.push(Finding::warning(Problem::EqualPriorities, name_port(port), message, next));
        }
    }
    findings
}

fn stale_master_lid(seen: &Seen, expected: &Expected) -> Option<Finding> {
    let mut masters = seen.masters();
    let (Some(master), None) = (masters.next(), masters.next()) else { return None };
    let configured = || seen.ports.iter().filter(|p| p.lid != 0);
    let stale: Vec<&SeenPort> = configured().filter(|p| p.master_sm_lid != master.lid).collect();
    let first = stale.first()?;
    let message = format!(
        "{} of {} ports were told of another master than {}, for one {}: LID {}",
        stale.len(),
        configured().count(),
        name_port(master),
        name_port(first),
        first.master_sm_lid
    );
    // Seen with opensm: a master whose handover hung answers, and never sweeps.
    let next = format!(
        "a new master tells all ports within its first sweep: ask again; if it stays and its log has no `SUBNET UP` after `Entering MASTER state`, it hangs: restart {} there",
        unit(expected)
    );
    Some(Finding::warning(Problem::StaleMasterLid, name_port(master), message, next))
}

fn incomplete(coverage: &Coverage, expected: &Expected) -> Option<Finding> {
    let (message, next) = match (coverage.cut_short, coverage.silent.as_slice()) {
        (None, []) => return None,
        (Some(CutShort::Deadline), _) => {
            ("the time was up before all of the fabric was looked at".to_owned(), "give it more time".to_owned())
        }
        (Some(CutShort::TooManyPorts), _) => {
            ("the fabric has more ports than the bound".to_owned(), "raise the bound".to_owned())
        }
        (None, silent) => {
            let some: Vec<&str> = silent.iter().take(5).map(String::as_str).collect();
            let links = if silent.len() == 1 {
                "1 live link leads".to_owned()
            } else {
                format!("{} live links lead", silent.len())
            };
            let message = format!("{links} to a node that does not answer, at the directed routes {}", some.join(" "));
            (
                message,
                "`smpquery -D nodeinfo ROUTE` asks one of them again; a hung HCA needs its host restarted".to_owned(),
            )
        }
    };
    Some(Finding::warning(Problem::WalkIncomplete, format!("fabric {}", expected.fabric), message, next))
}

#[cfg(test)]
#[path = "verdict/tests.rs"]
mod tests;
