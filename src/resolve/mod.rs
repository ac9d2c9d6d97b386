//! From what the spec asks of a host to the state that is to be, with the
//! host's facts.
//!
//! An [`Intent`] and [`Facts`] come in; the [`Desired`] state goes out,
//! persistent files included, or every fault at once. What only a later look at
//! the host can tell (an interface that its driver has not made yet) is in
//! `deferred`: the caller gathers facts again and resolves again. Nothing here
//! looks at the host itself.

mod config;
mod fault;
mod files;
mod image;
mod live;
mod manager;
mod port;
mod sysctl;

pub use fault::{ResolveFault, ResolveFaults};
pub use image::resolve_image;

use std::collections::BTreeMap;

use ipnet::IpNet;

use crate::facts::{ConfigEvidence, Device, Facts, Netdev, PortFacts};
use crate::intent::{Intent, Origin, PortIntent, Sourced};
use crate::name::IfName;
use crate::plan::{Deferred, Desired};
use crate::spec::ConfigChoice;
use crate::state::{Object, Owned};
use config::Keeper;
use port::{Found, Link};

/// What was found out of the host before anything is wanted of it.
struct Resolved<'a> {
    intent: &'a Intent,
    facts: &'a Facts,
    keeper: Keeper,
    ports: Vec<Port<'a>>,
}

/// A port with its interfaces, its own first; none as long as its driver has not made that.
struct Port<'a> {
    found: Found<'a>,
    links: Vec<Link>,
}

impl Port<'_> {
    fn own(&self) -> Option<&Link> {
        self.links.first()
    }
}

/// The state that `intent` asks of the host with these facts.
///
/// # Errors
/// Everything that stands in the way, at once.
pub fn resolve(intent: &Intent, facts: &Facts) -> Result<Desired, ResolveFaults> {
    let mut faults = Vec::new();
    let ports = ports(intent, facts, &mut faults);
    let keeper = config::keeper(&intent.config, &facts.config).map_err(|fault| faults.push(fault)).ok();
    let mut desired = Desired::default();
    // Without a keeper the files that do not depend on it are still tried, for the faults in them.
    let resolved = Resolved { intent, facts, keeper: keeper.unwrap_or(Keeper::Networkd), ports };
    live::want(&resolved, &mut desired);
    sysctl::want(&resolved, &mut desired, &mut faults);
    files::want(&resolved, &mut desired, &mut faults);
    manager::want(&resolved, &mut desired, &mut faults);
    defer(&resolved, &mut desired);
    if faults.is_empty() { Ok(desired) } else { Err(ResolveFaults { host: intent.host.clone(), faults }) }
}

/// What keeps the configuration where the spec leaves that to the host (`config = "auto"`), as its users call it; `None`
/// where nothing does that files are written for.
#[must_use]
pub fn keeper_at_work(evidence: &ConfigEvidence) -> Option<&'static str> {
    let origin = Origin { table: "[[nodes]]".into(), entry: "config = \"auto\"".into() };
    config::keeper(&Sourced { value: ConfigChoice::Auto, origin }, evidence).ok().map(Keeper::shown)
}

/// The port of the host that `intent` selects.
///
/// # Errors
/// When the host has no such port, or it is of another transport.
pub fn select<'a>(intent: &'a PortIntent, facts: &'a Facts) -> Result<(&'a Device, &'a PortFacts), ResolveFault> {
    Found::find(intent, facts).map(|found| (found.device, found.port))
}

/// Addresses on links of the spec that are not in the spec, and that selvedge did not make: they stay, and the reader
/// should know of them.
#[must_use]
pub fn strangers(desired: &Desired, owned: &Owned, facts: &Facts) -> Vec<String> {
    let netdevs = facts.devices.iter().flat_map(|device| &device.ports).filter_map(|port| port.netdev.as_ref());
    let of_link = |netdev: &Netdev| {
        let link = netdev.name.clone();
        if !desired.items.contains_key(&Object::LinkUp { link: link.clone() }) {
            return Vec::new();
        }
        let object = |address: &IpNet| Object::Address { link: link.clone(), address: *address };
        let known = |object: &Object| desired.items.contains_key(object) || owned.0.contains_key(object);
        let strange = netdev.addresses.iter().filter(|address| !known(&object(address)));
        strange
            .map(|address| {
                format!("{link} also has {address}, which the spec does not name and selvedge did not make: it stays")
            })
            .collect()
    };
    netdevs.flat_map(of_link).collect()
}

fn ports<'a>(intent: &'a Intent, facts: &'a Facts, faults: &mut Vec<ResolveFault>) -> Vec<Port<'a>> {
    let option_asked = turns_enhanced_off(intent);
    let mut ports: Vec<Port> = Vec::new();
    for port in &intent.ports {
        let found = match Found::find(port, facts) {
            Ok(found) => found,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        let same = |other: &&Port| {
            other.found.device.name == found.device.name && other.found.port.number == found.port.number
        };
        if let Some(first) = ports.iter().find(same) {
            faults.push(ResolveFault::SamePort {
                origin: port.device.origin.clone(),
                first: first.found.intent.device.origin.clone(),
                device: found.device.name.clone(),
                port: found.port.number,
            });
            continue;
        }
        match found.links(option_asked, &facts.kernel) {
            Ok(links) => ports.push(Port { found, links }),
            Err(fault) => faults.push(fault),
        }
    }
    faults.extend(same_name(&ports));
    ports
}

/// Two interfaces that would have one name: one pinned and one that the kernel named, say.
fn same_name(ports: &[Port]) -> Option<ResolveFault> {
    let mut seen: BTreeMap<&IfName, &Link> = BTreeMap::new();
    for link in ports.iter().flat_map(|port| &port.links) {
        let name = &link.config.name;
        if let Some(first) = seen.insert(&name.value, link) {
            return Some(ResolveFault::SameName {
                name: name.value.clone(),
                one: first.config.name.why.clone(),
                other: name.why.clone(),
            });
        }
    }
    None
}

/// Whether the spec has the vendor drivers' option that brings connected mode back.
fn turns_enhanced_off(intent: &Intent) -> bool {
    let option = intent.modules.get("ib_ipoib").and_then(|options| options.get("ipoib_enhanced"));
    option.is_some_and(|value| matches!(value.0.as_str(), "0" | "N" | "n"))
}

fn defer(resolved: &Resolved, desired: &mut Desired) {
    for Port { found, links } in &resolved.ports {
        if links.is_empty() {
            let addresses: Vec<String> = found.intent.addresses().map(|one| one.address.value.to_string()).collect();
            desired.deferred.push(Deferred {
                what: format!(
                    "mode, MTU, {} {} and persistent configuration of {}",
                    if addresses.len() == 1 { "address" } else { "addresses" },
                    addresses.join(", "),
                    found.name()
                ),
                until: "the port has a network interface, which ib_ipoib makes when it is loaded".to_owned(),
            });
        }
        for link in links {
            if let Some(waits) = &link.waits {
                let what = format!("IPoIB mode and MTU of {}", link.config.name.value);
                desired.deferred.push(Deferred { what, until: waits.clone() });
            }
        }
    }
}
