//! Verdicts on one node, from the device up.
//!
//! What the spec asks, what the host has and what is in effect come in; checks
//! go out, each with what was expected, what was seen and what to do next.

use super::model::{Check, CheckedPort, Memlock, Verdict};
use super::rate;
use crate::facts::{Device, Facts, PortFacts};
use crate::intent::{AddressIntent, Intent, LinkIntent, PortIntent};
use crate::name::IfName;
use crate::plan::Desired;
use crate::rdma::{PKey, Speed, Transport};
use crate::render::limits::memlock_path;
use crate::resolve::{ResolveFault, select};
use crate::sm::report::{FindingRow, StatusReport};
use crate::state::{Object, State, States};

/// The checks of the hardware that the spec names.
#[must_use]
pub fn hardware_of(intent: &Intent, facts: &Facts) -> Vec<Check> {
    let found = intent.ports.iter().filter_map(|port| select(port, facts).ok().map(|found| (port, found)));
    found.flat_map(|(port, (device, found))| hardware(port, device, found)).collect()
}

/// Something that the spec asks and this host cannot have.
#[must_use]
pub fn unresolved(fault: &ResolveFault) -> Check {
    let next = fault.help().join("; or ");
    Check::new("fits-the-host", "spec", false, ["what the spec asks".into(), fault.to_string(), next])
}

/// The ports as they are now, for the measurements between nodes. A port without an interface is left out.
#[must_use]
pub fn ports(intent: &Intent, facts: &Facts, observed: &States) -> Vec<CheckedPort> {
    let checked = |port: &PortIntent, link: &LinkIntent, address: &AddressIntent| {
        let (device, found) = select(port, facts).ok()?;
        let own = &found.netdev.as_ref()?.name;
        let interface = link.tag.as_ref().map_or(Ok(own.clone()), |tag| tag.value.child_of(own)).ok()?;
        let State::Mtu { bytes } = observed.get(&Object::LinkMtu { link: interface.clone() }) else { return None };
        Some(CheckedPort {
            network: address.network.clone(),
            device: device.name.clone(),
            port: found.number,
            guid: found.guid,
            interface,
            hardware_address: None,
            address: address.address.value.addr(),
            mtu: bytes,
        })
    };
    let of_link = |port: &'_ PortIntent, link: &'_ LinkIntent| -> Vec<CheckedPort> {
        link.addresses.iter().filter_map(|address| checked(port, link, address)).collect()
    };
    intent.ports.iter().flat_map(|port| port.links.iter().flat_map(|link| of_link(port, link))).collect()
}

fn hardware(intent: &PortIntent, device: &Device, port: &PortFacts) -> Vec<Check> {
    let object = format!("{} port {}", device.name, port.number);
    let mut checks = vec![link_layer(intent, port, &object), physical(port, &object), logical(port, &object)];
    checks.push(speed(intent, port, &object));
    if port.transport == Transport::Infiniband {
        checks.push(subnet_manager(port, &object));
    }
    checks
}

fn link_layer(intent: &PortIntent, port: &PortFacts, object: &str) -> Check {
    let wanted = intent.transport.value;
    let next = "set the port's link layer in the HCA's firmware (mlxconfig LINK_TYPE_P1), or the fabric's transport in the spec";
    let words = [wanted.to_string(), port.transport.to_string(), next.into()];
    Check::new("link-layer", object, port.transport == wanted, words)
}

fn physical(port: &PortFacts, object: &str) -> Check {
    let next = "look at the cable and the switch port: nothing is heard from the other end";
    let words = ["LinkUp".into(), port.physical_state.clone(), next.into()];
    Check::new("physical-state", object, port.physical_state == "LinkUp", words)
}

fn logical(port: &PortFacts, object: &str) -> Check {
    let next = match port.state.as_str() {
        "INIT" => "the link is there and no subnet manager has set it up: start one, or see `selvedge sm status`",
        "ARMED" => "a subnet manager began to set the port up and did not end: see its log",
        _ => "look at the cable and the switch port",
    };
    Check::new("port-state", object, port.state == "ACTIVE", ["ACTIVE".into(), port.state.clone(), next.into()])
}

/// The rate in the spec is that of four lanes; a link that came up with fewer, or slower, fails.
fn speed(intent: &PortIntent, port: &PortFacts, object: &str) -> Check {
    let (gbps, width) = match intent.speed {
        Speed::Ib(speed) => (speed.sysfs_rate_gbps(), Some(4)),
        Speed::Ethernet(gbps) => (f64::from(gbps), None),
    };
    let expected = match width {
        Some(width) => format!("{gbps} Gb/s ({width}X {})", intent.speed),
        None => format!("{gbps} Gb/s"),
    };
    let Some(seen) = rate::parse(&port.rate) else {
        return Check::new("rate", object, false, [expected, port.rate.clone(), "see `ibstat`".into()])
            .or(Verdict::Skipped);
    };
    let narrow = width.is_some_and(|width| seen.width < width);
    let next = if narrow {
        "lanes are missing: reseat or replace the cable, and look at both of its ends for dirt"
    } else if seen.gbps < gbps {
        "the link came up slower than the spec's speed: look at the cable's rating and at the speeds that the switch port allows"
    } else {
        "the link is faster than the spec says: correct `speed` in the spec"
    };
    let holds = (seen.gbps - gbps).abs() < 0.01 && !narrow;
    Check::new("rate", object, holds, [expected, port.rate.clone(), next.into()])
}

/// Whether the subnet manager has let a port into a partition; `keys` is the port's P_Key table.
#[must_use]
pub fn partition(child: &IfName, pkey: PKey, keys: &[PKey]) -> Check {
    let seen = if keys.is_empty() {
        "none".to_owned()
    } else {
        keys.iter().map(PKey::to_string).collect::<Vec<_>>().join(", ")
    };
    let next = "no subnet manager has let the port into this partition: `selvedge apply` on the fabric's managers gives \
                it to them, and `selvedge sm status` shows one that is not of this spec";
    Check::new("partition", child.as_str(), keys.contains(&pkey), [format!("partition {pkey}"), seen, next.into()])
}

fn subnet_manager(port: &PortFacts, object: &str) -> Check {
    let seen = if port.sm_lid == 0 { "none".to_owned() } else { format!("at LID {}", port.sm_lid) };
    let next =
        "no subnet manager has told this port where it is: see `selvedge sm status`, then the opensm unit's journal";
    Check::new("subnet-manager", object, port.sm_lid != 0, ["a master".into(), seen, next.into()])
}

/// What the fabric itself says of its subnet managers.
#[must_use]
pub fn managers(report: &StatusReport) -> Vec<Check> {
    let expected = "one master, the primary, and each standby answering";
    let check = |object: String, holds: bool, seen: String, next: &str| {
        Check::new("subnet-managers", object, holds, [expected.to_owned(), seen, next.to_owned()])
    };
    let states: Vec<String> = report.managers.iter().map(|row| format!("{} {}", row.node, row.state)).collect();
    if report.findings.is_empty() {
        return vec![check(format!("fabric {}", report.fabric), true, states.join(", "), "")];
    }
    let of_finding = |finding: &FindingRow| {
        let verdict = if finding.severity == "fail" { Verdict::Fail } else { Verdict::Warning };
        check(finding.object.clone(), false, finding.message.clone(), &finding.next).or(verdict)
    };
    report.findings.iter().map(of_finding).collect()
}

/// What the spec asks for and what is in effect; files and reloads are summed up in one check.
#[must_use]
pub fn in_effect(desired: &Desired, observed: &States) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut files_differ = Vec::new();
    for (object, wanted) in &desired.items {
        let seen = observed.get(object);
        let name = match object {
            Object::File { path } => {
                if seen != wanted.state {
                    files_differ.push(format!("{path} is {}", file_in_words(&seen)));
                }
                continue;
            }
            Object::Reload { .. } => continue,
            Object::Module { .. } => "module",
            Object::Child { .. } => "child",
            Object::Interface { .. } => "interface",
            Object::LinkMode { .. } => "ipoib-mode",
            Object::LinkMtu { .. } => "mtu",
            Object::LinkUp { .. } => "link",
            Object::LinkLocal { .. } => "link-local",
            Object::Address { .. } => "address",
            Object::Route { .. } => "route",
            Object::Sysctl { .. } => "sysctl",
            Object::Unit { .. } => "unit",
        };
        let enough = matches!(object, Object::Sysctl { key } if key.is_least()) && seen.is_more_than(&wanted.state);
        let asked = if enough { &seen } else { &wanted.state };
        checks.push(one_in_effect(name, object, asked, &seen));
    }
    let seen = if files_differ.is_empty() { "as rendered".to_owned() } else { files_differ.join(", ") };
    let next = "see `selvedge drift`, then `selvedge apply`".to_owned();
    checks.push(Check::new("files", "persistent files", files_differ.is_empty(), ["as rendered".into(), seen, next]));
    checks
}

/// A file that is not as rendered.
fn file_in_words(seen: &State) -> String {
    match seen {
        State::File { .. } => "another than rendered".to_owned(),
        other => other.to_string(),
    }
}

fn one_in_effect(name: &str, object: &Object, wanted: &State, seen: &State) -> Check {
    let next = "see `selvedge drift` for what else differs, then `selvedge apply`".to_owned();
    let check = Check::new(name, object.to_string(), seen == wanted, [wanted.to_string(), seen.to_string(), next]);
    if matches!(seen, State::Unknown { .. }) { check.or(Verdict::Skipped) } else { check }
}

/// A unit that is not running because another manager has its port is not helped by an apply.
pub fn held_port(checks: &mut [Check], unit: &str, port: &str) {
    let object = format!("unit {unit}");
    for check in checks.iter_mut().filter(|check| check.check == "unit" && check.object == object) {
        if check.verdict == Verdict::Fail {
            check.next = format!(
                "a subnet manager that is not selvedge's unit holds {port}: find it with `pgrep -a opensm`, stop it, \
                 then `selvedge apply`"
            );
        }
    }
}

/// An MPI or NCCL job registers its buffers as a user, within the limit that its starter passes on.
#[must_use]
pub fn memlock(memlock: &Memlock) -> Check {
    let seen = memlock.bytes.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{} KiB", bytes / 1024));
    let Memlock { unit, named, bytes: _ } = memlock;
    let first = if *named {
        format!("{} is read when the unit starts", memlock_path(unit))
    } else {
        format!("add `memlock = [\"{unit}\"]` to its [[nodes]] and apply, which writes {}", memlock_path(unit))
    };
    let next = format!(
        "its jobs cannot register large buffers: {first}: `systemctl restart {unit}` when that disturbs nobody"
    );
    let words = ["unlimited".to_owned(), seen, next];
    Check::new("memlock", unit.to_string(), memlock.bytes.is_none(), words).or(Verdict::Warning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Digest;

    #[test]
    fn a_unit_whose_port_is_held_by_another_manager_is_not_helped_by_an_apply() {
        let unit = |holds| {
            let words = ["running".to_owned(), "stopped".to_owned(), "`selvedge apply`".to_owned()];
            let mut checks = [Check::new("unit", "unit selvedge-opensm-compute.service", holds, words)];
            held_port(&mut checks, "selvedge-opensm-compute.service", "mlx5_0 port 1");
            checks[0].next.clone()
        };
        let next = unit(false);
        assert!(next.contains("holds mlx5_0 port 1") && next.contains("`pgrep -a opensm`"), "{next}");
        assert_eq!(unit(true), "");
    }

    #[test]
    fn a_file_that_differs_is_said_to_be_absent_or_another() {
        let other = State::File { digest: Digest::of(b"x"), mode: 0o644 };
        assert_eq!(file_in_words(&State::Absent), "absent");
        assert_eq!(file_in_words(&other), "another than rendered");
    }
}
