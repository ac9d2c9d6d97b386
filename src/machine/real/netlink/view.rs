//! From links and addresses to the states of the objects in a scope. Pure.

use std::collections::BTreeMap;

use super::{Address, Link};
use crate::name::IfName;
use crate::rdma::Guid;
use crate::state::{Object, Route, State};
use crate::tag::Tag;

/// The states of what netlink answers for in `scope`, and of all attributes,
/// addresses and routes of each link that is named there.
///
/// What the kernel made for itself, an IPv6 link-local address, is left out
/// unless the scope names it.
pub(super) fn states(
    scope: &[Object],
    links: &[Link],
    addresses: &[Address],
    routes: &[(u32, Route)],
) -> BTreeMap<Object, State> {
    let mut states = BTreeMap::new();
    for object in scope {
        if let Object::Interface { guid } = object {
            states.insert(object.clone(), interface(*guid, links));
        } else if let Object::Child { link, parent, tag } = object {
            states.insert(object.clone(), child(link, parent, *tag, links));
        } else if object.link().is_some() {
            // Whatever the links below do not have is not there.
            states.insert(object.clone(), State::Absent);
        }
    }
    let named = |name: &IfName| scope.iter().any(|object| object.link() == Some(name));
    for link in links.iter().filter(|link| named(&link.name)) {
        states.extend(attributes(link));
        for address in addresses.iter().filter(|address| address.link == link.index) {
            let object = Object::Address { link: link.name.clone(), address: address.net };
            if !address.is_kernels_own() || states.contains_key(&object) {
                states.insert(object, presence(address));
            }
        }
        let on_it = routes.iter().filter(|(index, _)| *index == link.index).map(|(_, route)| route.clone());
        states.extend(
            on_it.map(|route| (Object::Route { link: link.name.clone(), route: Box::new(route) }, State::Present)),
        );
    }
    states
}

fn interface(guid: Guid, links: &[Link]) -> State {
    let own = links.iter().find(|link| link.port_guid() == Some(guid));
    own.map_or(State::Absent, |link| State::Named { name: link.name.clone() })
}

/// Whether a link is the child that it should be. Another one of that name is nobody's to remove.
fn child(name: &IfName, parent: &IfName, tag: Tag, links: &[Link]) -> State {
    let Some(link) = links.iter().find(|link| link.name == *name) else { return State::Absent };
    let on = links.iter().find(|other| Some(other.index) == link.parent);
    if link.tag == Some(tag) && on.is_some_and(|on| on.name == *parent) {
        return State::Present;
    }
    let what = link.tag.map_or("of another kind".to_owned(), |tag| tag.to_string());
    let place = on.map_or(String::new(), |on| format!(" on {}", on.name));
    State::Unknown { why: format!("there is another interface of this name, {what}{place}") }
}

fn attributes(link: &Link) -> Vec<(Object, State)> {
    let name = || link.name.clone();
    let mut found = vec![
        (Object::LinkUp { link: name() }, if link.up { State::Up } else { State::Down }),
        (Object::LinkMtu { link: name() }, State::Mtu { bytes: link.mtu }),
    ];
    if let Some(by) = link.link_local {
        found.push((Object::LinkLocal { link: name() }, State::Made { by }));
    }
    if link.infiniband {
        let unsaid = || State::Unknown { why: "neither netlink nor sysfs says it".to_owned() };
        found.push((Object::LinkMode { link: name() }, link.mode.map_or_else(unsaid, |mode| State::Mode { mode })));
    }
    found
}

fn presence(address: &Address) -> State {
    if address.duplicate {
        State::Unknown { why: "another host has this address: duplicate address detection failed".to_owned() }
    } else {
        State::Present
    }
}
