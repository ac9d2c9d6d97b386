//! An IP address of a link as the kernel describes it.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};

/// An IP address on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The number of its link.
    pub(crate) link: u32,
    /// The address with its prefix length.
    pub(crate) net: IpNet,
    /// It is a secondary of its subnet: the kernel takes it away together with the primary.
    pub(crate) secondary: bool,
    /// Another host has it: duplicate address detection failed.
    pub(crate) duplicate: bool,
}

impl Address {
    /// Reads a message; `None` for what is no IP address.
    pub(super) fn parse(message: &AddressMessage) -> Option<Self> {
        let (mut local, mut address) = (None, None);
        // The header has room for the first eight flags, the attribute for all: it wins.
        let mut flags = AddressFlags::from_bits_retain(message.header.flags.bits().into());
        for attribute in &message.attributes {
            match attribute {
                AddressAttribute::Local(ip) => local = Some(*ip),
                AddressAttribute::Address(ip) => address = Some(*ip),
                AddressAttribute::Flags(all) => flags = *all,
                _ => {}
            }
        }
        // On a point-to-point link `Address` is the peer's.
        let ip: IpAddr = local.or(address)?;
        Some(Self {
            link: message.header.index,
            net: IpNet::new(ip, message.header.prefix_len).ok()?,
            // IFA_F_SECONDARY and IFA_F_TEMPORARY (of an IPv6 privacy address) are one bit.
            secondary: flags.contains(AddressFlags::Secondary) && ip.is_ipv4(),
            duplicate: flags.contains(AddressFlags::Dadfailed),
        })
    }

    /// The address that the kernel gives to each link for IPv6's own use.
    ///
    /// Kernels before 5.18 do not say who made an address, so its form must do.
    pub(super) fn is_kernels_own(&self) -> bool {
        matches!(self.net, IpNet::V6(net) if net.prefix_len() == 64 && net.addr().segments()[..4] == [0xfe80, 0, 0, 0])
    }
}
