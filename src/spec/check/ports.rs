//! Ports: their network exists, and no two ports of a node are in each other's way.
//!
//! A host is in one group, so the ports of a group are the ports of its nodes.

use std::collections::BTreeMap;

use super::{Check, names};
use crate::spec::draft::{GroupDraft, PortDraft};
use crate::spec::fault::{Code, Fault, Located, Span};
use crate::spec::model::DeviceSelector;

pub(super) fn check(c: &mut Check<'_>) {
    for group in &c.draft.nodes.all {
        for port in &group.ports.all {
            known_network(c, port);
            guid_of_one_host(c, group, port);
        }
        devices(c, group);
        interfaces(c, group);
        networks(c, group);
    }
    guids(c);
}

fn known_network(c: &mut Check<'_>, port: &PortDraft) {
    for network in &port.networks.all {
        if !c.draft.networks.whole || c.draft.networks.all.contains_key(&network.value) {
            continue;
        }
        let help = c.suggest(network.value.as_str(), names(&c.draft.networks.all), "the networks are");
        c.faults.push(
            Fault::new(Code::UnknownNetwork, network.span, format!("there is no network `{}`", network.value))
                .label("unknown network")
                .help(help),
        );
    }
}

fn guid_of_one_host(c: &mut Check<'_>, group: &GroupDraft, port: &PortDraft) {
    let (Some(device), Some(hosts)) = (&port.device, &group.hosts) else { return };
    let count = hosts.value.count();
    if count == 1 || !matches!(device.value, Some(DeviceSelector::Guid(_))) {
        return;
    }
    c.faults.push(
        Fault::new(
            Code::GuidForManyHosts,
            device.span,
            format!("a GUID is one port of one host, and this group has {count} hosts"),
        )
        .label("one port only")
        .also(hosts.span, format!("{count} hosts"))
        .help(
            "use `device` or `pci`, which many hosts can share, or `interface` and each host's `guids` in [hosts.NAME]",
        ),
    );
}

fn devices(c: &mut Check<'_>, group: &GroupDraft) {
    let all = group.ports.all.iter().filter_map(|port| {
        let (device, number) = (port.device.as_ref()?, port.port.as_ref()?);
        let key = match device.value.as_ref()? {
            DeviceSelector::Name(name) => format!("port {} of {name}", number.value),
            DeviceSelector::Pci(address) => format!("port {} of {address}", number.value),
            DeviceSelector::Guid(_) => return None,
        };
        Some((key, device.span))
    });
    twice(c, all, Code::DuplicateDevicePort, |what| {
        (
            format!("{what} is here twice"),
            "each [[nodes.ports]] is a port of its own: another `device`, or another `port`",
        )
    });
}

/// A GUID is one port in the world, whichever group names it.
fn guids(c: &mut Check<'_>) {
    let of_port = |port: &PortDraft| match port.device.as_ref()? {
        Located { value: Some(DeviceSelector::Guid(guid)), span } => Some((*guid, *span)),
        _ => None,
    };
    let of_ports = c.draft.nodes.all.iter().flat_map(|group| &group.ports.all).filter_map(of_port);
    let of_hosts = c.draft.hosts.all.values().flat_map(|host| &host.guids);
    let mut all: Vec<_> =
        of_ports.chain(of_hosts.filter_map(|entry| entry.value.as_ref().map(|guid| (guid.value, guid.span)))).collect();
    all.sort_by_key(|(_, span)| *span);
    twice(c, all.into_iter(), Code::DuplicateDevicePort, |guid| {
        (
            format!("the port {guid} is here twice"),
            "a GUID is one port of one host: read it again with `ibstat` on each host",
        )
    });
}

fn interfaces(c: &mut Check<'_>, group: &GroupDraft) {
    let all = group.ports.all.iter().filter_map(|port| {
        let interface = port.interface.as_ref()?;
        Some((interface.value.as_str(), interface.span))
    });
    twice(c, all, Code::DuplicateInterface, |name| {
        (format!("two ports of a node can't both be `{name}`"), "give each port an interface name of its own")
    });
}

fn networks(c: &mut Check<'_>, group: &GroupDraft) {
    let networks = group.ports.all.iter().flat_map(|port| &port.networks.all);
    twice(c, networks.map(|network| (network.value.as_str(), network.span)), Code::DuplicateNetwork, |name| {
        (
            format!("a node can't be in network `{name}` twice: both would have one address"),
            "each port, and so each rail, has networks of its own",
        )
    });
}

fn twice<K: Ord>(
    c: &mut Check<'_>,
    all: impl Iterator<Item = (K, Span)>,
    code: Code,
    words: impl Fn(&K) -> (String, &'static str),
) {
    let mut seen = BTreeMap::new();
    for (key, span) in all {
        if let Some(first) = seen.get(&key) {
            let (message, help) = words(&key);
            c.faults.push(Fault::new(code, span, message).label("the second").also(*first, "the first").help(help));
        } else {
            seen.insert(key, span);
        }
    }
}
