//! Partitions, VLANs, and the interfaces that they make on ports: keys and members that work, networks that
//! agree on the interface they share, names that leave room for those of children.

use std::collections::{BTreeMap, HashMap};

use super::hosts::Roster;
use super::{Check, names};
use crate::count::counted;
use crate::hostlist::HostList;
use crate::name::{IfName, Label};
use crate::rdma::{ROCE_MTU, Transport};
use crate::spec::draft::{FabricDraft, GroupDraft, NetworkDraft, PartitionDraft, PortDraft};
use crate::spec::fault::{Code, Fault, Located, Span};
use crate::spec::model::{DeviceSelector, Layer, Members, MtuChoice};
use crate::tag::Tag;

/// What the kernel takes of an interface name, bytes: `IFNAMSIZ` less the terminating zero.
const MOST_NAME_BYTES: usize = 15;

pub(super) fn check(c: &mut Check<'_>) {
    for fabric in c.draft.fabrics.all.values() {
        keys(c, fabric);
        for partition in fabric.partitions.all.values() {
            limited_only(c, partition);
        }
    }
    for network in c.draft.networks.all.values() {
        layer(c, network);
    }
    for group in &c.draft.nodes.all {
        for port in &group.ports.all {
            one_fabric(c, port);
            one_mind(c, port);
            room_for_children(c, port);
            vlan_fits(c, port);
        }
        names_of_children(c, group);
    }
}

fn keys(c: &mut Check<'_>, fabric: &FabricDraft) {
    let mut seen: BTreeMap<_, (Span, &Label)> = BTreeMap::new();
    let mut all: Vec<_> =
        fabric.partitions.all.iter().filter_map(|(name, one)| Some((one.pkey.as_ref()?, name))).collect();
    all.sort_by_key(|(pkey, _)| pkey.span);
    for (pkey, name) in all {
        let Some((first, first_name)) = seen.get(&pkey.value) else {
            seen.insert(pkey.value, (pkey.span, name));
            continue;
        };
        c.faults.push(
            Fault::new(
                Code::DuplicatePkey,
                pkey.span,
                format!("partitions `{first_name}` and `{name}` have one key, {}", pkey.value),
            )
            .label("the second")
            .also(*first, "the first")
            .help("0x0001 and 0x8001 are the same partition: the bit 0x8000 only says who is a full member"),
        );
    }
}

/// Limited members never reach each other, so that a partition without a full one carries nothing.
fn limited_only(c: &mut Check<'_>, partition: &PartitionDraft) {
    let (Some(full), Some(limited)) = (&partition.full, &partition.limited) else { return };
    match (&full.value, &limited.value) {
        (Members::None, _) => c.faults.push(
            Fault::new(
                Code::LimitedOnly,
                limited.span,
                "this partition has limited members only, which reach full members only",
            )
            .label("and no `full`")
            .help("name in `full` the hosts that all others are to reach, such as the storage servers"),
        ),
        (Members::All, Members::All) => c.faults.push(
            Fault::new(Code::Membership, limited.span, "all hosts are full members already")
                .label("and limited ones")
                .also(full.span, "full members")
                .help("remove one of the two"),
        ),
        _ => {}
    }
}

/// A network is on a partition of its fabric, or on a VLAN if that is Ethernet.
fn layer(c: &mut Check<'_>, network: &NetworkDraft) {
    let (Some(on), Some(name)) = (&network.on, &network.fabric) else { return };
    let Some(fabric) = c.draft.fabrics.all.get(&name.value) else { return };
    let transport = fabric.transport.as_ref().map(|transport| (transport.value, transport.span));
    match (&on.value, transport) {
        (Layer::Partition(_), Some((Transport::Roce, at))) => c.faults.push(
            Fault::new(
                Code::PartitionOnRoce,
                on.span,
                format!("fabric `{}` runs on RoCE, which has no partitions", name.value),
            )
            .label("only for InfiniBand")
            .also(at, "the transport")
            .help("networks of RoCE are kept apart by `vlan`"),
        ),
        (Layer::Partition(wanted), _) if fabric.partitions.whole && !fabric.partitions.all.contains_key(wanted) => {
            let help = if fabric.partitions.all.is_empty() {
                format!("add [fabrics.{}.partitions.{wanted}] with its `pkey`", name.value)
            } else {
                c.suggest(wanted.as_str(), names(&fabric.partitions.all), "its partitions are")
            };
            c.faults.push(
                Fault::new(
                    Code::UnknownPartition,
                    on.span,
                    format!("fabric `{}` has no partition `{wanted}`", name.value),
                )
                .label("unknown partition")
                .help(help),
            );
        }
        (Layer::Vlan(_), Some((Transport::Infiniband, at))) => c.faults.push(
            Fault::new(Code::VlanOnInfiniband, on.span, "IP over InfiniBand carries no VLANs: the kernel refuses them")
                .label("only for RoCE")
                .also(at, "the transport")
                .help("networks of InfiniBand are kept apart by `partition`"),
        ),
        _ => {}
    }
}

fn one_fabric(c: &mut Check<'_>, port: &PortDraft) {
    let mut first: Option<&Located<Label>> = None;
    for name in &port.networks.all {
        let Some(fabric) = c.draft.networks.all.get(&name.value).and_then(|network| network.fabric.as_ref()) else {
            continue;
        };
        let Some(other) = first.and_then(|name| c.draft.networks.all.get(&name.value)?.fabric.as_ref()) else {
            first = Some(name);
            continue;
        };
        if other.value == fabric.value {
            continue;
        }
        c.faults.push(
            Fault::new(
                Code::TwoFabrics,
                name.span,
                format!("this port is in networks of two fabrics, `{}` and `{}`", other.value, fabric.value),
            )
            .label(format!("on fabric `{}`", fabric.value))
            .also(first.map_or(name.span, |first| first.span), format!("on fabric `{}`", other.value))
            .help("a port has one cable, and so one fabric: networks of the other one belong to another port"),
        );
    }
}

/// Networks on one interface are of one mode and MTU.
fn one_mind(c: &mut Check<'_>, port: &PortDraft) {
    let mut first: BTreeMap<&Layer, (&Label, &NetworkDraft)> = BTreeMap::new();
    for name in &port.networks.all {
        let Some(network) = c.draft.networks.all.get(&name.value) else { continue };
        let Some(on) = &network.on else { continue };
        let Some((other_name, other)) = first.get(&on.value) else {
            first.insert(&on.value, (&name.value, network));
            continue;
        };
        let differs = [
            differing(network.mode.as_ref(), other.mode.as_ref()).map(|places| ("mode", places)),
            differing(network.mtu.as_ref(), other.mtu.as_ref()).map(|places| ("mtu", places)),
        ];
        for (key, [own, others]) in differs.into_iter().flatten() {
            c.faults.push(
                Fault::new(
                    Code::NetworksDisagree,
                    own,
                    format!(
                        "networks `{other_name}` and `{}` are on one interface of a port and differ in `{key}`",
                        name.value
                    ),
                )
                .label("not the same")
                .also(others, format!("of network `{other_name}`"))
                .also(name.span, "the port that is in both")
                .help(format!(
                    "an interface has one {key}: give both networks the same, or put one on a partition or VLAN"
                )),
            );
        }
    }
}

fn differing<T: PartialEq>(one: Option<&Located<T>>, other: Option<&Located<T>>) -> Option<[Span; 2]> {
    let (one, other) = (one?, other?);
    (one.value != other.value).then_some([one.span, other.span])
}

/// A VLAN sends by the interface it is on, so that its MTU is that one's at most. As `max` it is that one's.
fn vlan_fits(c: &mut Check<'_>, port: &PortDraft) {
    let draft = c.draft;
    let mtus = || {
        port.networks.all.iter().filter_map(|name| {
            let network = draft.networks.all.get(&name.value)?;
            Some((name, &network.on.as_ref()?.value, network.mtu.as_ref()?))
        })
    };
    let Some((parent, _, own)) = mtus().find(|(_, on, _)| **on == Layer::Port) else { return };
    let most = match own.value {
        MtuChoice::Max => ROCE_MTU,
        MtuChoice::Bytes(bytes) => bytes,
    };
    let in_bytes = mtus().filter_map(|(name, on, mtu)| match (on, mtu.value) {
        (Layer::Vlan(_), MtuChoice::Bytes(bytes)) if bytes > most => Some((name, bytes, mtu.span)),
        _ => None,
    });
    let Some((name, bytes, span)) = in_bytes.max_by_key(|(_, bytes, _)| *bytes) else { return };
    c.faults.push(
        Fault::new(
            Code::MtuAboveParent,
            span,
            format!(
                "network `{}` has an MTU of {bytes} bytes, and the interface that its VLAN is on one of {most}",
                name.value
            ),
        )
        .label("more than its interface")
        .also(own.span, format!("network `{}`, on the port's own interface", parent.value))
        .also(name.span, "the port that is in both")
        .help(format!("give network `{}` an `mtu` of {bytes}, or this one of {most}", parent.value)),
    );
}

/// `ib0.8001` and `eth0.4094` have five bytes more than their parent.
fn room_for_children(c: &mut Check<'_>, port: &PortDraft) {
    let Some(interface) = &port.interface else { return };
    for name in &port.networks.all {
        let Some(on) = c.draft.networks.all.get(&name.value).and_then(|network| network.on.as_ref()) else { continue };
        let (suffix, what) = match on.value {
            Layer::Port => continue,
            Layer::Partition(_) => (5, "partition"),
            Layer::Vlan(number) => (1 + number.to_string().len(), "VLAN"),
        };
        if interface.value.as_str().len() + suffix <= MOST_NAME_BYTES {
            continue;
        }
        c.faults.push(
            Fault::new(
                Code::ChildName,
                interface.span,
                format!(
                    "`{}` leaves no room for the name of its interface on a {what}, which has {suffix} bytes more",
                    interface.value
                ),
            )
            .label(format!("more than {} bytes", MOST_NAME_BYTES - suffix))
            .also(name.span, format!("network `{}` is on a {what}", name.value))
            .help(format!("an interface name has at most {MOST_NAME_BYTES} bytes")),
        );
        return;
    }
}

/// `ib0.8001` can't be a port as well as the child of `ib0`.
fn names_of_children(c: &mut Check<'_>, group: &GroupDraft) {
    let draft = c.draft;
    let tag = |name: &Located<Label>| {
        let network = draft.networks.all.get(&name.value)?;
        match &network.on.as_ref()?.value {
            Layer::Port => None,
            Layer::Vlan(number) => Some(Tag::Vlan(*number)),
            Layer::Partition(partition) => {
                let fabric = draft.fabrics.all.get(&network.fabric.as_ref()?.value)?;
                Some(Tag::Pkey(fabric.partitions.all.get(partition)?.pkey.as_ref()?.value))
            }
        }
    };
    let own = || group.ports.all.iter().filter_map(|port| Some((port.interface.as_ref()?, port)));
    for (parent, port) in own() {
        for (name, tag) in port.networks.all.iter().filter_map(|name| Some((name, tag(name)?))) {
            let Ok(child) = tag.child_of(&parent.value) else { continue };
            let Some((taken, _)) = own().find(|(other, _)| other.value == child) else { continue };
            c.faults.push(
                Fault::new(
                    Code::DuplicateInterface,
                    taken.span,
                    format!("`{child}` is also the interface of `{}` for {tag}", parent.value),
                )
                .label("the name of a port")
                .also(name.span, format!("network `{}` is on that", name.value))
                .help("give the port another interface name"),
            );
        }
    }
}

/// Who is in a partition: hosts of the spec, each once, whose ports the subnet manager can be told.
pub(super) fn members(c: &mut Check<'_>, roster: &Roster, index: &HashMap<&str, usize>) {
    let draft = c.draft;
    for (fabric_name, fabric) in &draft.fabrics.all {
        for (name, partition) in &fabric.partitions.all {
            let (Some(full), Some(limited)) = (&partition.full, &partition.limited) else { continue };
            both(c, full, limited);
            for list in [full, limited] {
                let Members::Hosts(hosts) = &list.value else { continue };
                known(c, index, hosts, list.span);
                if fabric.manager.is_some() {
                    with_guids(c, roster, index, (fabric_name, name), hosts, list.span);
                }
            }
            ports_of_members(c, roster, fabric_name, name, partition);
        }
    }
}

fn both(c: &mut Check<'_>, full: &Located<Members>, limited: &Located<Members>) {
    let (Members::Hosts(one), Members::Hosts(other)) = (&full.value, &limited.value) else { return };
    let (few, many) = if one.count() < other.count() { (one, other) } else { (other, one) };
    let Some(host) = (0..few.count()).filter_map(|index| few.get(index)).find(|host| many.contains(host)) else {
        return;
    };
    c.faults.push(
        Fault::new(Code::Membership, limited.span, format!("`{host}` is a full and a limited member"))
            .label("limited members")
            .also(full.span, "full members")
            .help("each host is one or the other"),
    );
}

/// Whether all groups could be read, so that a host that is not among theirs is in none.
fn whole(c: &Check<'_>) -> bool {
    c.draft.nodes.whole && c.draft.nodes.all.iter().all(|group| group.hosts.is_some())
}

fn known(c: &mut Check<'_>, index: &HashMap<&str, usize>, hosts: &HostList, at: Span) {
    if !whole(c) {
        return;
    }
    let unknown =
        (0..hosts.count()).filter_map(|number| hosts.get(number)).find(|host| !index.contains_key(host.as_str()));
    if let Some(host) = unknown {
        c.faults.push(
            Fault::new(Code::UnknownHost, at, format!("`{host}` is in no [[nodes]] group"))
                .label("a host of these is unknown")
                .help("members are hosts of the spec; others can't be told from those that do not belong there"),
        );
    }
}

/// The subnet manager knows members by port GUID, and those of other hosts can only be in the spec.
fn with_guids(
    c: &mut Check<'_>,
    roster: &Roster,
    index: &HashMap<&str, usize>,
    (fabric, partition): (&Label, &Label),
    hosts: &HostList,
    at: Span,
) {
    let draft = c.draft;
    let mut lacking = Vec::new();
    for host in (0..hosts.count()).filter_map(|number| hosts.get(number)) {
        let Some(group) = index.get(host.as_str()).and_then(|host| draft.nodes.all.get(roster.group_of(*host))) else {
            continue;
        };
        let guids = draft.hosts.all.get(&host).map(|host| host.guids.as_slice()).unwrap_or_default();
        let has = |port: &PortDraft| {
            let by_group = matches!(port.device, None | Some(Located { value: Some(DeviceSelector::Guid(_)), .. }));
            let own = |interface: &Located<IfName>| guids.iter().any(|guid| guid.key.value == interface.value);
            by_group || port.interface.as_ref().is_some_and(own)
        };
        let ports = || group.ports.all.iter().filter(|port| is_on(c, port, fabric));
        let joins = |port: &PortDraft| joins(c, port, fabric, partition).is_some();
        let some_join = ports().any(&joins);
        lacking
            .extend(ports().filter(|port| (!some_join || joins(port)) && !has(port)).map(|port| (host.clone(), port)));
    }
    let Some((host, port)) = lacking.first() else { return };
    let way = match &port.interface {
        Some(name) => {
            format!("add `guids.{} = \"0x...\"` in [hosts.{host}]: `selvedge facts` there prints it", name.value)
        }
        None => format!(
            "give its [[nodes.ports]] an `interface`, and [hosts.{host}] the GUID of that: `selvedge facts` there prints it"
        ),
    };
    c.faults.push(
        Fault::new(
            Code::MemberWithoutGuid,
            at,
            format!(
                "the subnet manager knows members by port GUID, and the spec lacks those of {} of these hosts",
                counted(lacking.len(), "port")
            ),
        )
        .label("members by name")
        .help(way),
    );
}

fn is_on(c: &Check<'_>, port: &PortDraft, fabric: &Label) -> bool {
    let network = port.networks.all.first().and_then(|name| c.draft.networks.all.get(&name.value));
    network.and_then(|network| network.fabric.as_ref()).is_some_and(|own| own.value == *fabric)
}

/// Where a port says that it is in a network on the partition.
fn joins(c: &Check<'_>, port: &PortDraft, fabric: &Label, partition: &Label) -> Option<Span> {
    port.networks.all.iter().find_map(|name| {
        let network = c.draft.networks.all.get(&name.value)?;
        let own = network.fabric.as_ref()?.value == *fabric;
        let on = matches!(&network.on.as_ref()?.value, Layer::Partition(wanted) if wanted == partition);
        (own && on).then_some(name.span)
    })
}

/// A port in a network of the partition has to be let in.
fn ports_of_members(c: &mut Check<'_>, roster: &Roster, fabric: &Label, name: &Label, partition: &PartitionDraft) {
    let (Some(full), Some(limited)) = (&partition.full, &partition.limited) else { return };
    if [full, limited].iter().any(|list| list.value == Members::All) {
        return;
    }
    let draft = c.draft;
    for (number, group) in draft.nodes.all.iter().enumerate() {
        let Some(at) = group.ports.all.iter().find_map(|port| joins(c, port, fabric, name)) else { continue };
        let is_member =
            |host: &str| host.parse().is_ok_and(|host| [full, limited].iter().any(|list| list.value.has(&host)));
        let Some(outside) = roster.group(number).find(|host| !is_member(roster.name(*host))) else { continue };
        c.faults.push(
            Fault::new(
                Code::Membership,
                at,
                format!("`{}` is in a network on partition `{name}`, and is no member of it", roster.name(outside)),
            )
            .label("a network on the partition")
            .also(partition.at, "its members")
            .help("name the host in `full` or `limited`, or `limited = \"all\"` for all that are not in `full`"),
        );
    }
}
