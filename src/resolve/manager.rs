//! A host's part as subnet manager: opensm's files and its unit.

use std::collections::BTreeSet;

use super::Resolved;
use super::fault::ResolveFault;
use super::files::{want_enabled, want_file};
use super::port::Found;
use crate::intent::ManagerRole;
use crate::plan::Desired;
use crate::rdma::Transport;
use crate::sm::config::{self, ManagerIntent};
use crate::sm::election::{FailoverTiming, Priority};
use crate::state::{Condition, Object, State, opensm_unit};

/// Debian's and RHEL's unit, as a file of the administrator overrides it.
const DISTRIBUTION_UNIT: &str = "/etc/systemd/system/opensm.service";

pub(super) fn want(resolved: &Resolved, desired: &mut Desired, faults: &mut Vec<ResolveFault>) {
    for role in &resolved.intent.managers {
        if let Err(fault) = want_role(role, resolved, desired) {
            faults.push(fault);
        }
    }
}

fn want_role(role: &ManagerRole, resolved: &Resolved, desired: &mut Desired) -> Result<(), ResolveFault> {
    let port = port_of(role, resolved)?;
    let reason = match role.rank {
        0 => format!("{}: manages the fabric {}", role.origin, role.fabric),
        rank => format!("{}: takes over the fabric {} as standby {rank}", role.origin, role.fabric),
    };
    let Some(opensm) = &resolved.facts.programs.opensm else {
        let wanted_by = role.origin.to_string();
        return Err(ResolveFault::NoProgram { wanted_by, program: "opensm", package: "opensm" });
    };
    let priority = Priority::of_place(role.rank)
        .map_err(|source| ResolveFault::Priority { origin: role.origin.clone(), source })?;
    let timing = FailoverTiming::default();
    let intent = ManagerIntent {
        fabric: role.fabric.clone(),
        guid: port.port.guid,
        priority,
        mtu: role.fabric_mtu,
        partitions: role.partitions.clone(),
        timing,
    };
    let fault = |source| ResolveFault::Manager { origin: role.origin.clone(), source: Box::new(source) };
    for file in config::files(&intent, opensm.as_str()).map_err(fault)? {
        want_file(desired, file, reason.as_str(), BTreeSet::new());
    }
    // A label of the spec is short enough for any unit name.
    let Some(unit) = opensm_unit(role.fabric.as_str()) else { return Ok(()) };
    let wants = format!("/etc/systemd/system/multi-user.target.wants/{unit}");
    want_enabled(desired, &wants, &format!("/etc/systemd/system/{unit}"), reason.as_str())?;
    let masked = "the distribution's own unit would be a second manager here: it is masked";
    want_enabled(desired, DISTRIBUTION_UNIT, "/dev/null", masked)?;
    let (device, number) = (port.device.name.clone(), port.port.number);
    let wanted = desired.want(Object::Unit { name: unit }, State::Running, reason);
    wanted.condition = Some(Condition::NoForeignMaster {
        device: device.clone(),
        port: number,
        managers: role.managers.clone(),
        guids: role.guids.clone(),
    });
    wanted.leaving = Some(Condition::AnotherManager { device, port: number });
    Ok(())
}

/// The host's first port on the fabric.
fn port_of<'a, 'b>(role: &ManagerRole, resolved: &'b Resolved<'a>) -> Result<&'b Found<'a>, ResolveFault> {
    let on_fabric =
        |found: &&Found| found.intent.fabric == role.fabric && found.port.transport == Transport::Infiniband;
    let missing = || ResolveFault::ManagerWithoutPort { origin: role.origin.clone(), fabric: role.fabric.clone() };
    resolved.ports.iter().map(|port| &port.found).find(on_fabric).ok_or_else(missing)
}
