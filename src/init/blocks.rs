//! `[[nodes]]`: one block for each set of hosts with the same devices.
//!
//! Hosts with the same names for the same ports are one block. Where several hosts with ports alike have names for them
//! that no other host has, they are one block too, and each host's GUIDs say which port is which.

use std::collections::BTreeMap;

use super::survey::{Host, Place, order};
use crate::name::DeviceName;
use crate::rdma::{Guid, Transport};

/// Hosts that are configured alike.
#[derive(Debug)]
pub(super) struct Block<'h> {
    /// In the order in which people count.
    pub(super) hosts: Vec<&'h Host<'h>>,
    /// How each of their ports is selected, in the ports' order.
    pub(super) ports: Vec<Select<'h>>,
}

/// How a port is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Select<'h> {
    /// By its device's name and its number, which all hosts of the block agree on.
    Device(&'h DeviceName, u8),
    /// By each host's own GUID.
    Guid,
}

type Names<'h> = Vec<(Transport, &'h DeviceName, u8)>;

pub(super) fn blocks<'h>(hosts: &'h [Host<'h>]) -> Vec<Block<'h>> {
    let mut by_names: BTreeMap<Names<'h>, Vec<&'h Host<'h>>> = BTreeMap::new();
    for host in hosts {
        by_names.entry(host.ports.iter().map(names).collect()).or_default().push(host);
    }
    let (shared, single): (Vec<_>, Vec<_>) = by_names.into_values().partition(|hosts| hosts.len() > 1);
    let mut alike: BTreeMap<Vec<Transport>, Vec<&'h Host<'h>>> = BTreeMap::new();
    for host in single.into_iter().flatten() {
        alike.entry(host.ports.iter().map(|place| place.port.transport).collect()).or_default().push(host);
    }
    let counts = guids(hosts);
    let alike = alike.into_values().flat_map(|hosts| {
        let whole = block(hosts.clone());
        if can_select(&whole, &counts) {
            vec![whole]
        } else {
            hosts.into_iter().map(|host| block(vec![host])).collect()
        }
    });
    let mut blocks: Vec<Block<'h>> = shared.into_iter().map(block).chain(alike).collect();
    blocks.sort_by_key(|block| block.hosts.first().map(|host| order(&host.name)));
    blocks
}

fn names<'h>(place: &Place<'h>) -> (Transport, &'h DeviceName, u8) {
    (place.port.transport, &place.device.name, place.port.number)
}

/// One block of hosts whose ports are alike.
fn block<'h>(hosts: Vec<&'h Host<'h>>) -> Block<'h> {
    let first = hosts.first().map(|host| host.ports.as_slice()).unwrap_or_default();
    let select = |(index, place): (usize, &Place<'h>)| {
        let agree = |host: &&Host<'h>| host.ports.get(index).is_some_and(|other| names(other) == names(place));
        let (_, device, number) = names(place);
        if hosts.iter().all(agree) { Select::Device(device, number) } else { Select::Guid }
    };
    let ports = first.iter().enumerate().map(select).collect();
    Block { hosts, ports }
}

/// How often each GUID is there, on ports that are left alone too: it is looked for among all.
fn guids(hosts: &[Host<'_>]) -> BTreeMap<Guid, usize> {
    let mut counts = BTreeMap::new();
    for port in hosts.iter().flat_map(|host| &host.facts.devices).flat_map(|device| &device.ports) {
        *counts.entry(port.guid).or_default() += 1;
    }
    counts
}

/// Whether the GUIDs that a block goes by are each one port's own.
fn can_select(block: &Block<'_>, counts: &BTreeMap<Guid, usize>) -> bool {
    let by_guid = block.ports.iter().enumerate().filter(|(_, select)| **select == Select::Guid).map(|(index, _)| index);
    let own = |guid: Guid| guid.0 != 0 && counts.get(&guid) == Some(&1);
    by_guid
        .into_iter()
        .all(|index| block.hosts.iter().all(|host| host.ports.get(index).is_some_and(|place| own(place.port.guid))))
}
