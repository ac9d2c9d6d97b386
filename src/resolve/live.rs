//! What is to be in the kernel now: modules, names, modes, MTUs, addresses.

use super::port::{Found, Link};
use super::{Port, Resolved};
use crate::plan::Desired;
use crate::rdma::Transport;
use crate::state::{Object, State};

pub(super) fn want(resolved: &Resolved, desired: &mut Desired) {
    for Port { found, links } in &resolved.ports {
        want_name(found, links.first(), desired);
        for link in links {
            want_link(link, desired);
        }
    }
    note_names_of_the_kernel(resolved, desired);
}

fn want_name(found: &Found, link: Option<&Link>, desired: &mut Desired) {
    let Some(pinned) = &found.intent.interface else { return };
    if found.port.transport != Transport::Infiniband {
        return;
    }
    let object = Object::Interface { guid: found.port.guid };
    let wanted = desired.want(object, State::Named { name: pinned.value.clone() }, pinned.origin.to_string());
    wanted.disturbs = link.map(|link| link.current.clone()).into_iter().collect();
}

fn want_link(link: &Link, desired: &mut Desired) {
    let config = &link.config;
    let name = || config.name.value.clone();
    if let Some(on) = &config.on {
        let object = Object::Child { link: name(), parent: on.parent.clone(), tag: on.tag.value };
        desired.want(object, State::Present, on.tag.why.as_str());
    }
    // A mode that the loaded driver cannot do yet would only fail, and the MTU follows the mode.
    if link.waits.is_none() {
        if let Some(mode) = &config.mode {
            desired.want(Object::LinkMode { link: name() }, State::Mode { mode: mode.value }, mode.why.as_str());
        }
        desired.want(Object::LinkMtu { link: name() }, State::Mtu { bytes: config.mtu.value }, config.mtu.why.as_str());
    }
    for address in &config.addresses {
        let object = Object::Address { link: name(), address: address.value };
        desired.want(object, State::Present, address.why.as_str());
        desired.want(Object::LinkUp { link: name() }, State::Up, format!("it carries {}", address.value));
    }
    for (child, _) in &config.children {
        desired.want(Object::LinkUp { link: name() }, State::Up, format!("it carries {child}"));
    }
    desired.notes.extend(link.note.clone());
}

/// Two interfaces whose names are to be swapped at boot race for them, and one loses.
fn note_names_of_the_kernel(resolved: &Resolved, desired: &mut Desired) {
    let from_kernel = |name: &str| {
        name.strip_prefix("ib").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let infiniband = resolved.facts.devices.iter().flat_map(|device| &device.ports);
    if infiniband.filter(|port| port.transport == Transport::Infiniband).count() < 2 {
        return;
    }
    for Port { found, .. } in &resolved.ports {
        let Some(pinned) = &found.intent.interface else { continue };
        if found.port.transport == Transport::Infiniband && from_kernel(pinned.value.as_str()) {
            desired.notes.push(format!(
                "{}: the kernel gives out such names too, and this host has several InfiniBand ports: at boot another one can hold `{}` first and the renaming fail; a name like `ibs1` or `rail0` is safe",
                pinned.origin, pinned.value
            ));
        }
    }
}
