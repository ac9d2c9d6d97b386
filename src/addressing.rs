//! A host's number, and its address in a network.
//!
//! Names, lists and networks come in; numbers and addresses go out. The
//! checks and `compile` both count here, so that what was checked is what is
//! configured.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use thiserror::Error;

use crate::name::HostName;
use crate::spec::{Network, NodeGroup, Numbering};

/// Why a host has no address in a network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AddressError {
    /// Not a host of the group.
    #[error("{host} is not in {hosts}")]
    NotInGroup {
        /// The host.
        host: HostName,
        /// The group's list.
        hosts: String,
    },
    /// No digits in its name, or more than a number may have.
    #[error("the name of {host} has no number of up to 18 digits, which its address is made of")]
    NoNumber {
        /// The host.
        host: HostName,
    },
    /// Base + 0, or before.
    #[error("number {number} in {cidr} is not after the network's own address")]
    NotAfterBase {
        /// The host's number.
        number: i128,
        /// The network.
        cidr: IpNet,
    },
    /// The last address of an IPv4 network.
    #[error("number {number} in {cidr} is the broadcast address")]
    Broadcast {
        /// The host's number.
        number: i128,
        /// The network.
        cidr: IpNet,
    },
    /// Beyond the network.
    #[error("number {number} is beyond {cidr}, whose last host has number {last}")]
    Beyond {
        /// The host's number.
        number: i128,
        /// The network.
        cidr: IpNet,
        /// The largest number.
        last: u128,
    },
}

/// The last number in a host's name: 17 in `gpu017`, 16 in `rack1-n16`.
///
/// Of a name with a domain only the part before the first dot counts: the 2 in
/// `gpu017.site2.example` is the same for all hosts. `None` without digits, or
/// with more than 18 in a row.
#[must_use]
pub fn number_in_name(host: &str) -> Option<u64> {
    let name = host.split('.').next()?;
    let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
    let before = name.get(..end)?;
    let start = before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |last| last + 1);
    let digits = before.get(start..)?;
    if digits.len() > 18 { None } else { digits.parse().ok() }
}

/// The number of a host, stride × own number + offset: `position` is its index in its group's list, from 0.
///
/// Both have at most 18 digits, so that no product comes near 128 bits. It may be below zero with a negative offset.
/// `None` if it comes from a name that has none.
#[must_use]
pub fn number(host: &str, position: usize, numbering: Numbering, stride: i64, offset: i64) -> Option<i128> {
    let own = match numbering {
        Numbering::Name => i128::from(number_in_name(host)?),
        // A list has at most a million hosts.
        Numbering::Position => position as i128 + 1,
    };
    Some(own * i128::from(stride) + i128::from(offset))
}

/// The number of a host of a group.
///
/// # Errors
/// When the host is not in the group, or its name has no number.
pub fn host_number(group: &NodeGroup, host: &HostName) -> Result<i128, AddressError> {
    let Some(position) = group.hosts.position(host) else {
        return Err(AddressError::NotInGroup { host: host.clone(), hosts: group.hosts.to_string() });
    };
    number(host.as_str(), position, group.numbering, group.stride, group.offset)
        .ok_or_else(|| AddressError::NoNumber { host: host.clone() })
}

/// The address of a host in a network, with the network's prefix length.
///
/// # Errors
/// When the host has no number, or its number no place in the network.
pub fn address(network: &Network, group: &NodeGroup, host: &HostName) -> Result<IpNet, AddressError> {
    address_of_number(network.cidr, host_number(group, host)?)
}

/// The smallest and largest number that a host of a network may have.
///
/// 0 is the network's own address (IPv6: the subnet-router anycast address, RFC
/// 4291), and the last one of IPv4 is the broadcast address, save in networks of
/// two addresses (RFC 3021, RFC 6164) or of one.
#[must_use]
pub fn usable_numbers(cidr: &IpNet) -> (u128, u128) {
    let host_bits = u32::from(cidr.max_prefix_len() - cidr.prefix_len());
    let all = 1u128.checked_shl(host_bits).map_or(u128::MAX, |size| size - 1);
    match (cidr, host_bits) {
        (_, 0 | 1) => (0, all),
        (IpNet::V4(_), _) => (1, all - 1),
        (IpNet::V6(_), _) => (1, all),
    }
}

/// Base + number, with the network's prefix length.
///
/// # Errors
/// When that is no address for a host.
pub fn address_of_number(cidr: IpNet, number: i128) -> Result<IpNet, AddressError> {
    let (first, last) = usable_numbers(&cidr);
    let beyond = || AddressError::Beyond { number, cidr, last };
    let Some(distance) = u128::try_from(number).ok().filter(|n| *n >= first) else {
        return Err(AddressError::NotAfterBase { number, cidr });
    };
    if distance > last {
        let broadcast = matches!(cidr, IpNet::V4(_)) && first == 1 && distance == last + 1;
        return Err(if broadcast { AddressError::Broadcast { number, cidr } } else { beyond() });
    }
    let address = match cidr.network() {
        IpAddr::V4(base) => {
            let distance = u32::try_from(distance).map_err(|_| beyond())?;
            IpAddr::V4(Ipv4Addr::from(u32::from(base).checked_add(distance).ok_or_else(beyond)?))
        }
        IpAddr::V6(base) => IpAddr::V6(Ipv6Addr::from(u128::from(base).checked_add(distance).ok_or_else(beyond)?)),
    };
    IpNet::new(address, cidr.prefix_len()).map_err(|_| beyond())
}

/// How far an address is from a network's own; `None` when it is of the other family or not in it.
#[must_use]
pub fn number_of_address(cidr: &IpNet, address: IpAddr) -> Option<i128> {
    let distance = match (cidr.network(), address) {
        _ if !cidr.contains(&address) => return None,
        (IpAddr::V4(base), IpAddr::V4(own)) => u128::from(u32::from(own) - u32::from(base)),
        (IpAddr::V6(base), IpAddr::V6(own)) => u128::from(own) - u128::from(base),
        _ => return None,
    };
    i128::try_from(distance).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cidr: &str, number: i128) -> Result<String, AddressError> {
        address_of_number(cidr.parse().unwrap(), number).map(|net| net.to_string())
    }

    #[test]
    fn the_last_number_of_the_short_name_counts() {
        assert_eq!(number_in_name("gpu017"), Some(17));
        assert_eq!(number_in_name("rack1-n16"), Some(16));
        assert_eq!(number_in_name("n16-ib"), Some(16));
        assert_eq!(number_in_name("gpu017.site2.example"), Some(17));
        assert_eq!(number_in_name("login"), None);
        assert_eq!(number_in_name("n9999999999999999999"), None);
    }

    #[test]
    fn a_number_is_multiplied_and_then_shifted() {
        let most = 999_999_999_999_999_999;
        assert_eq!(number("gpu017", 0, Numbering::Name, 2, -1), Some(33));
        assert_eq!(number("login", 4, Numbering::Position, 10, 3), Some(53));
        let largest = number("n999999999999999999", 0, Numbering::Name, most, most).unwrap();
        assert_eq!(largest, i128::from(most) * i128::from(most) + i128::from(most));
    }

    #[test]
    fn a_host_has_base_plus_its_number() {
        assert_eq!(at("10.0.0.0/16", 17).unwrap(), "10.0.0.17/16");
        assert_eq!(at("10.0.0.0/16", 300).unwrap(), "10.0.1.44/16");
        assert_eq!(at("fd00::/64", 0x1_0000).unwrap(), "fd00::1:0/64");
        assert_eq!(at("10.0.0.0/31", 0).unwrap(), "10.0.0.0/31");
        assert_eq!(at("0.0.0.0/0", 1).unwrap(), "0.0.0.1/0");
    }

    #[test]
    fn no_host_has_an_address_of_the_network_itself() {
        let cidr = "10.0.0.0/24".parse().unwrap();
        assert_eq!(at("10.0.0.0/24", 0), Err(AddressError::NotAfterBase { number: 0, cidr }));
        assert_eq!(at("10.0.0.0/24", -1), Err(AddressError::NotAfterBase { number: -1, cidr }));
        assert_eq!(at("10.0.0.0/24", 255), Err(AddressError::Broadcast { number: 255, cidr }));
        assert_eq!(at("10.0.0.0/24", 256), Err(AddressError::Beyond { number: 256, cidr, last: 254 }));
        assert!(at("fd00::/64", 0).is_err());
        assert!(at("::/0", i128::MAX).is_ok());
        assert!(at("10.0.0.0/31", 2).is_err());
    }
}
