//! What `[hosts.NAME]` says of single hosts: it is about ports and networks that the host has, each
//! address can be had, and where only hosts can say a port's GUID, each does.
//!
//! That no two hosts have one GUID is checked in `ports`, and that they have no address of another host in `addresses`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;

use super::Check;
use super::hosts::Roster;
use crate::addressing::{self, AddressError};
use crate::name::{HostName, IfName, Label};
use crate::spec::draft::{GroupDraft, HostDraft, NetworkDraft};
use crate::spec::fault::{Code, Fault, Located, Span};
use crate::spec::model::DeviceSelector;

/// The addresses that are given to single hosts.
#[derive(Default)]
pub(super) struct Exceptions<'d> {
    of_network: BTreeMap<&'d Label, BTreeMap<usize, Given>>,
}

/// An address that a host has in place of the one its number gives.
pub(super) struct Given {
    /// How far it is from the network's own; `None` if it can't be had, which is reported.
    pub(super) number: Option<i128>,
    pub(super) at: Span,
}

impl<'d> Exceptions<'d> {
    /// Each network of which hosts have an address given, with those hosts.
    pub(super) fn networks(&self) -> impl Iterator<Item = (&'d Label, &BTreeMap<usize, Given>)> {
        self.of_network.iter().map(|(network, given)| (*network, given))
    }

    /// The hosts that have an address of this network given.
    pub(super) fn of(&self, network: &Label) -> Option<&BTreeMap<usize, Given>> {
        self.of_network.get(network)
    }

    /// Whether the host has an address given in each network of its group, and so needs no number.
    pub(super) fn cover(&self, host: usize, group: &GroupDraft) -> bool {
        let mut networks = group.ports.all.iter().flat_map(|port| &port.networks.all);
        networks.all(|network| self.of(&network.value).is_some_and(|given| given.contains_key(&host)))
    }
}

pub(super) fn check<'d>(c: &mut Check<'d>, roster: &Roster, index: &HashMap<&str, usize>) -> Exceptions<'d> {
    let mut exceptions = Exceptions::default();
    let mut with_guid: BTreeMap<(usize, &IfName), BTreeSet<usize>> = BTreeMap::new();
    let draft = c.draft;
    for (name, host) in &draft.hosts.all {
        // A host that is in no group has been reported as that.
        let Some(&number) = index.get(name.as_str()) else { continue };
        let group = roster.group_of(number);
        let Some(ports) = draft.nodes.all.get(group) else { continue };
        for guid in &host.guids {
            with_guid.entry((group, &guid.key.value)).or_default().insert(number);
        }
        if !ports.ports.whole {
            continue;
        }
        known_ports(c, name, host, ports);
        for entry in &host.addresses {
            let Some(network) = known_network(c, name, &entry.key, ports) else { continue };
            let given = entry.value.as_ref().zip(network.cidr.as_ref());
            let distance = given.and_then(|(address, cidr)| usable(c, name, &entry.key.value, address, cidr));
            let at = entry.value.as_ref().map_or(entry.key.span, |address| address.span);
            let hosts = exceptions.of_network.entry(&entry.key.value).or_default();
            hosts.insert(number, Given { number: distance, at });
        }
    }
    // Hosts that can't be read may well have the GUID that is looked for.
    if draft.hosts.whole {
        for (index, group) in draft.nodes.all.iter().enumerate() {
            each_has_a_guid(c, roster, index, group, &with_guid);
        }
    }
    exceptions
}

fn known_ports(c: &mut Check<'_>, name: &HostName, host: &HostDraft, group: &GroupDraft) {
    let interfaces = || group.ports.all.iter().filter_map(|port| port.interface.as_ref());
    for Located { value: wanted, span } in host.guids.iter().map(|guid| &guid.key) {
        let port = group.ports.all.iter().find(|port| port.interface.as_ref().is_some_and(|own| own.value == *wanted));
        let Some(port) = port else {
            let help = if interfaces().next().is_none() {
                "a GUID is given by the `interface` of its [[nodes.ports]], and those of this host have none".to_owned()
            } else {
                let words: Vec<&str> = interfaces().map(|own| own.value.as_str()).collect();
                c.suggest(wanted.as_str(), words, "its interfaces are")
            };
            c.faults.push(
                Fault::new(Code::UnknownPort, *span, format!("`{name}` has no port with the interface `{wanted}`"))
                    .label("unknown port")
                    .help(help),
            );
            continue;
        };
        if let Some(Located { value: Some(DeviceSelector::Guid(_)), span: first }) = &port.device {
            c.faults.push(
                Fault::new(Code::DeviceSelector, *span, format!("the port `{wanted}` of `{name}` has two GUIDs"))
                    .label("and here")
                    .also(*first, "in its group")
                    .help("keep one of them"),
            );
        }
    }
}

/// The network, if the host has a port in it. Says nothing where the port's network is unknown, which is reported.
fn known_network<'d>(
    c: &mut Check<'d>,
    name: &HostName,
    network: &Located<Label>,
    group: &GroupDraft,
) -> Option<&'d NetworkDraft> {
    let own = || group.ports.all.iter().flat_map(|port| &port.networks.all);
    if own().any(|own| own.value == network.value) {
        return c.draft.networks.all.get(&network.value);
    }
    let words: Vec<&str> = own().map(|own| own.value.as_str()).collect();
    let help = c.suggest(network.value.as_str(), words, "its networks are");
    c.faults.push(
        Fault::new(
            Code::UnknownNetwork,
            network.span,
            format!("`{name}` has no port in a network `{}`", network.value),
        )
        .label("not a network of this host")
        .help(help),
    );
    None
}

/// How far the address is from the network's own, if a host can have it.
fn usable(
    c: &mut Check<'_>,
    name: &HostName,
    network: &Label,
    address: &Located<IpAddr>,
    cidr: &Located<IpNet>,
) -> Option<i128> {
    let number = addressing::number_of_address(&cidr.value, address.value);
    let result = number.map(|number| addressing::address_of_number(cidr.value, number));
    let (code, what) = match result {
        Some(Ok(_)) => return number,
        Some(Err(AddressError::NotAfterBase { .. })) => (Code::NetworkAddress, "is the own address of"),
        Some(Err(AddressError::Broadcast { .. })) => (Code::BroadcastAddress, "is the broadcast address of"),
        Some(Err(_)) | None => (Code::AddressOutsideNetwork, "is not in"),
    };
    c.faults.push(
        Fault::new(code, address.span, format!("the address of `{name}` {what} network `{network}`"))
            .label("no host can have it there")
            .also(cidr.span, format!("network `{network}`"))
            .help(format!("an address of {} that no host has", cidr.value)),
    );
    None
}

/// A port without device, pci and guid needs a GUID on each host of the group.
fn each_has_a_guid(
    c: &mut Check<'_>,
    roster: &Roster,
    index: usize,
    group: &GroupDraft,
    with_guid: &BTreeMap<(usize, &IfName), BTreeSet<usize>>,
) {
    for port in &group.ports.all {
        let (Some(Located { value: None, span }), Some(interface)) = (&port.device, &port.interface) else { continue };
        let given = with_guid.get(&(index, &interface.value));
        let has = |host: &usize| given.is_some_and(|given| given.contains(host));
        let hosts = roster.group(index);
        let lacking = hosts.len().saturating_sub(given.map_or(0, BTreeSet::len));
        // The first one is found among as many as have a GUID, and one more.
        let Some(first) = hosts.into_iter().find(|host| !has(host)) else { continue };
        let (host, interface) = (roster.name(first), &interface.value);
        let more = if lacking > 1 { format!(" (and {} more like it)", lacking - 1) } else { String::new() };
        c.faults.push(
            Fault::new(
                Code::HostWithoutGuid,
                *span,
                format!("nothing says which HCA port `{interface}` of `{host}` is on{more}"),
            )
            .label("no device, pci or guid")
            .help(format!(
                "add `device`, `pci` or `guid` here, or `guids.{interface} = \"0x...\"` in [hosts.{host}] for each host"
            )),
        );
    }
}
