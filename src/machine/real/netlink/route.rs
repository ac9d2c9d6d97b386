//! Which links routes lead over: read only, for the facts of a host.

use std::net::IpAddr;

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteHeader, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Netlink, RequestError};
use crate::machine::MachineError;

impl Netlink {
    /// The numbers of the links that the default routes of the main table lead over.
    pub(crate) fn default_route_links(&self) -> Result<Vec<u32>, MachineError> {
        let mut links = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            let found = self.runtime.block_on(self.dump(RouteNetlinkMessage::GetRoute(message)))?;
            links.extend(found.iter().filter_map(route).filter(|route| is_main_default(route)).flat_map(links_of));
        }
        Ok(links)
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
