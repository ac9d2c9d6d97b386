//! Routes: which links they lead over, and those of a link that somebody made.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;

use super::set::{errno_of, refused};
use super::{Netlink, RequestError};
use crate::machine::MachineError;
use crate::name::IfName;
use crate::state::{Object, Route, State};

impl Netlink {
    /// The numbers of the links that the default routes of the main table lead over.
    pub(crate) fn default_route_links(&self) -> Result<Vec<u32>, MachineError> {
        Ok(self.route_messages()?.iter().filter(|route| is_main_default(route)).flat_map(links_of).collect())
    }

    /// The routes over single links that somebody made, each with the number of its link.
    pub(super) fn routes(&self) -> Result<Vec<(u32, Route)>, MachineError> {
        Ok(self.route_messages()?.iter().filter_map(parse).collect())
    }

    fn route_messages(&self) -> Result<Vec<RouteMessage>, MachineError> {
        let mut routes = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            let found = self.runtime.block_on(self.dump(RouteNetlinkMessage::GetRoute(message)))?;
            routes.extend(found.iter().filter_map(route).cloned());
        }
        Ok(routes)
    }

    /// Puts a route back.
    pub(super) fn add_route(&self, object: &Object, link: &IfName, route: &Route) -> Result<(), MachineError> {
        let refuse = |error| refused(object, &State::Present, error);
        let index = self.link(link).map_err(refuse)?.index;
        // Appended: IPv4 tells routes to one place apart by more than an exclusive request looks at.
        match self.ask(RouteNetlinkMessage::NewRoute(message(index, route)), NLM_F_CREATE | NLM_F_APPEND) {
            Err(error) if errno_of(&error) == Some(Errno::EEXIST) => Ok(()),
            other => other.map_err(refuse),
        }
    }

    /// The number of the link by which `address` is reached; `None` when there is no route to it.
    pub(crate) fn link_towards(&self, address: IpAddr) -> Result<Option<u32>, MachineError> {
        let mut message = RouteMessage::default();
        let (family, bits) = match address {
            IpAddr::V4(_) => (AddressFamily::Inet, 32),
            IpAddr::V6(_) => (AddressFamily::Inet6, 128),
        };
        message.header.address_family = family;
        message.header.destination_prefix_length = bits;
        message.attributes.push(RouteAttribute::Destination(RouteAddress::from(address)));
        match self.request(RouteNetlinkMessage::GetRoute(message), 0) {
            Ok(found) => Ok(found.iter().filter_map(route).flat_map(links_of).next()),
            Err(RequestError::Kernel(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn route(message: &RouteNetlinkMessage) -> Option<&RouteMessage> {
    match message {
        RouteNetlinkMessage::NewRoute(route) => Some(route),
        _ => None,
    }
}

/// A default route of a rail's own table carries that rail only.
fn is_main_default(route: &RouteMessage) -> bool {
    let table = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    route.header.destination_prefix_length == 0
        && table.unwrap_or(route.header.table.into()) == u32::from(RouteHeader::RT_TABLE_MAIN)
}

/// A route over one link that somebody made; not the kernel's own, nor what a router or DHCP server said and says again.
fn parse(route: &RouteMessage) -> Option<(u32, Route)> {
    let header = &route.header;
    let passing = [
        RouteProtocol::Kernel,
        RouteProtocol::IcmpRedirect,
        RouteProtocol::Ra,
        RouteProtocol::Dhcp,
        RouteProtocol::Unspec,
    ];
    if header.kind != RouteType::Unicast
        || passing.contains(&header.protocol)
        || header.flags.contains(RouteFlags::Cloned)
    {
        return None;
    }
    let (mut link, mut to, mut via, mut source, mut metric) = (None, None, None, None, 0);
    let mut table = u32::from(header.table);
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(index) => link = Some(*index),
            RouteAttribute::Destination(address) => to = Some(ip(address)?),
            RouteAttribute::Gateway(address) => via = Some(ip(address)?),
            RouteAttribute::PrefSource(address) => source = Some(ip(address)?),
            RouteAttribute::Priority(priority) => metric = *priority,
            RouteAttribute::Table(number) => table = *number,
            // Those lead elsewhere too, or in a tunnel: what cannot be written down whole is not put back in part.
            RouteAttribute::MultiPath(_) | RouteAttribute::Encap(_) | RouteAttribute::Via(_) => return None,
            _ => {}
        }
    }
    let everywhere: IpAddr = match header.address_family {
        AddressFamily::Inet => [0; 4].into(),
        AddressFamily::Inet6 => [0; 16].into(),
        _ => return None,
    };
    let to = IpNet::new(to.unwrap_or(everywhere), header.destination_prefix_length).ok()?;
    let (protocol, scope) = (header.protocol.into(), header.scope.into());
    let onlink = header.flags.contains(RouteFlags::Onlink);
    Some((link?, Route { to, via, source, table, metric, protocol, scope, onlink }))
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

fn message(link: u32, route: &Route) -> RouteMessage {
    let Route { to, via, source, table, metric, protocol, scope, onlink } = route;
    let mut message = RouteMessage::default();
    let header = &mut message.header;
    header.address_family = if to.addr().is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    header.destination_prefix_length = to.prefix_len();
    header.kind = RouteType::Unicast;
    header.protocol = (*protocol).into();
    header.scope = (*scope).into();
    // The attribute has room for all numbers.
    header.table = u8::try_from(*table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
    if *onlink {
        header.flags |= RouteFlags::Onlink;
    }
    let attributes = &mut message.attributes;
    attributes.extend([RouteAttribute::Oif(link), RouteAttribute::Table(*table)]);
    if to.prefix_len() > 0 {
        attributes.push(RouteAttribute::Destination(RouteAddress::from(to.addr())));
    }
    attributes.extend(via.map(|via| RouteAttribute::Gateway(RouteAddress::from(via))));
    attributes.extend(source.map(|source| RouteAttribute::PrefSource(RouteAddress::from(source))));
    if *metric != 0 {
        attributes.push(RouteAttribute::Priority(*metric));
    }
    message
}

fn links_of(route: &RouteMessage) -> Vec<u32> {
    let mut links = Vec::new();
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(index) => links.push(*index),
            RouteAttribute::MultiPath(hops) => links.extend(hops.iter().map(|hop| hop.interface_index)),
            _ => {}
        }
    }
    links
}
