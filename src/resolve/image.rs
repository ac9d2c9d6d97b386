//! What is to be on the disk of a host that does not run.
//!
//! What was seen in the image comes in, and the facts of a node with the same HCAs, or none; the files of the host go
//! out. The spec's word on a port comes before those facts: a GUID is the host's own, and so is none of another host's.
//! What neither says is one fault. Nothing here looks at the image itself.

use std::collections::BTreeSet;

use super::fault::{ResolveFault, ResolveFaults};
use super::resolve;
use crate::facts::{Device, Facts, Netdev, PortFacts};
use crate::intent::{Intent, LinkIntent, PortIntent};
use crate::plan::Desired;
use crate::rdma::{Guid, Transport};
use crate::spec::{DeviceSelector, ModeChoice};

/// The state that `intent` asks of the disk of its host, an image of which looks like `seen`.
///
/// `hardware` are the facts of a node with the same HCAs, which may be the host itself.
///
/// # Errors
/// Everything that stands in the way, at once.
pub fn resolve_image(intent: &Intent, seen: Facts, hardware: Option<&Facts>) -> Result<Desired, ResolveFaults> {
    let fill = fill(intent, hardware);
    let facts = Facts {
        devices: fill.devices,
        kernel: hardware.map_or(seen.kernel, |facts| facts.kernel.clone()),
        protected: Vec::new(),
        ..seen
    };
    let mut faults: Vec<ResolveFault> = Vec::new();
    let desired = if fill.lacking.is_empty() {
        resolve(intent, &facts)
    } else {
        faults.push(unknown(intent, &fill.lacking, hardware));
        // What else is wrong does not depend on these ports.
        let known = |index: &usize| !fill.lacking.iter().any(|(lacking, _)| lacking == index);
        let ports = intent.ports.iter().enumerate().filter(|(index, _)| known(index)).map(|(_, port)| port.clone());
        resolve(&Intent { ports: ports.collect(), managers: Vec::new(), ..intent.clone() }, &facts)
    };
    match desired {
        Ok(desired) if faults.is_empty() => Ok(with_word(intent, desired.on_disk())),
        Ok(_) => Err(ResolveFaults { host: intent.host.clone(), faults }),
        Err(others) => {
            faults.extend(others.faults.into_iter().map(in_an_image));
            Err(ResolveFaults { host: others.host, faults })
        }
    }
}

/// What there is to say of any image.
fn with_word(intent: &Intent, mut desired: Desired) -> Desired {
    let host = &intent.host;
    let alone = if intent.ports.is_empty() {
        String::new()
    } else {
        format!(", and for {host} alone, whose addresses and GUIDs are in them: another node takes an image of its own")
    };
    desired.notes.push(format!(
        "an image: files only{alone}; modules, links, addresses and units follow from them when {host} boots"
    ));
    desired
}

/// What to do in an image is not what to do on a running host.
fn in_an_image(fault: ResolveFault) -> ResolveFault {
    match fault {
        ResolveFault::NotHere { origin, system, seen, way } => {
            let way = match system {
                "systemd-networkd" => "`systemctl --root=DIR enable systemd-networkd`, DIR being the image",
                "NetworkManager" => {
                    "install NetworkManager into the image, then `systemctl --root=DIR enable NetworkManager`, DIR being the image"
                }
                _ => way,
            };
            ResolveFault::NotHere { origin, system, seen, way }
        }
        other => other,
    }
}

/// The host's devices as far as they are known.
struct Fill {
    devices: Vec<Device>,
    lacking: Vec<(usize, BTreeSet<Lack>)>,
}

/// What is not known of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    Name,
    Guid,
    Capability,
}

/// Where a port is among the devices.
type Place = (usize, usize);

fn fill(intent: &Intent, hardware: Option<&Facts>) -> Fill {
    let own = hardware.and_then(|facts| facts.hostname.as_ref()).is_some_and(|name| name.can_be(&intent.host));
    let mut fill = Fill { devices: hardware.map_or_else(Vec::new, |facts| facts.devices.clone()), lacking: Vec::new() };
    let given = fill.devices.clone();
    let mut taken: BTreeSet<Place> = BTreeSet::new();
    // Ports that the spec places come first: of the others any of their kind will do.
    let (placed, free): (Vec<_>, Vec<_>) =
        intent.ports.iter().enumerate().partition(|(_, port)| place_of(port, &given, own).is_some());
    for (index, port) in placed.into_iter().chain(free) {
        let any = !own && is_by_guid_alone(port);
        let place = place_of(port, &given, own);
        let place = place.or_else(|| if any { of_the_kind(port, &given, &taken) } else { None });
        // A port of the spec that the facts do not have is told as that.
        if place.is_none() && hardware.is_some() && !any {
            continue;
        }
        let seen = place.and_then(|(device, port)| given.get(device)?.ports.get(port));
        let (filled, lacking) = port_facts(port, seen, own);
        if !lacking.is_empty() {
            fill.lacking.push((index, lacking));
            continue;
        }
        match place {
            Some((device, number)) => {
                taken.insert((device, number));
                if let Some(place) = fill.devices.get_mut(device).and_then(|device| device.ports.get_mut(number)) {
                    *place = filled;
                }
            }
            None => add(&mut fill.devices, port, filled),
        }
    }
    fill.lacking.sort();
    fill
}

/// The port that the spec names, by its own GUID or, on another host, by what its group says.
fn place_of(port: &PortIntent, devices: &[Device], own: bool) -> Option<Place> {
    let selectors = [Some(&port.device), port.kind.as_ref().filter(|_| !own)];
    selectors.into_iter().flatten().find_map(|selector| {
        devices.iter().enumerate().find_map(|(index, device)| {
            let is = |found: &PortFacts| match &selector.value {
                DeviceSelector::Name(name) => device.name == *name && found.number == port.port,
                DeviceSelector::Pci(address) => {
                    device.pci.as_deref() == Some(&address.to_string()) && found.number == port.port
                }
                DeviceSelector::Guid(guid) => found.guid == *guid,
            };
            Some((index, device.ports.iter().position(is)?))
        })
    })
}

/// Whether the spec says nothing of the port that would be true of another host.
fn is_by_guid_alone(port: &PortIntent) -> bool {
    let is_guid = |selector: &DeviceSelector| matches!(selector, DeviceSelector::Guid(_));
    is_guid(&port.device.value) && port.kind.as_ref().is_none_or(|kind| is_guid(&kind.value))
}

/// A port of which only the GUID is known is any of its transport, if they can all do the same.
fn of_the_kind(port: &PortIntent, devices: &[Device], taken: &BTreeSet<Place>) -> Option<Place> {
    let places = devices.iter().enumerate().flat_map(|(index, device)| {
        device.ports.iter().enumerate().map(move |(number, port)| ((index, number), device, port))
    });
    let all: Vec<_> = places.filter(|(_, _, found)| found.transport == port.transport.value).collect();
    let can = |found: &PortFacts| found.netdev.as_ref().and_then(|netdev| netdev.connected_capable);
    let (_, device, first) = all.first()?;
    let uniform = all.iter().all(|(_, other, found)| other.driver == device.driver && can(found) == can(first));
    let free = all.iter().map(|(place, _, _)| *place).find(|place| !taken.contains(place));
    if uniform { free } else { None }
}

/// The port as the spec has it, with what was `seen` of it or of one of its kind.
fn port_facts(port: &PortIntent, seen: Option<&PortFacts>, own: bool) -> (PortFacts, BTreeSet<Lack>) {
    let mut lacking = BTreeSet::new();
    let is_infiniband = port.transport.value == Transport::Infiniband;
    let netdev = seen.and_then(|seen| seen.netdev.as_ref());
    let guid = match &port.device.value {
        DeviceSelector::Guid(guid) => Some(*guid),
        _ => seen.filter(|_| own || !is_infiniband).map(|seen| seen.guid),
    };
    if guid.is_none() && is_infiniband {
        lacking.insert(Lack::Guid);
    }
    let pinned = port.interface.as_ref().map(|name| name.value.clone());
    let name = netdev.map(|netdev| netdev.name.clone()).or(pinned);
    if name.is_none() {
        lacking.insert(Lack::Name);
    }
    let connected_capable = netdev.and_then(|netdev| netdev.connected_capable);
    if is_infiniband && connected_capable.is_none() && asks_the_hardware(port).next().is_some() {
        lacking.insert(Lack::Capability);
    }
    let networkd_file = netdev.and_then(|netdev| netdev.networkd_file.clone());
    let netdev = name.map(|name| Netdev { name, connected_capable, addresses: Vec::new(), networkd_file });
    let made_up = PortFacts {
        number: port.port,
        transport: port.transport.value,
        guid: Guid(0),
        state: String::new(),
        physical_state: String::new(),
        rate: String::new(),
        lid: 0,
        sm_lid: 0,
        netdev: None,
    };
    let base = seen.cloned().unwrap_or(made_up);
    (PortFacts { guid: guid.unwrap_or(base.guid), netdev, ..base }, lacking)
}

/// The interfaces of a port whose mode depends on what it can do.
fn asks_the_hardware(port: &PortIntent) -> impl Iterator<Item = &LinkIntent> {
    port.links.iter().filter(|link| link.mode.value == ModeChoice::Auto)
}

/// Adds a device that only the spec tells of.
fn add(devices: &mut Vec<Device>, port: &PortIntent, facts: PortFacts) {
    let by = port.kind.as_ref().map_or(&port.device.value, |kind| &kind.value);
    let named = port.interface.as_ref().and_then(|name| name.value.as_str().parse().ok());
    let (name, pci) = match by {
        DeviceSelector::Name(name) => (Some(name.clone()), None),
        DeviceSelector::Pci(address) => (named, Some(address.to_string())),
        DeviceSelector::Guid(_) => (named, None),
    };
    // Without a name it lacks one, which was reported.
    let Some(name) = name else { return };
    if let Some(there) = devices.iter_mut().find(|device| device.name == name) {
        there.ports.push(facts);
        return;
    }
    devices.push(Device {
        name,
        pci,
        driver: None,
        firmware: None,
        board_id: None,
        numa_node: None,
        ports: vec![facts],
    });
}

fn unknown(intent: &Intent, lacking: &[(usize, BTreeSet<Lack>)], hardware: Option<&Facts>) -> ResolveFault {
    let ports = lacking.iter().filter_map(|(index, lacks)| Some((intent.ports.get(*index)?, lacks)));
    let ports: Vec<_> = ports.collect();
    let mut ways = Vec::new();
    let of = hardware.and_then(|facts| facts.hostname.as_ref());
    let host = &intent.host;
    let lacks = |lack: Lack| ports.iter().filter(move |(_, lacks)| lacks.contains(&lack)).map(|(port, _)| *port);
    let guid_lacks = lacks(Lack::Guid).next().is_some();
    match (hardware, of) {
        (Some(_), _) if !guid_lacks => ways.push(
            "the facts do not say it, since ib_ipoib was not loaded there or its HCAs are not all alike: give others, or say it in the spec:"
                .to_owned(),
        ),
        (None, _) => ways.push(format!(
            "give `--facts FILE`, with what `selvedge facts` prints on {host} or on a node with the same HCAs; or say it in the spec:"
        )),
        (Some(_), Some(other)) => ways.push(format!(
            "the facts are those of {other}, whose GUIDs are its own; give those of {host}, or say it in the spec:"
        )),
        (Some(_), None) => ways.push(format!("give the facts of {host} itself, or say it in the spec:")),
    }
    let guids: BTreeSet<String> = lacks(Lack::Guid)
        .map(|port| {
            let name = port.interface.as_ref().map_or("INTERFACE", |name| name.value.as_str());
            format!("`guids.{name} = \"0x...\"` in [hosts.{host}]")
        })
        .collect();
    let names = lacks(Lack::Name).next().map(|_| "`interface` in [[nodes.ports]]".to_owned());
    let modes: BTreeSet<String> = lacks(Lack::Capability)
        .flat_map(asks_the_hardware)
        .map(|link| format!("`mode = \"datagram\"` or \"connected\" in {}", link.mode.origin.table))
        .collect();
    let places = hardware.and_then(|_| lacks(Lack::Capability).find(|port| is_by_guid_alone(port)));
    let places = places.map(|_| "`device` or `pci` in [[nodes.ports]]".to_owned());
    ways.extend(names.into_iter().chain(guids).chain(places).chain(modes));
    let word = |(port, lacks): &(&PortIntent, &BTreeSet<Lack>)| {
        let network = port.addresses().next().map_or("", |one| one.network.as_str());
        let name = port.interface.as_ref().map_or(network, |name| name.value.as_str());
        let words: Vec<&str> = lacks.iter().map(|lack| lack.word()).collect();
        format!("{name} ({}): {}", port.device.origin, words.join(", "))
    };
    ResolveFault::HardwareUnknown { ports: ports.iter().map(word).collect(), ways }
}

impl Lack {
    fn word(self) -> &'static str {
        match self {
            Self::Name => "the name of its interface",
            Self::Guid => "its GUID",
            Self::Capability => "whether it can do connected mode, which `mode = \"auto\"` depends on",
        }
    }
}
