//! Addresses: each host has a number, no two hosts of a network the same, and each fits its network.
//!
//! Numbers are worked out once for a host. What a port adds is a comparison
//! of its network's limits with the smallest and largest number of its group.

use std::collections::{BTreeMap, HashMap};

use super::Check;
use super::hosts::Roster;
use crate::addressing::{self, AddressError};
use crate::name::Label;
use crate::spec::draft::{GroupDraft, PortDraft};
use crate::spec::fault::{Code, Fault, Located};

/// The numbers of a group: each with its host, and the extremes.
struct Numbers {
    all: Vec<(i128, usize)>,
    least: Option<(i128, usize)>,
    most: Option<(i128, usize)>,
}

pub(super) fn check(c: &mut Check<'_>, roster: &Roster) {
    let mut numbers = Vec::with_capacity(c.draft.nodes.all.len());
    for (index, group) in c.draft.nodes.all.iter().enumerate() {
        // A group without ports needs no addresses: its hosts may have any name.
        let read = if group.ports.all.is_empty() { None } else { group_numbers(c, roster, index, group) };
        numbers.push(read);
    }
    for (group, numbers) in c.draft.nodes.all.iter().zip(&numbers) {
        let Some(numbers) = numbers else { continue };
        for port in &group.ports.all {
            limits(c, roster, group, port, numbers);
        }
    }
    collisions(c, roster, &numbers);
}

fn group_numbers(c: &mut Check<'_>, roster: &Roster, index: usize, group: &GroupDraft) -> Option<Numbers> {
    let (hosts, numbering, offset) = (group.hosts.as_ref()?, group.numbering.as_ref()?, group.offset.as_ref()?);
    let mut all = Vec::with_capacity(hosts.value.count());
    let mut without = None;
    let mut count = 0usize;
    for (position, host) in roster.group(index).enumerate() {
        match addressing::number(roster.name(host), position, numbering.value, offset.value) {
            Some(number) => all.push((number, host)),
            None => {
                without = without.or(Some(host));
                count += 1;
            }
        }
    }
    if let Some(host) = without {
        let more = if count > 1 { format!(" (and {} more like it)", count - 1) } else { String::new() };
        c.faults.push(
            Fault::new(
                Code::HostWithoutNumber,
                hosts.span,
                format!("the name `{}` has no number that its address could be made of{more}", roster.name(host)),
            )
            .label("no number")
            .help("`numbering = \"position\"` in this group counts its hosts instead: the first has 1"),
        );
    }
    let (least, most) = (all.iter().min().copied(), all.iter().max().copied());
    Some(Numbers { all, least, most })
}

fn limits(c: &mut Check<'_>, roster: &Roster, group: &GroupDraft, port: &PortDraft, numbers: &Numbers) {
    let Some(name) = &port.network else { return };
    let Some(cidr) = c.draft.networks.all.get(&name.value).and_then(|network| network.cidr.as_ref()) else { return };
    let Some(hosts) = &group.hosts else { return };
    let mut found: Vec<AddressError> = Vec::new();
    for (number, host) in numbers.least.into_iter().chain(numbers.most) {
        let Err(e) = addressing::address_of_number(cidr.value, number) else { continue };
        if found.iter().any(|earlier| std::mem::discriminant(earlier) == std::mem::discriminant(&e)) {
            continue;
        }
        let host = roster.name(host);
        let (code, message, help) = match &e {
            AddressError::NotAfterBase { number: 0, .. } => (
                Code::NetworkAddress,
                format!("`{host}` has number 0, and base + 0 is the own address of network `{}`", name.value),
                "`offset = 1` in this group shifts all its hosts by one",
            ),
            AddressError::NotAfterBase { .. } => (
                Code::NumberOutOfRange,
                format!("`{host}` would have number {number}, which is before the start of network `{}`", name.value),
                "the `offset` of this group takes away too much",
            ),
            AddressError::Broadcast { .. } => (
                Code::BroadcastAddress,
                format!("`{host}` has number {number}, which in network `{}` is the broadcast address", name.value),
                "a wider network (a shorter prefix) has room",
            ),
            other => (
                Code::NetworkTooSmall,
                format!("`{host}` has number {number}, and {}", beyond(other, &name.value)),
                "a wider network (a shorter prefix) has room; `offset` or `numbering = \"position\"` make numbers smaller",
            ),
        };
        c.faults.push(
            Fault::new(code, hosts.span, message)
                .label(format!("number {number} is among these"))
                .also(cidr.span, format!("network `{}`", name.value))
                .help(help),
        );
        found.push(e);
    }
}

fn beyond(e: &AddressError, network: &Label) -> String {
    match e {
        AddressError::Beyond { last, cidr, .. } => {
            format!("the last host of network `{network}` ({cidr}) has number {last}")
        }
        other => other.to_string(),
    }
}

/// Hosts with one number in one network. Rails of the same groups are looked at once for all.
fn collisions(c: &mut Check<'_>, roster: &Roster, numbers: &[Option<Numbers>]) {
    let mut groups_of: BTreeMap<&Label, Vec<usize>> = BTreeMap::new();
    for (index, group) in c.draft.nodes.all.iter().enumerate() {
        for Located { value, .. } in group.ports.all.iter().filter_map(|port| port.network.as_ref()) {
            let groups = groups_of.entry(value).or_default();
            if groups.last() != Some(&index) {
                groups.push(index);
            }
        }
    }
    let mut networks_of: BTreeMap<Vec<usize>, Vec<&Label>> = BTreeMap::new();
    for (network, groups) in groups_of {
        networks_of.entry(groups).or_default().push(network);
    }
    let mut reported = std::collections::BTreeSet::new();
    for (groups, networks) in networks_of {
        let Some(network) = networks.first() else { continue };
        for fault in collisions_among(c, roster, numbers, &groups, network) {
            // Other rails may join the same two groups in another company.
            if reported.insert(fault.span) {
                c.faults.push(fault);
            }
        }
    }
}

fn collisions_among(
    c: &Check<'_>,
    roster: &Roster,
    numbers: &[Option<Numbers>],
    groups: &[usize],
    network: &Label,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut seen: HashMap<i128, usize> = HashMap::new();
    for &index in groups {
        let Some(Some(own)) = numbers.get(index) else { continue };
        let mut first = None;
        let mut count = 0usize;
        for &(number, host) in &own.all {
            let earlier = *seen.entry(number).or_insert(host);
            // One host in two groups has been reported as that.
            if earlier != host && roster.name(earlier) != roster.name(host) {
                first = first.or(Some((number, earlier, host)));
                count += 1;
            }
        }
        let Some((number, earlier, host)) = first else { continue };
        let Some(hosts) = c.draft.nodes.all.get(index).and_then(|group| group.hosts.as_ref()) else { continue };
        let more = if count > 1 { format!(" (and {} more like them)", count - 1) } else { String::new() };
        let mut fault = Fault::new(
            Code::NumberCollision,
            hosts.span,
            format!(
                "`{}` and `{}` both have number {number}, and so one address in network `{network}`{more}",
                roster.name(earlier),
                roster.name(host)
            ),
        )
        .label("numbers that are taken")
        .help(
            "`numbering = \"position\"` counts the hosts of a group from 1, and `offset` shifts a group past another",
        );
        let other = roster.group_of(earlier);
        if let Some(other) =
            c.draft.nodes.all.get(other).and_then(|group| group.hosts.as_ref()).filter(|_| other != index)
        {
            fault = fault.also(other.span, "by these");
        }
        faults.push(fault);
    }
    faults
}
