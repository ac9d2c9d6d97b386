//! Hosts: in one group each, and those that are referred to exist.

use std::collections::HashMap;
use std::ops::Range;

use super::Check;
use crate::hostlist::MOST_NAMES;
use crate::name::{HostName, Label};
use crate::spec::draft::PortDraft;
use crate::spec::fault::{Code, Fault, Located, Span};

/// How many hosts a mistyped name is compared with.
const MOST_COMPARED: usize = 10_000;

/// The names of all hosts, one after the other in one string: 100,000 hosts are one allocation.
pub(super) struct Roster {
    text: String,
    /// Where each name ends.
    ends: Vec<usize>,
    /// The index of each group's first host, and of the end.
    firsts: Vec<usize>,
}

impl Roster {
    /// Expands every group; `None` if that would be too many, which is reported.
    pub(super) fn gather(c: &mut Check<'_>) -> Option<Self> {
        let groups = || c.draft.nodes.all.iter().map(|group| group.hosts.as_ref());
        let total: u128 = groups().flatten().map(|hosts| hosts.value.count() as u128).sum();
        if total > MOST_NAMES {
            let span = groups().flatten().last().map_or(Span::default(), |hosts| hosts.span);
            c.faults.push(
                Fault::new(
                    Code::TooManyHosts,
                    span,
                    format!("all groups together have {total} hosts, and {MOST_NAMES} is the most"),
                )
                .label("too many with these")
                .help("look for a digit too many in a range"),
            );
            return None;
        }
        let mut roster = Self { text: String::new(), ends: Vec::new(), firsts: vec![0] };
        for hosts in groups() {
            for index in 0..hosts.map_or(0, |hosts| hosts.value.count()) {
                hosts.map(|hosts| hosts.value.write_nth(index, &mut roster.text));
                roster.ends.push(roster.text.len());
            }
            roster.firsts.push(roster.ends.len());
        }
        Some(roster)
    }

    /// The name of a host by its index.
    pub(super) fn name(&self, index: usize) -> &str {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(index).and_then(|end| self.text.get(start..*end)).unwrap_or_default()
    }

    /// The indices of a group's hosts.
    pub(super) fn group(&self, group: usize) -> Range<usize> {
        match self.firsts.get(group..).unwrap_or_default() {
            [first, end, ..] => *first..*end,
            _ => 0..0,
        }
    }

    /// The group of a host.
    pub(super) fn group_of(&self, index: usize) -> usize {
        self.firsts.partition_point(|first| *first <= index).saturating_sub(1)
    }

    fn names(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.ends.len()).map(|index| self.name(index))
    }
}

/// Checks the hosts; from each name to its host.
pub(super) fn check<'r>(c: &mut Check<'_>, roster: &'r Roster) -> HashMap<&'r str, usize> {
    let index = duplicates(c, roster);
    // A group that can't be read may well have the host that is looked for.
    if !c.draft.nodes.whole || c.draft.nodes.all.iter().any(|group| group.hosts.is_none()) {
        return index;
    }
    for (host, exception) in &c.draft.hosts.all {
        known_host(c, roster, &index, host, exception.at);
    }
    for (name, fabric) in &c.draft.fabrics.all {
        let Some(manager) = &fabric.manager else { continue };
        for host in manager.primary.iter().chain(manager.standby.iter().flatten()) {
            match index.get(host.value.as_str()) {
                Some(found) => port_on_fabric(c, roster.group_of(*found), name, host),
                None => known_host(c, roster, &index, &host.value, host.span),
            }
        }
    }
    index
}

/// A manager speaks through a port of its fabric. Says nothing where a port or its network could not be read.
fn port_on_fabric(c: &mut Check<'_>, group: usize, fabric: &Label, host: &Located<HostName>) {
    let Some(ports) = c.draft.nodes.all.get(group).map(|group| &group.ports) else { return };
    let on_fabric = |port: &PortDraft| {
        let network = c.draft.networks.all.get(&port.networks.all.first()?.value)?;
        let own = &network.fabric.as_ref()?.value;
        c.draft.fabrics.all.contains_key(own).then(|| own == fabric)
    };
    if !ports.whole || ports.all.iter().any(|port| on_fabric(port).unwrap_or(true)) {
        return;
    }
    c.faults.push(
        Fault::new(
            Code::ManagerWithoutPort,
            host.span,
            format!("`{}` has no port on fabric `{fabric}`, whose subnet manager it is", host.value),
        )
        .label("no port on this fabric")
        .help(format!("give its group a [[nodes.ports]] in a network of fabric `{fabric}`, or choose another host")),
    );
}

/// From each name to its host; names that are there twice are reported, once for each group.
fn duplicates<'r>(c: &mut Check<'_>, roster: &'r Roster) -> HashMap<&'r str, usize> {
    let mut index = HashMap::with_capacity(roster.ends.len());
    for (number, group) in c.draft.nodes.all.iter().enumerate() {
        let Some(hosts) = &group.hosts else { continue };
        let mut first = None;
        let mut count = 0usize;
        for host in roster.group(number) {
            if let Some(earlier) = index.insert(roster.name(host), host) {
                first = first.or(Some((host, earlier)));
                count += 1;
            }
        }
        let Some((host, earlier)) = first else { continue };
        let more = if count > 1 { format!(" (and {} more like it)", count - 1) } else { String::new() };
        let mut fault = Fault::new(
            Code::DuplicateHost,
            hosts.span,
            format!("`{}` is in another group already{more}", roster.name(host)),
        )
        .label("the second time")
        .help("each host is in one group, which says all of it");
        let other = c.draft.nodes.all.get(roster.group_of(earlier)).and_then(|group| group.hosts.as_ref());
        if let Some(other) = other {
            fault = fault.also(other.span, "the first time");
        }
        c.faults.push(fault);
    }
    index
}

fn known_host(c: &mut Check<'_>, roster: &Roster, index: &HashMap<&str, usize>, host: &HostName, span: Span) {
    if index.contains_key(host.as_str()) {
        return;
    }
    let help = c.suggest(host.as_str(), roster.names().take(MOST_COMPARED), "the hosts are");
    c.faults.push(
        Fault::new(Code::UnknownHost, span, format!("`{host}` is in no [[nodes]] group"))
            .label("unknown host")
            .help(help),
    );
}
