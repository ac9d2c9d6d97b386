//! Addresses: each host has a number, no two hosts of a network the same, and each fits its network.
//!
//! Numbers are worked out once for a host. What a port adds is a comparison
//! of its network's limits with the smallest and largest number of its group. A
//! host whose address is given in `[hosts.NAME]` does not count by its number there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Check;
use super::exceptions::{Exceptions, Given};
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

impl Numbers {
    /// The smallest and largest one of those hosts that have no address given.
    fn extremes(&self, given: Option<&BTreeMap<usize, Given>>) -> [Option<(i128, usize)>; 2] {
        let Some(given) = given else { return [self.least, self.most] };
        let all = || self.all.iter().filter(|(_, host)| !given.contains_key(host)).copied();
        [all().min(), all().max()]
    }
}

pub(super) fn check(c: &mut Check<'_>, roster: &Roster, exceptions: &Exceptions<'_>) {
    let mut numbers = Vec::with_capacity(c.draft.nodes.all.len());
    for (index, group) in c.draft.nodes.all.iter().enumerate() {
        // A group without ports needs no addresses: its hosts may have any name.
        let read = if group.ports.all.is_empty() { None } else { group_numbers(c, roster, index, group, exceptions) };
        numbers.push(read);
    }
    for (group, numbers) in c.draft.nodes.all.iter().zip(&numbers) {
        let Some(numbers) = numbers else { continue };
        for port in &group.ports.all {
            limits(c, roster, group, port, numbers, exceptions);
        }
    }
    collisions(c, roster, &numbers, exceptions);
    for (network, given) in exceptions.networks() {
        given_twice(c, roster, network, given);
        given_and_counted(c, roster, &numbers, network, given);
    }
}

fn group_numbers(
    c: &mut Check<'_>,
    roster: &Roster,
    index: usize,
    group: &GroupDraft,
    exceptions: &Exceptions<'_>,
) -> Option<Numbers> {
    let (hosts, numbering) = (group.hosts.as_ref()?, group.numbering.as_ref()?);
    let (stride, offset) = (group.stride.as_ref()?, group.offset.as_ref()?);
    let mut all = Vec::with_capacity(hosts.value.count());
    let mut without = None;
    let mut count = 0usize;
    for (position, host) in roster.group(index).enumerate() {
        match addressing::number(roster.name(host), position, numbering.value, stride.value, offset.value) {
            Some(number) => all.push((number, host)),
            None if exceptions.cover(host, group) => {}
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

fn limits(
    c: &mut Check<'_>,
    roster: &Roster,
    group: &GroupDraft,
    port: &PortDraft,
    numbers: &Numbers,
    exceptions: &Exceptions<'_>,
) {
    for name in &port.networks.all {
        limits_in(c, roster, group, name, numbers, exceptions);
    }
}

fn limits_in(
    c: &mut Check<'_>,
    roster: &Roster,
    group: &GroupDraft,
    name: &Located<Label>,
    numbers: &Numbers,
    exceptions: &Exceptions<'_>,
) {
    let Some(cidr) = c.draft.networks.all.get(&name.value).and_then(|network| network.cidr.as_ref()) else { return };
    let (Some(hosts), Some(stride)) = (&group.hosts, &group.stride) else { return };
    let offset = group.offset.as_ref().map_or(0, |offset| offset.value);
    let mut found: Vec<AddressError> = Vec::new();
    for (number, host) in numbers.extremes(exceptions.of(&name.value)).into_iter().flatten() {
        let Err(e) = addressing::address_of_number(cidr.value, number) else { continue };
        if found.iter().any(|earlier| std::mem::discriminant(earlier) == std::mem::discriminant(&e)) {
            continue;
        }
        let host = roster.name(host);
        let (code, message, help) = match &e {
            AddressError::NotAfterBase { number: 0, .. } => (
                Code::NetworkAddress,
                format!("`{host}` has number 0, and base + 0 is the own address of network `{}`", name.value),
                format!("`offset = {}` in this group shifts all its hosts by one", i128::from(offset) + 1),
            ),
            AddressError::NotAfterBase { .. } => (
                Code::NumberOutOfRange,
                format!("`{host}` would have number {number}, which is before the start of network `{}`", name.value),
                format!(
                    "the `offset` of this group takes away too much: make it at least {}",
                    i128::from(offset) - number + 1
                ),
            ),
            AddressError::Broadcast { .. } => (
                Code::BroadcastAddress,
                format!("`{host}` has number {number}, which in network `{}` is the broadcast address", name.value),
                "a wider network (a shorter prefix) has room".to_owned(),
            ),
            other => (
                Code::NetworkTooSmall,
                format!("`{host}` has number {number}, and {}", beyond(other, &name.value)),
                if stride.value > 1 {
                    "a smaller `stride` makes numbers smaller, and a wider network (a shorter prefix) has room"
                        .to_owned()
                } else {
                    "a wider network (a shorter prefix) has room; `offset` or `numbering = \"position\"` make numbers smaller".to_owned()
                },
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
fn collisions(c: &mut Check<'_>, roster: &Roster, numbers: &[Option<Numbers>], exceptions: &Exceptions<'_>) {
    let mut groups_of: BTreeMap<&Label, Vec<usize>> = BTreeMap::new();
    for (index, group) in c.draft.nodes.all.iter().enumerate() {
        for Located { value, .. } in group.ports.all.iter().flat_map(|port| &port.networks.all) {
            let groups = groups_of.entry(value).or_default();
            if groups.last() != Some(&index) {
                groups.push(index);
            }
        }
    }
    let mut networks_of: BTreeMap<(Vec<usize>, BTreeSet<usize>), &Label> = BTreeMap::new();
    for (network, groups) in groups_of {
        let given = exceptions.of(network).into_iter().flat_map(BTreeMap::keys).copied().collect();
        networks_of.entry((groups, given)).or_insert(network);
    }
    let mut reported = BTreeSet::new();
    for ((groups, given), network) in networks_of {
        for fault in collisions_among(c, roster, numbers, &groups, network, &given) {
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
    given: &BTreeSet<usize>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut seen: HashMap<i128, usize> = HashMap::new();
    for &index in groups {
        let Some(Some(own)) = numbers.get(index) else { continue };
        let mut first = None;
        let mut count = 0usize;
        for &(number, host) in own.all.iter().filter(|(_, host)| !given.contains(host)) {
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

/// Hosts that are given one address.
fn given_twice(c: &mut Check<'_>, roster: &Roster, network: &Label, given: &BTreeMap<usize, Given>) {
    let mut seen: HashMap<i128, (usize, &Given)> = HashMap::with_capacity(given.len());
    for (host, own) in given {
        let Some(number) = own.number else { continue };
        let Some((earlier, first)) = seen.get(&number) else {
            seen.insert(number, (*host, own));
            continue;
        };
        let (one, other) = (roster.name(*earlier), roster.name(*host));
        c.faults.push(
            Fault::new(
                Code::AddressCollision,
                own.at,
                format!("`{one}` and `{other}` have one address in network `{network}`"),
            )
            .label("the second time")
            .also(first.at, "the first time")
            .help("each host has an address of its own"),
        );
    }
}

/// Addresses that are given to a host, and that the number of another one gives to that.
fn given_and_counted(
    c: &mut Check<'_>,
    roster: &Roster,
    numbers: &[Option<Numbers>],
    network: &Label,
    given: &BTreeMap<usize, Given>,
) {
    let wanted: HashMap<i128, (usize, &Given)> =
        given.iter().filter_map(|(host, own)| Some((own.number?, (*host, own)))).collect();
    let draft = c.draft;
    for (group, own) in draft.nodes.all.iter().zip(numbers) {
        let (Some(own), Some(hosts)) = (own, &group.hosts) else { continue };
        let in_network = |port: &PortDraft| port.networks.all.iter().any(|own| own.value == *network);
        if !group.ports.all.iter().any(in_network) {
            continue;
        }
        for (number, other) in own.all.iter().filter(|(_, other)| !given.contains_key(other)) {
            let Some((host, own)) = wanted.get(number) else { continue };
            let (host, other) = (roster.name(*host), roster.name(*other));
            c.faults.push(
                Fault::new(
                    Code::AddressCollision,
                    own.at,
                    format!("`{other}` has number {number}, and so the address that is given to `{host}` in network `{network}`"),
                )
                .label("the address of another host")
                .also(hosts.span, format!("`{other}` is among these"))
                .help("choose an address beyond the numbers of all hosts"),
            );
        }
    }
}
