//! From the spec to what it asks of one host.
//!
//! A checked spec and a host's name come in, an [`Intent`] goes out. The host is
//! found in the groups by arithmetic; nothing is expanded, so the cost does not
//! grow with the number of hosts. Nothing is asked of the host itself.

use ipnet::IpNet;
use strsim::jaro_winkler;
use thiserror::Error;

use crate::addressing::{self, AddressError};
use crate::count::counted;
use crate::intent::{Intent, ManagerRole, Origin, PortIntent, Sourced};
use crate::name::{HostName, Label};
use crate::rdma::Guid;
use crate::spec::{ConfigChoice, DeviceSelector, Fabric, ModeChoice, MtuChoice, Network, NodeGroup, Port, Spec};

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
        managers: managers(spec, &host),
        memlock: Sourced { value: group.memlock.clone(), origin: memlock_origin(group) },
        modules: spec.modules.clone(),
        cluster: spec.cluster.name.clone(),
        host,
    })
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
    let named = origin(table(), "network", &quoted(port.network.as_str()));
    let network = spec.networks.get(&port.network).ok_or(CompileError::Dangling { origin: named })?;
    let network_table = format!("[networks.{}]", port.network);
    let on = origin(network_table.clone(), "fabric", &quoted(network.fabric.as_str()));
    let fabric = spec.fabrics.get(&network.fabric).ok_or(CompileError::Dangling { origin: on })?;
    let from_network = |key: &str, value: &str| origin(network_table.clone(), key, value);
    let by_number = || {
        let value = addressing::address(network, group, host)?;
        Ok(Sourced { value, origin: from_network("cidr", &quoted(&network.cidr.to_string())) })
    };
    let address = own_address(spec, host, port, network)
        .map_or_else(by_number, Ok)
        .map_err(|source| CompileError::NoAddress { host: host.clone(), network: port.network.clone(), source })?;
    let interface = || port.interface.as_ref().map_or("", |name| name.as_str());
    let no_device = || CompileError::Dangling { origin: origin(table(), "interface", &quoted(interface())) };
    Ok(PortIntent {
        device: selector(spec, host, port).ok_or_else(no_device)?,
        port: port.port,
        interface: port
            .interface
            .as_ref()
            .map(|name| Sourced { value: name.clone(), origin: origin(table(), "interface", &quoted(name.as_str())) }),
        network: port.network.clone(),
        fabric: network.fabric.clone(),
        speed: fabric.speed,
        hosts: hosts_in(spec, &port.network),
        address,
        mode: Sourced { value: network.mode, origin: from_network("mode", &quoted(mode_word(network.mode))) },
        mtu: Sourced { value: network.mtu, origin: from_network("mtu", &mtu_word(network)) },
        transport: Sourced { value: fabric.transport, origin: transport_origin(&network.fabric, fabric) },
        fabric_mtu: Sourced {
            value: fabric.mtu,
            origin: origin(format!("[fabrics.{}]", network.fabric), "mtu", &fabric.mtu.bytes().to_string()),
        },
    })
}

/// How many hosts have a port in a network.
fn hosts_in(spec: &Spec, network: &Label) -> usize {
    let in_it = |group: &&NodeGroup| group.ports.iter().any(|port| port.network == *network);
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
    let of_group = |device: &DeviceSelector| Sourced {
        value: device.clone(),
        origin: device_origin("[[nodes.ports]]".to_owned(), device),
    };
    own().or_else(|| port.device.as_ref().map(of_group))
}

/// The address that `[hosts.NAME]` gives the host in the port's network.
fn own_address(spec: &Spec, host: &HostName, port: &Port, network: &Network) -> Option<Sourced<IpNet>> {
    let address = *spec.hosts.get(host)?.addresses.get(&port.network)?;
    let value = IpNet::new(address, network.cidr.prefix_len()).ok()?;
    let key = format!("addresses.{}", port.network);
    Some(Sourced { value, origin: origin(format!("[hosts.{host}]"), &key, &quoted(&address.to_string())) })
}

fn managers(spec: &Spec, host: &HostName) -> Vec<ManagerRole> {
    let role = |(label, fabric): (&Label, &Fabric)| {
        let manager = fabric.subnet_manager.as_ref()?;
        let managers: Vec<HostName> = std::iter::once(&manager.primary).chain(&manager.standby).cloned().collect();
        let rank = managers.iter().position(|name| name == host)?;
        let guids = managers.iter().filter_map(|host| guid_on(spec, host, label)).collect();
        let entry = match rank {
            0 => format!("primary = \"{host}\""),
            _ => format!("standby has \"{host}\""),
        };
        let origin = Origin { table: format!("[fabrics.{label}.subnet-manager]").into(), entry: entry.into() };
        Some(ManagerRole { fabric: label.clone(), rank, managers, guids, fabric_mtu: fabric.mtu, origin })
    };
    spec.fabrics.iter().filter_map(role).collect()
}

/// The GUID of the host's first port on a fabric, where the spec selects it by GUID.
#[must_use]
pub fn guid_on(spec: &Spec, host: &HostName, fabric: &Label) -> Option<Guid> {
    let (host, group) = locate(spec, host)?;
    let is_on = |port: &&Port| spec.networks.get(&port.network).is_some_and(|network| network.fabric == *fabric);
    match selector(spec, &host, group.ports.iter().find(is_on)?)?.value {
        DeviceSelector::Guid(guid) => Some(guid),
        DeviceSelector::Name(_) | DeviceSelector::Pci(_) => None,
    }
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
