//! Which links routes and addresses are on: asked of the kernel, or of a test.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::machine::MachineError;
use crate::machine::real::netlink::{Address, Link, Netlink, runtime};
use crate::name::IfName;

/// Answers to where packets go.
pub(super) trait Network {
    /// The links of the default routes.
    fn default_route_links(&self) -> Vec<IfName>;
    /// The link that has `address`.
    fn holding(&self, address: IpAddr) -> Option<IfName>;
    /// The addresses of `link`, but the link-local ones.
    fn of(&self, link: &IfName) -> Vec<IpNet>;
    /// The link by which `address` is reached.
    fn towards(&self, address: IpAddr) -> Option<IfName>;
    /// The links that `link` lies on: the ports of a bond or bridge, a VLAN's or P_Key child's parent.
    fn below(&self, link: &IfName) -> Vec<IfName>;
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// The kernel's answers.
pub(super) struct LiveNetwork {
    netlink: Netlink,
    links: Vec<Link>,
    addresses: Vec<Address>,
    default_routes: Vec<u32>,
}

impl LiveNetwork {
    /// Reads links, addresses and default routes.
    pub(super) fn open() -> Result<Self, MachineError> {
        let netlink = Netlink::open(Arc::new(runtime()?))?;
        let (links, addresses) = (netlink.links()?, netlink.addresses()?);
        let default_routes = netlink.default_route_links()?;
        Ok(Self { netlink, links, addresses, default_routes })
    }

    fn name(&self, index: u32) -> Option<IfName> {
        self.links.iter().find(|link| link.index == index).map(|link| link.name.clone())
    }
}

impl Network for LiveNetwork {
    fn default_route_links(&self) -> Vec<IfName> {
        let names: BTreeSet<IfName> = self.default_routes.iter().filter_map(|index| self.name(*index)).collect();
        names.into_iter().collect()
    }

    fn holding(&self, address: IpAddr) -> Option<IfName> {
        self.addresses.iter().find(|held| held.net.addr() == address).and_then(|held| self.name(held.link))
    }

    fn of(&self, name: &IfName) -> Vec<IpNet> {
        let Some(link) = self.links.iter().find(|link| link.name == *name) else { return Vec::new() };
        let on_it = self.addresses.iter().filter(|held| held.link == link.index).map(|held| held.net);
        on_it.filter(|net| !is_link_local(net.addr())).collect()
    }

    fn towards(&self, address: IpAddr) -> Option<IfName> {
        // An address without a route has no link; that the kernel fails to say so is no reason to stop.
        self.netlink.link_towards(address).ok().flatten().and_then(|index| self.name(index))
    }

    fn below(&self, name: &IfName) -> Vec<IfName> {
        let Some(link) = self.links.iter().find(|link| link.name == *name) else { return Vec::new() };
        let lies_on = |other: &&Link| other.controller == Some(link.index) || link.parent == Some(other.index);
        self.links.iter().filter(lies_on).map(|other| other.name.clone()).collect()
    }
}
