//! The two rules: never take over someone's fabric, never leave a fabric without its manager.
//!
//! A condition of a change comes in; the fabric is asked through the port that
//! it names, and either it holds or the reason why not goes out.

use std::collections::BTreeMap;

use super::mad::SmState;
use super::mads::MadError;
use super::seen::{Expected, Says, Seen, SeenPort, names_host};
use super::status::{Patience, ask as look};
use super::umad::{self, StatusError};
use crate::compile::guid_on;
use crate::exit::causes;
use crate::machine::MachineError;
use crate::name::{DeviceName, HostName, Label};
use crate::rdma::Guid;
use crate::sm::report::StatusReport;
use crate::spec::Spec;
use crate::state::Condition;
use crate::verbs::umad::Umad;

/// Asks the fabric whether `condition` holds.
///
/// # Errors
/// When it does not hold, or the fabric could not be asked: then nothing is started or stopped.
pub fn require(condition: &Condition) -> Result<(), MachineError> {
    let (Condition::NoForeignMaster { device, port, .. } | Condition::AnotherManager { device, port, .. }) = condition;
    let seen = see(device, *port).map_err(|why| {
        MachineError::Condition(format!(
            "the subnet managers of the fabric at {device} port {port} cannot be asked: {why}"
        ))
    })?;
    judge(condition, &seen).map_err(MachineError::Condition)
}

fn see(device: &DeviceName, port: u8) -> Result<Seen, String> {
    let mut umad = Umad::open(device, port).map_err(|error| causes(&error).join(": "))?;
    let fabric: Label = "fabric".parse().map_err(|error: crate::name::NameError| error.to_string())?;
    let expected = Expected { fabric, managers: Vec::new() };
    look(&mut umad, &expected, &Patience::default()).map_err(|error: MadError| causes(&error).join(": "))
}

fn judge(condition: &Condition, seen: &Seen) -> Result<(), String> {
    match condition {
        Condition::NoForeignMaster { managers, guids, .. } => match foreign_master(seen, managers, guids) {
            None if seen.coverage.cut_short.is_some() => {
                Err("the fabric is too large or too slow to be looked at as a \
                 whole, and a master outside the spec could be in the part that was not seen"
                    .to_owned())
            }
            None => Ok(()),
            Some(port) => Err(format!(
                "a subnet manager that the spec does not name is master of this fabric: {} (port {}, LID {}). Add it to the \
                 fabric's subnet-manager table, or stop it; two masters would tear the fabric apart. A host of the spec is \
                 known by its node description, which rdma-ndd sets, or by the `guid` of its port in the spec",
                port.description, port.guid, port.lid
            )),
        },
        Condition::AnotherManager { .. } => {
            if seen.ports.iter().any(|port| port.guid != seen.local.guid && is_healthy(port)) {
                Ok(())
            } else {
                Err("no other subnet manager answers as master or standby: stopping this one would leave the fabric without a \
                     manager. Start another first"
                    .to_owned())
            }
        }
    }
}

fn foreign_master<'a>(seen: &'a Seen, managers: &[HostName], guids: &[Guid]) -> Option<&'a SeenPort> {
    let is_master = |port: &&SeenPort| matches!(port.says, Says::Manager(reading) if reading.state == SmState::Master);
    let is_ours =
        |port: &SeenPort| guids.contains(&port.guid) || managers.iter().any(|host| names_host(&port.description, host));
    seen.ports.iter().filter(is_master).find(|port| port.guid != seen.local.guid && !is_ours(port))
}

fn is_healthy(port: &SeenPort) -> bool {
    matches!(port.says, Says::Manager(reading) if matches!(reading.state, SmState::Master | SmState::Standby))
}

/// The state of a fabric's managers, asked through `device`, with what the spec says of them. `guids` are those of
/// hosts' ports on this fabric, as far as they are known beyond the spec.
///
/// # Errors
/// When the port cannot be asked.
pub fn ask(
    spec: &Spec,
    fabric: &Label,
    device: &DeviceName,
    port: u8,
    guids: &BTreeMap<HostName, Guid>,
) -> Result<StatusReport, StatusError> {
    let managers = spec.fabrics.get(fabric).and_then(|fabric| fabric.subnet_manager.as_ref());
    let guid = |host: &HostName| guids.get(host).copied().or_else(|| guid_on(spec, host, fabric));
    // More managers than priorities is a fault that `check` reports; here the rest is still told.
    let expected = managers.and_then(|managers| Expected::of(fabric, managers, guid).ok());
    let expected = expected.unwrap_or_else(|| Expected { fabric: fabric.clone(), managers: Vec::new() });
    umad::status(device, port, &expected, &Patience::default())
}

#[cfg(test)]
mod tests;
