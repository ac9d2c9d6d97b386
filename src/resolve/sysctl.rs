//! The kernel's network settings that several ports on one fabric, and many hosts on one network, need.
//!
//! All of it follows from the spec. `rp_filter` is left as it is: each port has a network of its own, so an answer
//! leaves by the port that the question came by, and the strict check of RFC 3704 takes it. Advice to loosen it (2,
//! libfabric's page on several NICs) is for ports in one subnet, which `check` refuses; Oracle asks for 0 or 2 on any
//! several private interconnects, and a host whose traffic crosses rails would need that.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::files::want_file;
use super::port::Link;
use super::{ResolveFault, Resolved};
use crate::intent::PortIntent;
use crate::name::Label;
use crate::plan::Desired;
use crate::render;
use crate::render::limits::{self, Setting};
use crate::state::{IpFamily, LinkSetting, Object, State, SysctlKey};
use crate::tag::Tag;

/// From so many neighbours on the kernel drops those that were not used for 5 seconds: `gc_thresh2` of arp(7).
const DEFAULT_THRESHOLD: usize = 512;

pub(super) fn want(resolved: &Resolved, desired: &mut Desired, faults: &mut Vec<ResolveFault>) {
    let mut settings = arp(resolved);
    settings.extend(neighbours(resolved));
    if settings.is_empty() {
        return;
    }
    for Setting { key, value, why } in &settings {
        let state = State::Value { text: value.to_string() };
        desired.want(Object::Sysctl { key: key.clone() }, state, why.as_str());
    }
    match limits::sysctl_file(&settings, &render::header(resolved.intent)) {
        Ok(file) => {
            let object = Object::File { path: file.path.clone() };
            want_file(
                desired,
                file,
                "these settings are there after a reboot, and when a link appears",
                BTreeSet::new(),
            );
            if let Some(wanted) = desired.items.get_mut(&object) {
                wanted.provisional = resolved.ports.iter().any(|port| port.links.is_empty());
            }
        }
        Err(error) => faults.push(error.into()),
    }
}

/// By default Linux answers an ARP request for any of its addresses on any port that hears it, and asks with any of
/// its addresses: where two ports hear each other's requests, in one partition or VLAN of a fabric, an address is found at the wrong port. `arp_ignore` 1
/// answers for the port's own addresses alone, `arp_announce` 2 asks with the port's own (ip-sysctl.rst of the
/// kernel). The larger of this and `conf/all` counts. RDMA connections by address fail otherwise.
fn arp(resolved: &Resolved) -> Vec<Setting> {
    let is_ipv4 = |address: &IpNet| matches!(address, IpNet::V4(_));
    let intents = resolved.intent.ports.iter().flat_map(|port| port.links.iter().map(move |link| (port, link)));
    let mut heard: BTreeMap<(&Label, Option<Tag>), usize> = BTreeMap::new();
    for (port, link) in intents.filter(|(_, link)| link.addresses.iter().any(|one| is_ipv4(&one.address.value))) {
        *heard.entry((&port.fabric, link.tag.as_ref().map(|tag| tag.value))).or_default() += 1;
    }
    let of_link = |port: &PortIntent, link: &Link| {
        let name = &link.config.name.value;
        let tag = link.config.on.as_ref().map(|on| on.tag.value);
        let count = heard.get(&(&port.fabric, tag)).copied().unwrap_or_default();
        if count < 2 || !link.config.addresses.iter().any(|one| is_ipv4(&one.value)) {
            return Vec::new();
        }
        let place = tag.map_or(String::new(), |tag| format!("{tag} of "));
        let why = format!(
            "{count} ports of this host are on {place}the fabric {}: each answers for its own address alone",
            port.fabric
        );
        let settings = [(LinkSetting::ArpIgnore, 1), (LinkSetting::ArpAnnounce, 2)];
        let setting =
            |(setting, value)| Setting { key: SysctlKey::of_ipv4_link(name, setting), value, why: why.clone() };
        settings.map(setting).to_vec()
    };
    let ports = resolved.ports.iter();
    ports.flat_map(|port| port.links.iter().flat_map(|link| of_link(port.found.intent, link))).collect()
}

/// The neighbour tables hold an entry for each host on each network of this one, and are the whole host's.
///
/// Rule: where the spec has more neighbours than `gc_thresh2` is by default (512; arp(7), ip-sysctl.rst), `gc_thresh1`,
/// below which nothing is dropped, is the next power of two, so that one more host changes no file; `gc_thresh2` is
/// twice and `gc_thresh3`, the most there can be, four times that, for what the spec does not know of.
fn neighbours(resolved: &Resolved) -> Vec<Setting> {
    let mut counts: BTreeMap<IpFamily, usize> = BTreeMap::new();
    for one in resolved.intent.ports.iter().flat_map(PortIntent::addresses) {
        let family = match one.address.value {
            IpNet::V4(_) => IpFamily::V4,
            IpNet::V6(_) => IpFamily::V6,
        };
        *counts.entry(family).or_default() += one.hosts.saturating_sub(1);
    }
    let large = counts.into_iter().filter(|(_, count)| *count > DEFAULT_THRESHOLD);
    let of_family = |(family, count): (IpFamily, usize)| {
        let least = u64::try_from(count).unwrap_or(u64::MAX >> 3).next_power_of_two();
        let why = format!(
            "up to {least} hosts on the networks of this host: by default the kernel drops neighbours beyond {DEFAULT_THRESHOLD}"
        );
        [(1, 1), (2, 2), (3, 4)].map(|(threshold, times)| Setting {
            key: SysctlKey::of_neighbours(family, threshold),
            value: least.saturating_mul(times),
            why: why.clone(),
        })
    };
    large.flat_map(of_family).collect()
}
