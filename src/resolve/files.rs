//! What is to be on disk: what a reboot makes the host from.

use std::collections::BTreeSet;

use ipnet::IpNet;

use super::config::{IfcfgReader, Keeper};
use super::port::Link;
use super::{ResolveFault, Resolved};
use crate::name::{IfName, ModuleName};
use crate::plan::Desired;
use crate::rdma::{IpoibMode, Transport};
use crate::render::modules::{self, Load};
use crate::render::netplan::{self, Renderer};
use crate::render::udev::{self, ChildRule, PortRule};
use crate::render::{
    self, Chosen, File, LinkConfig, RenderError, ifcfg, ifcfg_suse, keyfile, limits, networkd, recover,
};
use crate::spec::ConfigChoice;
use crate::state::{Object, State};

/// What becomes of a changed file under initscripts.
const NOTE_INITSCRIPTS: &str = "initscripts reads an ifcfg file when it brings the link up: nothing is restarted, the live link is set as the file says, and NetworkManager is told only where it runs";

/// What becomes of a changed file under wicked.
const NOTE_WICKED: &str = "wicked reads an ifcfg file when it brings the link up: nothing is restarted, the live link is set as the file says, and `wicked ifstatus` may call its configuration changed until the next boot or `wicked ifreload`, which can take the link down";

type Part = fn(&Resolved, &mut Desired) -> Result<(), ResolveFault>;

pub(super) fn want(resolved: &Resolved, desired: &mut Desired, faults: &mut Vec<ResolveFault>) {
    let parts: [Part; 6] = [want_recovery, want_memlock, want_modules, want_rules, not_overridden, want_config];
    for part in parts {
        if let Err(fault) = part(resolved, desired) {
            faults.push(fault);
        }
    }
}

/// Adds a file to what is wanted.
pub(super) fn want_file(desired: &mut Desired, file: File, reason: impl Into<String>, disturbs: BTreeSet<IfName>) {
    let digest = desired.blobs.insert(file.content.into_bytes());
    let state = State::File { digest, mode: file.mode };
    desired.want(Object::File { path: file.path }, state, reason).disturbs = disturbs;
}

/// Adds the symbolic link that enables a unit.
pub(super) fn want_enabled(
    desired: &mut Desired,
    link: &str,
    target: &str,
    reason: impl Into<String>,
) -> Result<(), RenderError> {
    let object = Object::File { path: link.parse()? };
    desired.want(object, State::Symlink { target: target.to_owned() }, reason);
    Ok(())
}

fn want_recovery(resolved: &Resolved, desired: &mut Desired) -> Result<(), ResolveFault> {
    let reason = "an apply that a crash or power cut interrupts is undone at the next boot, before the network starts";
    let Some(selvedge) = &resolved.facts.programs.selvedge else {
        let (wanted_by, program, package) = (format!("{}: {reason}", recover::PATH), "selvedge", "selvedge");
        return Err(ResolveFault::NoProgram { wanted_by, program, package });
    };
    want_file(desired, recover::file(selvedge, &render::header(resolved.intent))?, reason, BTreeSet::new());
    want_enabled(desired, recover::ENABLEMENT, recover::PATH, reason)?;
    let lasting = ["/usr/", "/opt/", "/bin/", "/sbin/"];
    if !lasting.iter().any(|folder| selvedge.as_str().starts_with(folder)) {
        desired.notes.push(format!(
            "the recovery at boot runs {selvedge}: it has to be there, on a local file system, at the next boot"
        ));
    }
    Ok(())
}

fn want_memlock(resolved: &Resolved, desired: &mut Desired) -> Result<(), ResolveFault> {
    let memlock = &resolved.intent.memlock;
    for unit in &memlock.value {
        let reason = format!("{}: jobs of {unit} register memory for RDMA", memlock.origin);
        want_file(
            desired,
            limits::memlock_file(unit, &render::header(resolved.intent))?,
            reason.as_str(),
            BTreeSet::new(),
        );
        if ["ssh.service", "sshd.service"].contains(&unit.as_str()) {
            want_file(desired, limits::sessions_file(&render::header(resolved.intent))?, reason, BTreeSet::new());
        }
    }
    Ok(())
}

fn want_modules(resolved: &Resolved, desired: &mut Desired) -> Result<(), ResolveFault> {
    let header = render::header(resolved.intent);
    let loads = loads(resolved);
    for load in &loads {
        desired.want(Object::Module { name: load.name.clone() }, State::Present, load.why.as_str());
    }
    if !loads.is_empty() {
        want_file(
            desired,
            modules::load_file(&loads, &header)?,
            "the modules of RDMA are there at boot",
            BTreeSet::new(),
        );
    }
    let options = &resolved.intent.modules;
    if options.values().any(|parameters| !parameters.is_empty()) {
        let names: Vec<String> = options.keys().map(|name| format!("[modules.{name}]")).collect();
        want_file(desired, modules::options_file(options, &header)?, names.join(", "), BTreeSet::new());
        desired.notes.push(format!(
            "{}: an option takes effect when its module is loaded the next time; one that the initramfs loads needs that rebuilt too",
            names.join(", ")
        ));
    }
    Ok(())
}

/// The modules to load, each with what for.
fn loads(resolved: &Resolved) -> Vec<Load> {
    let mut loads = Vec::new();
    let mut load = |name: &str, why: &str| {
        if let Ok(name) = name.parse::<ModuleName>() {
            loads.push(Load { name, why: why.to_owned() });
        }
    };
    let is_infiniband = |transport: Transport| transport == Transport::Infiniband;
    if resolved.ports.iter().any(|port| is_infiniband(port.found.port.transport)) {
        load("ib_ipoib", "IP over InfiniBand: makes the network interfaces of the ports");
    }
    if !resolved.intent.managers.is_empty() {
        load("ib_umad", "management datagrams: what the subnet manager speaks through");
    }
    if !resolved.ports.is_empty() {
        load("ib_uverbs", "RDMA from user space: what applications and `selvedge verify` use");
        load("rdma_ucm", "RDMA connections by IP address from user space");
    }
    loads
}

fn want_rules(resolved: &Resolved, desired: &mut Desired) -> Result<(), ResolveFault> {
    let mut rules = Vec::new();
    let mut reasons = BTreeSet::new();
    let mut provisional = false;
    for port in &resolved.ports {
        let (found, link) = (&port.found, port.own());
        if found.port.transport != Transport::Infiniband {
            continue;
        }
        let named = found.intent.interface.as_ref();
        let name = named.map(|name| render::Chosen { value: name.value.clone(), why: name.origin.to_string() });
        // Whether the port can do a mode is known once it has an interface.
        provisional |= link.is_none();
        let mode = link.and_then(|link| link.config.mode.clone());
        let asked = found.intent.links.first().map(|own| own.mode.origin.to_string());
        reasons.extend(named.map(|name| name.origin.to_string()));
        reasons.extend(mode.as_ref().and(asked));
        if name.is_some() || mode.is_some() {
            rules.push(PortRule { guid: found.port.guid, name, mode });
        }
    }
    // A new child is in datagram mode.
    let connected = |mode: &Chosen<IpoibMode>| mode.value == IpoibMode::Connected;
    let children = resolved.ports.iter().flat_map(|port| &port.links).filter(|link| link.config.on.is_some());
    let child = |link: &Link| {
        let mode = link.config.mode.clone().filter(connected)?;
        Some(ChildRule { name: link.config.name.value.clone(), mode })
    };
    let children: Vec<ChildRule> = children.filter_map(child).collect();
    if rules.is_empty() && children.is_empty() {
        return Ok(());
    }
    let Some(ip) = &resolved.facts.programs.ip else {
        let wanted_by = "the udev rule that sets the IPoIB mode".to_owned();
        return Err(ResolveFault::NoProgram { wanted_by, program: "ip", package: "iproute2 (iproute on RHEL)" });
    };
    let reason = reasons.into_iter().collect::<Vec<_>>().join(", ");
    let file = udev::file(&rules, &children, ip, &render::header(resolved.intent))?;
    let object = Object::File { path: file.path.clone() };
    want_file(desired, file, reason, BTreeSet::new());
    if let Some(wanted) = desired.items.get_mut(&object) {
        wanted.provisional = provisional;
    }
    Ok(())
}

/// networkd takes the first file whose name sorts first and that matches a link, and no other.
fn not_overridden(resolved: &Resolved, _: &mut Desired) -> Result<(), ResolveFault> {
    for port in &resolved.ports {
        let (Some(link), Some(netdev)) = (port.own(), &port.found.port.netdev) else { continue };
        let Some(file) = &netdev.networkd_file else { continue };
        let Some(ours) = resolved.keeper.networkd_file_name(&link.config.name.value) else { continue };
        if file.as_str().rsplit('/').next().is_some_and(|name| name < ours.as_str()) {
            let origin = resolved.intent.config.origin.clone();
            return Err(ResolveFault::Overridden { origin, link: netdev.name.clone(), file: file.clone(), ours });
        }
    }
    Ok(())
}

fn want_config(resolved: &Resolved, desired: &mut Desired) -> Result<(), ResolveFault> {
    let links: Vec<&Link> = resolved.ports.iter().flat_map(|port| &port.links).collect();
    note_unpinned(resolved, desired);
    if links.is_empty() {
        return Ok(());
    }
    let header = render::header(resolved.intent);
    let mut want_of = |link: &Link, files: Vec<File>| {
        for file in files {
            want_file(desired, file, reason(resolved, &[link]), [link.config.name.value.clone()].into());
        }
    };
    match resolved.keeper {
        Keeper::Networkd => {
            for link in links {
                want_of(link, networkd::files(&link.config, &header)?);
            }
        }
        Keeper::NetworkManager => {
            for link in links {
                want_of(link, keyfile::files(&link.config, resolved.intent.cluster.as_str(), &header)?.to_vec());
            }
        }
        Keeper::Ifcfg(reader) => want_ifcfg(resolved, desired, reader, &links)?,
        Keeper::Wicked => {
            for link in links {
                want_of(link, vec![ifcfg_suse::file(&link.config, &header)?]);
            }
            desired.notes.push(NOTE_WICKED.to_owned());
        }
        Keeper::Netplan(renderer) => {
            // It knows no P_Key children, and those of its renderer can be written beside its file.
            let (own, children): (Vec<&Link>, Vec<&Link>) =
                links.into_iter().partition(|link| link.config.on.is_none());
            for link in children {
                want_of(
                    link,
                    match renderer {
                        Renderer::Networkd => networkd::files(&link.config, &header)?,
                        Renderer::NetworkManager => {
                            keyfile::files(&link.config, resolved.intent.cluster.as_str(), &header)?.to_vec()
                        }
                    },
                );
            }
            for link in &own {
                let name = &link.config.name.value;
                let beside = match renderer {
                    Renderer::Networkd => networkd::drop_in(&link.config, &netplan::networkd_file_name(name), &header)?,
                    Renderer::NetworkManager => Some(keyfile::device_file(&link.config, &header)?),
                };
                want_of(link, beside.into_iter().collect());
            }
            if renderer == Renderer::NetworkManager {
                own.iter().for_each(|link| note_link_local(&link.config, desired));
            }
            let configs: Vec<&LinkConfig> = own.iter().map(|link| &link.config).collect();
            let file = netplan::file(&configs, renderer, &header)?;
            let object = Object::File { path: file.path.clone() };
            want_file(
                desired,
                file,
                reason(resolved, &own),
                own.iter().map(|link| link.config.name.value.clone()).collect(),
            );
            if let Some(wanted) = desired.items.get_mut(&object) {
                wanted.provisional = own.len() < resolved.ports.len();
            }
        }
    }
    Ok(())
}

fn want_ifcfg(
    resolved: &Resolved,
    desired: &mut Desired,
    reader: IfcfgReader,
    links: &[&Link],
) -> Result<(), ResolveFault> {
    let header = render::header(resolved.intent);
    for link in links {
        let config = &link.config;
        let mut files = vec![ifcfg::file(config, resolved.intent.cluster.as_str(), &header)?];
        match reader {
            IfcfgReader::NetworkManager => files.push(keyfile::device_file(config, &header)?),
            IfcfgReader::Initscripts => not_cut(config)?,
        }
        for file in files {
            want_file(desired, file, reason(resolved, &[link]), [config.name.value.clone()].into());
        }
    }
    if reader == IfcfgReader::Initscripts {
        desired.notes.push(NOTE_INITSCRIPTS.to_owned());
    }
    Ok(())
}

/// What initscripts would make something else of at the next boot.
fn not_cut(config: &LinkConfig) -> Result<(), ResolveFault> {
    let datagram = config.mode.as_ref().is_some_and(|mode| mode.value == IpoibMode::Datagram);
    if datagram && config.mtu.value > ifcfg::INITSCRIPTS_DATAGRAM_MTU {
        let (link, mtu) = (config.name.value.clone(), config.mtu.value);
        return Err(ResolveFault::MtuCut { why: config.mtu.why.clone(), link, mtu });
    }
    Ok(())
}

fn note_link_local(config: &LinkConfig, desired: &mut Desired) {
    if config.addresses.iter().all(|address| matches!(address.value, IpNet::V6(_))) {
        let link = &config.name.value;
        desired.notes.push(format!(
            "netplan has NetworkManager give {link}, which has no address of IPv4, one of 169.254.0.0/16: it cannot be told otherwise"
        ));
    }
}

fn reason(resolved: &Resolved, links: &[&Link]) -> String {
    let names: Vec<&str> = links.iter().map(|link| link.config.name.value.as_str()).collect();
    let keeper = match resolved.intent.config.value {
        ConfigChoice::Auto => format!("{}, which is in use here, ", resolved.keeper.shown()),
        _ => String::new(),
    };
    format!("{}: {keeper}keeps {} over a reboot", resolved.intent.config.origin, names.join(", "))
}

fn note_unpinned(resolved: &Resolved, desired: &mut Desired) {
    for port in &resolved.ports {
        let (found, link) = (&port.found, port.own());
        // Ethernet names are not ours to pin, and the distribution's are made from the slot.
        if found.port.transport != Transport::Infiniband {
            continue;
        }
        if let (None, Some(link)) = (&found.intent.interface, link) {
            desired.notes.push(format!(
                "{} keeps the kernel's name `{}`, and the files find it by that: `interface` in [[nodes.ports]] pins one",
                found.name(),
                link.config.name.value
            ));
        }
    }
}
