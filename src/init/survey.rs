//! What there is to configure: hosts by the name that the spec is to have for them, and their ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::natural;
use super::rails::MOST_RAILS;
use crate::facts::by_host::{Answer, FactsByHost};
use crate::facts::{Device, Facts, PortFacts};
use crate::name::HostName;
use crate::rdma::Transport;

/// A host.
#[derive(Debug)]
pub(super) struct Host<'f> {
    /// Its name in the spec.
    pub(super) name: HostName,
    /// What ssh is given, where that is another.
    pub(super) ssh: Option<&'f HostName>,
    pub(super) facts: &'f Facts,
    /// The ports to configure: InfiniBand first, then in the order of their devices' names.
    pub(super) ports: Vec<Place<'f>>,
    /// Ports that are better left alone, and why.
    pub(super) left_out: Vec<(Place<'f>, String)>,
}

/// A port on its device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'f> {
    pub(super) device: &'f Device,
    pub(super) port: &'f PortFacts,
}

impl<'f> Host<'f> {
    /// The ports of one transport, in their order: the n-th is on the n-th rail.
    pub(super) fn on(&self, transport: Transport) -> impl Iterator<Item = &Place<'f>> {
        self.ports.iter().filter(move |place| place.port.transport == transport)
    }
}

/// The hosts that answered, in the order in which people count.
pub(super) fn hosts<'f>(found: &'f FactsByHost) -> Vec<Host<'f>> {
    let answered = || {
        found.iter().filter_map(|(asked, answer)| match answer {
            Answer::Facts(facts) => Some((asked, &**facts)),
            Answer::None(_) => None,
        })
    };
    let mut called: BTreeMap<&HostName, usize> = BTreeMap::new();
    for name in answered().filter_map(|(_, facts)| facts.hostname.as_ref()) {
        *called.entry(name).or_default() += 1;
    }
    let host = |(asked, facts): (&'f HostName, &'f Facts)| {
        let own = own_name(asked, facts).filter(|name| called.get(name) == Some(&1) && !found.contains_key(*name));
        let (ports, left_out) = ports(facts);
        Host { name: own.unwrap_or(asked).clone(), ssh: own.map(|_| asked), facts, ports, left_out }
    };
    let mut hosts: Vec<Host<'f>> = answered().map(host).collect();
    hosts.sort_by(|one, other| order(&one.name).cmp(&order(&other.name)));
    hosts
}

/// What hosts are sorted by: no two have the same.
pub(super) fn order(name: &HostName) -> (Vec<natural::Piece<'_>>, &HostName) {
    (natural::key(name.as_str()), name)
}

/// What a host calls itself, where it was asked by an address: that is no name for it.
fn own_name<'f>(asked: &HostName, facts: &'f Facts) -> Option<&'f HostName> {
    facts.hostname.as_ref().filter(|_| asked.as_str().parse::<IpAddr>().is_ok())
}

/// The hosts that did not answer.
pub(super) fn silent(found: &FactsByHost) -> Vec<&HostName> {
    found.iter().filter(|(_, answer)| matches!(answer, Answer::None(_))).map(|(host, _)| host).collect()
}

/// The ports to configure, and those to leave alone.
fn ports(facts: &Facts) -> (Vec<Place<'_>>, Vec<(Place<'_>, String)>) {
    let all = facts.devices.iter().flat_map(|device| device.ports.iter().map(move |port| Place { device, port }));
    let mut all: Vec<Place<'_>> = all.collect();
    all.sort_by_key(|Place { device, port }| {
        (port.transport, natural::key(device.name.as_str()), &device.name, port.number)
    });
    let (mut ports, mut left_out) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    let mut counts: BTreeMap<Transport, usize> = BTreeMap::new();
    for place in all {
        let count = counts.entry(place.port.transport).or_default();
        let why = match reason(facts, place) {
            Some(why) => Some(why),
            None if !seen.insert((&place.device.name, place.port.number)) => Some("the facts have it twice".to_owned()),
            None if *count >= MOST_RAILS => {
                Some(format!("{MOST_RAILS} ports of one transport are the most; are these virtual functions?"))
            }
            None => None,
        };
        match why {
            Some(why) => left_out.push((place, why)),
            None => {
                *count += 1;
                ports.push(place);
            }
        }
    }
    (ports, left_out)
}

/// Why a port is left alone, if it is.
fn reason(facts: &Facts, Place { port, .. }: Place<'_>) -> Option<String> {
    if !(1..=254).contains(&port.number) {
        return Some(format!("{} is no number of a port", port.number));
    }
    let Some(netdev) = &port.netdev else {
        return (port.transport == Transport::Roce).then(|| "it has no network interface".to_owned());
    };
    // An InfiniBand port is what the spec is for, whatever it carries: apply asks before it disturbs that.
    let carries = carries(facts, port).filter(|_| port.transport == Transport::Roce)?;
    Some(format!("its interface {} carries {carries}", netdev.name))
}

/// What a port's interface carries that must not be cut.
pub(super) fn carries<'f>(facts: &'f Facts, port: &PortFacts) -> Option<&'f str> {
    let netdev = port.netdev.as_ref()?;
    facts.protected.iter().find(|protected| protected.link == netdev.name).map(|protected| protected.carries.as_str())
}
