//! Networks: their fabric, mode and MTU, and that no two of them share addresses.

use std::collections::BTreeSet;

use ipnet::IpNet;

use super::{Check, names};
use crate::name::Label;
use crate::rdma::{CONNECTED_MTU, IPOIB_HEADER_BYTES, IpoibMode, Transport};
use crate::spec::draft::{FabricDraft, NetworkDraft};
use crate::spec::fault::{Code, Fault};
use crate::spec::model::{ModeChoice, MtuChoice};

/// The largest MTU of an Ethernet interface in the kernel, bytes: `ETH_MAX_MTU`.
const ETHERNET_MTU: u32 = 65535;
/// The least MTU for IPv4, bytes: RFC 791.
const IPV4_MTU: u32 = 68;
/// The least MTU for IPv6, bytes: RFC 8200, section 5.
const IPV6_MTU: u32 = 1280;

pub(super) fn check(c: &mut Check<'_>) {
    for network in c.draft.networks.all.values() {
        let Some(name) = &network.fabric else { continue };
        let Some(fabric) = c.draft.fabrics.all.get(&name.value) else {
            if !c.draft.fabrics.whole {
                continue;
            }
            let help = c.suggest(name.value.as_str(), names(&c.draft.fabrics.all), "the fabrics are");
            c.faults.push(
                Fault::new(Code::UnknownFabric, name.span, format!("there is no fabric `{}`", name.value))
                    .label("unknown fabric")
                    .help(help),
            );
            continue;
        };
        mode_on_roce(c, network, fabric, &name.value);
        mtu_of_mode(c, network, fabric);
    }
    for network in c.draft.networks.all.values() {
        mtu_of_ip(c, network);
    }
    overlaps(c);
    unused(c);
}

fn mode_on_roce(c: &mut Check<'_>, network: &NetworkDraft, fabric: &FabricDraft, name: &Label) {
    let (Some(mode), Some(transport)) = (&network.mode, &fabric.transport) else { return };
    let (ModeChoice::Insist(insisted), Transport::Roce) = (mode.value, transport.value) else { return };
    c.faults.push(
        Fault::new(
            Code::ModeOnRoce,
            mode.span,
            format!("`{insisted}` is a mode of IPoIB, and fabric `{name}` runs on RoCE"),
        )
        .label("only for InfiniBand")
        .also(transport.span, "the transport")
        .help("remove this line"),
    );
}

fn mtu_of_mode(c: &mut Check<'_>, network: &NetworkDraft, fabric: &FabricDraft) {
    let (Some(mtu), Some(mode), Some(transport)) = (&network.mtu, &network.mode, &fabric.transport) else { return };
    let MtuChoice::Bytes(bytes) = mtu.value else { return };
    let datagram = fabric.mtu.as_ref().map(|fabric_mtu| fabric_mtu.value.bytes() - IPOIB_HEADER_BYTES);
    let (most, what, help) = match (transport.value, mode.value) {
        (Transport::Roce, _) => (ETHERNET_MTU, "an Ethernet interface", "9000 is usual for RoCE".to_owned()),
        (Transport::Infiniband, ModeChoice::Insist(IpoibMode::Datagram)) => {
            let Some(most) = datagram else { return };
            let help = match most {
                2044 => {
                    "datagrams carry the fabric's IB MTU less 4 bytes: `mtu = 4096` in [fabrics.NAME] allows 4092, \
                         connected mode 65520"
                }
                _ => "datagrams carry the fabric's IB MTU less 4 bytes; connected mode carries 65520",
            };
            (most, "datagram mode", help.to_owned())
        }
        (Transport::Infiniband, _) => (
            CONNECTED_MTU,
            "connected mode",
            format!("{CONNECTED_MTU} is the most that the kernel has; \"max\" is the most of the mode in effect"),
        ),
    };
    if bytes <= most {
        return;
    }
    c.faults.push(
        Fault::new(Code::MtuAboveMode, mtu.span, format!("an MTU of {bytes} bytes is more than the {most} of {what}"))
            .label("too large")
            .help(help),
    );
}

fn mtu_of_ip(c: &mut Check<'_>, network: &NetworkDraft) {
    let (Some(mtu), Some(cidr)) = (&network.mtu, &network.cidr) else { return };
    let MtuChoice::Bytes(bytes) = mtu.value else { return };
    let (least, ip) = match cidr.value {
        IpNet::V4(_) => (IPV4_MTU, "IPv4"),
        IpNet::V6(_) => (IPV6_MTU, "IPv6"),
    };
    if bytes >= least {
        return;
    }
    c.faults.push(
        Fault::new(
            Code::MtuBelowIp,
            mtu.span,
            format!("an MTU of {bytes} bytes is less than the {least} that {ip} needs"),
        )
        .label("too small")
        .also(cidr.span, format!("{ip} here"))
        .help("\"max\" is the most that the mode in effect carries"),
    );
}

/// Two networks are apart or one holds the other: in the order of their first
/// addresses, wider first, each that overlaps comes while its holder is the current one.
fn overlaps(c: &mut Check<'_>) {
    let networks = c.draft.networks.all.iter();
    let mut all: Vec<_> = networks.filter_map(|(name, network)| Some((network.cidr.as_ref()?, name))).collect();
    all.sort_by_key(|(cidr, _)| (cidr.value.network(), cidr.value.prefix_len()));
    let mut holder = None;
    for (cidr, name) in all {
        let Some((wide, wide_name)) = holder.replace((cidr, name)) else { continue };
        if !wide.value.contains(&cidr.value) {
            continue;
        }
        holder = Some((wide, wide_name));
        let ((first, first_name), (second, second_name)) =
            if wide.span <= cidr.span { ((wide, wide_name), (cidr, name)) } else { ((cidr, name), (wide, wide_name)) };
        c.faults.push(
            Fault::new(
                Code::OverlappingNetworks,
                second.span,
                format!("networks `{second_name}` and `{first_name}` share addresses"),
            )
            .label(format!("overlaps {}", first.value))
            .also(first.span, format!("network `{first_name}`"))
            .help("each network, and so each rail, needs a range of its own, or the kernel can't tell which port an address is on"),
        );
    }
}

/// Says nothing where a port could not be read or names a network that is not there: it may be this one.
fn unused(c: &mut Check<'_>) {
    let groups = &c.draft.nodes;
    let mut used = BTreeSet::new();
    for port in groups.all.iter().flat_map(|group| &group.ports.all) {
        if !port.networks.whole || !port.networks.all.iter().all(|name| c.draft.networks.all.contains_key(&name.value))
        {
            return;
        }
        used.extend(port.networks.all.iter().map(|name| &name.value));
    }
    if !groups.whole || groups.all.iter().any(|group| !group.ports.whole) {
        return;
    }
    for (name, network) in c.draft.networks.all.iter().filter(|(name, _)| !used.contains(name)) {
        c.faults.push(
            Fault::new(Code::UnusedNetwork, network.at, format!("no port is in network `{name}`"))
                .label("no ports")
                .help(format!("say `network = \"{name}\"` in a [[nodes.ports]], or remove the network")),
        );
    }
}
