//! From the spec to what it asks of one host.
//!
//! A checked spec and a host's name come in, an [`Intent`] goes out. The host is
//! found in the groups by arithmetic; nothing is expanded, so the cost does not
//! grow with the number of hosts. Nothing is asked of the host itself.

mod managers;

use ipnet::IpNet;
use strsim::jaro_winkler;
use thiserror::Error;

use crate::addressing::{self, AddressError};
use crate::count::counted;
use crate::intent::{AddressIntent, Intent, LinkIntent, Origin, PortIntent, Sourced};
use crate::name::{HostName, Label};
use crate::spec::{ConfigChoice, DeviceSelector, Fabric, Layer, ModeChoice, MtuChoice, Network, NodeGroup, Port, Spec};
use crate::tag::Tag;

pub use managers::guid_on;

/// How alike a group's first name has to be for the group to be suggested.
const LIKENESS: f64 = 0.8;

/// Why the spec asks nothing of a host.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompileError {
    /// No group has the host.
    #[error("the spec has no host `{host}`: it has {}{}", counted(*.count, "host"), near_text(near))]
    UnknownHost {
        /// The name that was asked for.
        host: HostName,
        /// Names or host lists of the spec that it may have meant.
        near: Vec<String>,
        /// How many hosts the spec has.
        count: usize,
    },
    /// A port names a network or a network a fabric that is not there: the spec was not checked.
    #[error("{origin} names nothing in the spec")]
    Dangling {
        /// The entry.
        origin: Origin,
    },
    /// The host has no address in a network: the spec was not checked.
    #[error("`{host}` has no address in the network `{network}`")]
    NoAddress {
        /// The host.
        host: HostName,
        /// The network.
        network: Label,
        /// Why.
        source: AddressError,
    },
}

fn near_text(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!("; near: {}", near.join(", ")),
    }
}

/// What `spec` asks of `host`. A fully qualified name finds the host of its first label too.
///
/// # Errors
/// When no group has the host, or the spec was never checked.
pub fn compile(spec: &Spec, host: &HostName) -> Result<Intent, CompileError> {
    let Some((host, group)) = locate(spec, host) else {
        return Err(unknown(spec, host));
    };
    let ports = group.ports.iter().map(|port| compile_port(spec, group, &host, port));
    Ok(Intent {
        ports: ports.collect::<Result<_, _>>()?,
        config: Sourced {
            value: group.config,
            origin: origin("[[nodes]]".to_owned(), "config", &quoted(config_word(group.config))),
        },
        managers: managers::of(spec, &host),
        memlock: Sourced { value: group.memlock.clone(), origin: memlock_origin(group) },
        modules: spec.modules.clone(),
        cluster: spec.cluster.name.clone(),
        host,
    })
}

/// The name that the spec has for `host`: its own, or the first label of a fully qualified one.
///
/// # Errors
/// When no group has it, with the nearest names.
pub fn name_in(spec: &Spec, host: &HostName) -> Result<HostName, CompileError> {
    locate(spec, host).map(|(host, _)| host).ok_or_else(|| unknown(spec, host))
}

/// The host's name in the spec, and its group.
fn locate<'a>(spec: &'a Spec, host: &HostName) -> Option<(HostName, &'a NodeGroup)> {
    let find =
        |name: &HostName| spec.nodes.iter().find_map(|group| group.hosts.contains(name).then(|| (name.clone(), group)));
    let short = || host.as_str().split_once('.').and_then(|(label, _)| label.parse().ok());
    find(host).or_else(|| find(&short()?))
}

fn unknown(spec: &Spec, host: &HostName) -> CompileError {
    let has = |name: &String| spec.nodes.iter().any(|group| group.hosts.position_of(name).is_some());
    let mut near: Vec<String> = other_spellings(host.as_str()).filter(has).collect();
    if near.is_empty() {
        let alike = |group: &&NodeGroup| {
            group.hosts.get(0).is_some_and(|first| jaro_winkler(first.as_str(), host.as_str()) > LIKENESS)
        };
        near.extend(spec.nodes.iter().filter(alike).take(3).map(|group| group.hosts.as_str().to_owned()));
    }
    CompileError::UnknownHost {
        host: host.clone(),
        near,
        count: spec.nodes.iter().map(|group| group.hosts.count()).sum(),
    }
}

/// The same name in lower case, and with its last number padded to other widths.
fn other_spellings(name: &str) -> impl Iterator<Item = String> {
    let name = name.to_ascii_lowercase();
    let end = name.rfind(|c: char| c.is_ascii_digit()).map_or(0, |at| at + 1);
    let (head, tail) = name.split_at(end);
    let stem = head.trim_end_matches(|c: char| c.is_ascii_digit());
    let number: Option<u64> = head.get(stem.len()..).and_then(|digits| digits.parse().ok());
    let padded: Vec<String> = match number {
        Some(number) => (1..=6).map(|width| format!("{stem}{number:0width$}{tail}")).collect(),
        None => Vec::new(),
    };
    let mut all = vec![name.clone()];
    all.extend(padded);
    all.sort();
    all.dedup();
    all.into_iter()
}

fn compile_port(spec: &Spec, group: &NodeGroup, host: &HostName, port: &Port) -> Result<PortIntent, CompileError> {
    let table = || "[[nodes.ports]]".to_owned();
    let dangling = || CompileError::Dangling { origin: origin(table(), "network", &networks_word(port)) };
    let named = |name| spec.networks.get(name).map(|network| (name, network));
    let networks: Vec<(&Label, &Network)> =
        port.networks.iter().map(named).collect::<Option<_>>().ok_or_else(dangling)?;
    let (first_name, first) = *networks.first().ok_or_else(dangling)?;
    let on = origin(network_table(first_name), "fabric", &quoted(first.fabric.as_str()));
    let fabric = spec.fabrics.get(&first.fabric).ok_or(CompileError::Dangling { origin: on })?;
    let interface = || port.interface.as_ref().map_or("", |name| name.as_str());
    let no_device = || CompileError::Dangling { origin: origin(table(), "interface", &quoted(interface())) };
    let mut links = vec![own_link(port, first_name, first)];
    for (name, network) in networks {
        let address = AddressIntent {
            network: name.clone(),
            hosts: hosts_in(spec, name),
            address: address(spec, group, host, name, network)?,
        };
        let tag = tag(fabric, name, network)?;
        let at =
            links.iter().position(|link| link.tag.as_ref().map(|tag| tag.value) == tag.as_ref().map(|tag| tag.value));
        match at {
            Some(at) if !links[at].addresses.is_empty() => links[at].addresses.push(address),
            Some(at) => links[at] = link(name, network, tag, address),
            None => links.push(link(name, network, tag, address)),
        }
    }
    Ok(PortIntent {
        device: selector(spec, host, port).ok_or_else(no_device)?,
        kind: port.device.as_ref().map(of_group),
        port: port.port,
        interface: port
            .interface
            .as_ref()
            .map(|name| Sourced { value: name.clone(), origin: origin(table(), "interface", &quoted(name.as_str())) }),
        fabric: first.fabric.clone(),
        speed: fabric.speed,
        transport: Sourced { value: fabric.transport, origin: transport_origin(&first.fabric, fabric) },
        fabric_mtu: Sourced {
            value: fabric.mtu,
            origin: origin(format!("[fabrics.{}]", first.fabric), "mtu", &fabric.mtu.bytes().to_string()),
        },
        links,
    })
}

/// The port's own interface, as long as no network is on it: of the mode of the first one on it, and as large as it can.
fn own_link(port: &Port, name: &Label, network: &Network) -> LinkIntent {
    let mtu = origin("[[nodes.ports]]".to_owned(), "network", &networks_word(port));
    LinkIntent {
        tag: None,
        mode: mode_of(name, network),
        mtu: Sourced { value: MtuChoice::Max, origin: mtu },
        addresses: Vec::new(),
    }
}

fn mode_of(name: &Label, network: &Network) -> Sourced<ModeChoice> {
    let origin = origin(network_table(name), "mode", &quoted(mode_word(network.mode)));
    Sourced { value: network.mode, origin }
}

fn link(name: &Label, network: &Network, tag: Option<Sourced<Tag>>, address: AddressIntent) -> LinkIntent {
    let mtu = origin(network_table(name), "mtu", &mtu_word(network));
    LinkIntent {
        tag,
        mode: mode_of(name, network),
        mtu: Sourced { value: network.mtu, origin: mtu },
        addresses: vec![address],
    }
}

/// The partition or VLAN that a network is on.
pub(crate) fn tag(fabric: &Fabric, name: &Label, network: &Network) -> Result<Option<Sourced<Tag>>, CompileError> {
    match &network.on {
        Layer::Port => Ok(None),
        Layer::Vlan(number) => {
            let origin = origin(network_table(name), "vlan", &number.to_string());
            Ok(Some(Sourced { value: Tag::Vlan(*number), origin }))
        }
        Layer::Partition(label) => {
            let origin = origin(network_table(name), "partition", &quoted(label.as_str()));
            let Some(partition) = fabric.partitions.get(label) else { return Err(CompileError::Dangling { origin }) };
            Ok(Some(Sourced { value: Tag::Pkey(partition.pkey), origin }))
        }
    }
}

fn address(
    spec: &Spec,
    group: &NodeGroup,
    host: &HostName,
    name: &Label,
    network: &Network,
) -> Result<Sourced<IpNet>, CompileError> {
    let by_number = || {
        let value = addressing::address(network, group, host)?;
        Ok(Sourced { value, origin: origin(network_table(name), "cidr", &quoted(&network.cidr.to_string())) })
    };
    own_address(spec, host, name, network).map_or_else(by_number, Ok).map_err(|source| CompileError::NoAddress {
        host: host.clone(),
        network: name.clone(),
        source,
    })
}

fn network_table(name: &Label) -> String {
    format!("[networks.{name}]")
}

/// How many hosts have a port in a network.
fn hosts_in(spec: &Spec, network: &Label) -> usize {
    let in_it = |group: &&NodeGroup| group.ports.iter().any(|port| port.networks.contains(network));
    spec.nodes.iter().filter(in_it).map(|group| group.hosts.count()).sum()
}

fn memlock_origin(group: &NodeGroup) -> Origin {
    let units: Vec<String> = group.memlock.iter().map(|unit| quoted(unit.as_str())).collect();
    origin("[[nodes]]".to_owned(), "memlock", &format!("[{}]", units.join(", ")))
}

/// The HCA of a port: the host's own GUID before what its group says.
fn selector(spec: &Spec, host: &HostName, port: &Port) -> Option<Sourced<DeviceSelector>> {
    let own = || {
        let (name, guid) = spec.hosts.get(host)?.guids.get_key_value(port.interface.as_ref()?)?;
        let origin = origin(format!("[hosts.{host}]"), &format!("guids.{name}"), &quoted(&guid.to_string()));
        Some(Sourced { value: DeviceSelector::Guid(*guid), origin })
    };
    own().or_else(|| port.device.as_ref().map(of_group))
}

fn of_group(device: &DeviceSelector) -> Sourced<DeviceSelector> {
    Sourced { value: device.clone(), origin: device_origin("[[nodes.ports]]".to_owned(), device) }
}

/// The address that `[hosts.NAME]` gives the host in a network.
pub(crate) fn own_address(spec: &Spec, host: &HostName, name: &Label, network: &Network) -> Option<Sourced<IpNet>> {
    let address = *spec.hosts.get(host)?.addresses.get(name)?;
    let value = IpNet::new(address, network.cidr.prefix_len()).ok()?;
    let key = format!("addresses.{name}");
    Some(Sourced { value, origin: origin(format!("[hosts.{host}]"), &key, &quoted(&address.to_string())) })
}

fn origin(table: String, key: &str, value: &str) -> Origin {
    Origin { table: table.into(), entry: format!("{key} = {value}").into() }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn device_origin(table: String, device: &DeviceSelector) -> Origin {
    match device {
        DeviceSelector::Name(name) => origin(table, "device", &quoted(name.as_str())),
        DeviceSelector::Pci(address) => origin(table, "pci", &quoted(&address.to_string())),
        DeviceSelector::Guid(guid) => origin(table, "guid", &quoted(&guid.to_string())),
    }
}

fn transport_origin(label: &Label, fabric: &Fabric) -> Origin {
    let word = match fabric.transport {
        crate::rdma::Transport::Infiniband => "infiniband",
        crate::rdma::Transport::Roce => "roce",
    };
    origin(format!("[fabrics.{label}]"), "transport", &quoted(word))
}

fn mode_word(mode: ModeChoice) -> &'static str {
    match mode {
        ModeChoice::Auto => "auto",
        ModeChoice::Insist(mode) => mode.as_str(),
    }
}

fn networks_word(port: &Port) -> String {
    match port.networks.as_slice() {
        [one] => quoted(one.as_str()),
        several => {
            let names: Vec<String> = several.iter().map(|name| quoted(name.as_str())).collect();
            format!("[{}]", names.join(", "))
        }
    }
}

fn mtu_word(network: &Network) -> String {
    match network.mtu {
        MtuChoice::Max => quoted("max"),
        MtuChoice::Bytes(bytes) => bytes.to_string(),
    }
}

/// The word that the spec has for a way to keep the configuration.
#[must_use]
pub fn config_word(config: ConfigChoice) -> &'static str {
    match config {
        ConfigChoice::Auto => "auto",
        ConfigChoice::Netplan => "netplan",
        ConfigChoice::Networkd => "networkd",
        ConfigChoice::NetworkManager => "networkmanager",
        ConfigChoice::Ifcfg => "ifcfg",
        ConfigChoice::IfcfgSuse => "ifcfg-suse",
    }
}

#[cfg(test)]
mod tests;
