//! Names and networks that are well written and can't be given to a port.
//!
//! A value comes in; what forbids it goes out. Kernel and standards keep these
//! for something else, so that an apply would fail, or the port not be reached.

use ipnet::IpNet;

use crate::name::IfName;

/// Why no port can have this interface name.
pub(super) fn interface(name: &IfName) -> Option<&'static str> {
    match name.as_str() {
        "lo" => Some("each host has its loopback interface by this name"),
        // drivers/net/bonding/bond_sysfs.c
        "bonding_masters" => Some("the kernel has a file of this name among its interfaces, in /sys/class/net"),
        name if name.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some("programs take digits alone for an interface's index, and systemd refuses them as a name")
        }
        _ => None,
    }
}

/// IANA's special-purpose registries (RFC 6890), and RFC 5771 and RFC 4291 for multicast: each network with its use.
const NETWORKS: [(&str, &str); 9] = [
    ("0.0.0.0/8", "hosts without an address yet"),
    ("127.0.0.0/8", "loopback, which never leaves a host"),
    ("169.254.0.0/16", "link-local addresses, which hosts give to themselves"),
    ("224.0.0.0/4", "multicast groups, which are no hosts"),
    ("255.255.255.255/32", "broadcasts"),
    ("::/128", "hosts without an address yet"),
    ("::1/128", "loopback, which never leaves a host"),
    ("fe80::/10", "link-local addresses, which hosts give to themselves"),
    ("ff00::/8", "multicast groups, which are no hosts"),
];

/// The network that this one shares addresses with and that is for something else, and what for.
pub(super) fn network(net: &IpNet) -> Option<(IpNet, &'static str)> {
    let mut known = NETWORKS.iter().filter_map(|(special, what)| Some((special.parse::<IpNet>().ok()?, *what)));
    known.find(|(special, _)| special.contains(net) || net.contains(special))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_hosts_are_free_and_special_ones_are_not() {
        let of = |text: &str| network(&text.parse().unwrap()).map(|(special, _)| special.to_string());
        for free in
            ["10.0.0.0/8", "172.16.0.0/12", "192.168.1.0/24", "100.64.0.0/10", "8.0.0.0/8", "fd00::/8", "2001:db8::/32"]
        {
            assert_eq!(of(free), None, "{free}");
        }
        for (net, special) in [
            ("127.1.0.0/16", "127.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/8"),
            ("126.0.0.0/7", "127.0.0.0/8"),
            ("239.1.0.0/16", "224.0.0.0/4"),
            ("::/0", "::/128"),
            ("::1/128", "::1/128"),
            ("fe80::/64", "fe80::/10"),
            ("ff02::/16", "ff00::/8"),
        ] {
            assert_eq!(of(net).as_deref(), Some(special), "{net}");
        }
    }

    #[test]
    fn names_that_the_kernel_has_taken_are_refused() {
        let of = |text: &str| interface(&text.parse().unwrap());
        assert!(["ib0", "0a", "ib0.8001", "lo0"].iter().all(|name| of(name).is_none()));
        assert!(["lo", "bonding_masters", "123", "0"].iter().all(|name| of(name).is_some()));
    }
}
