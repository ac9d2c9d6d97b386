//! RDMA devices and their ports, from /sys/class/infiniband.

use super::netdevs::{self, IpoibLink};
use super::tree::Tree;
use crate::facts::{Device, PortFacts};
use crate::rdma::{Guid, Transport};

const CLASS: &str = "/sys/class/infiniband";

/// All RDMA devices, by name. A device that vanishes while it is read is left out.
pub(super) fn devices(tree: &Tree) -> Vec<Device> {
    let ipoib = netdevs::ipoib_links(tree);
    tree.names(CLASS).iter().filter_map(|name| device(tree, name, &ipoib)).collect()
}

fn device(tree: &Tree, name: &str, ipoib: &[IpoibLink]) -> Option<Device> {
    let at = |file: &str| format!("{CLASS}/{name}/{file}");
    // Sysfs names port folders by number; as text "10" comes before "2".
    let mut numbers: Vec<u8> = tree.names(&at("ports")).iter().filter_map(|port| port.parse().ok()).collect();
    numbers.sort_unstable();
    Some(Device {
        name: name.parse().ok()?,
        pci: tree.link_name(&at("device")).filter(|parent| is_pci_address(parent)),
        driver: tree.link_name(&at("device/driver")),
        firmware: tree.word(&at("fw_ver")),
        board_id: tree.word(&at("board_id")),
        // -1 where the machine has no such thing.
        numa_node: tree.word(&at("device/numa_node")).and_then(|node| node.parse().ok()),
        ports: numbers.into_iter().filter_map(|number| port(tree, name, number, ipoib)).collect(),
    })
}

fn port(tree: &Tree, device: &str, number: u8, ipoib: &[IpoibLink]) -> Option<PortFacts> {
    let word = |file: &str| tree.word(&format!("{CLASS}/{device}/ports/{number}/{file}"));
    let transport = match word("link_layer")?.as_str() {
        "InfiniBand" => Transport::Infiniband,
        "Ethernet" => Transport::Roce,
        _ => return None,
    };
    let node_guid = || tree.word(&format!("{CLASS}/{device}/node_guid"))?.parse().ok();
    let guid = word("gids/0").as_deref().and_then(interface_identifier).or_else(node_guid)?;
    let netdev = match transport {
        Transport::Infiniband => netdevs::of_infiniband_port(ipoib, guid),
        Transport::Roce => netdevs::of_ethernet_port(tree, device, number),
    };
    let lid = |file: &str| word(file).as_deref().and_then(hexadecimal).unwrap_or_default();
    Some(PortFacts {
        number,
        transport,
        guid,
        state: word("state").as_deref().map(meaning).unwrap_or_default(),
        physical_state: word("phys_state").as_deref().map(meaning).unwrap_or_default(),
        rate: word("rate").unwrap_or_default(),
        lid: lid("lid"),
        sm_lid: lid("sm_lid"),
        netdev,
    })
}

/// The last 8 bytes of a GID; `None` for the zero GID of an empty table entry.
fn interface_identifier(gid: &str) -> Option<Guid> {
    let ip: std::net::Ipv6Addr = gid.parse().ok()?;
    let bytes = ip.octets();
    let guid = u64::from_be_bytes(*bytes.last_chunk::<8>()?);
    (guid != 0).then_some(Guid(guid))
}

/// `4: ACTIVE` is ACTIVE.
fn meaning(text: &str) -> String {
    text.split_once(": ").map_or(text, |(_, word)| word).to_owned()
}

fn hexadecimal(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// `0000:3b:00.0`: domain, bus, device, function.
fn is_pci_address(text: &str) -> bool {
    let hex = |text: &str, digits| text.len() >= digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split([':', '.']).collect();
    match parts[..] {
        [domain, bus, device, function] => hex(domain, 4) && hex(bus, 2) && hex(device, 2) && hex(function, 1),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_sysfs_are_read() {
        assert_eq!(meaning("4: ACTIVE"), "ACTIVE");
        assert_eq!(meaning("5: LinkUp"), "LinkUp");
        assert_eq!(hexadecimal("0x1a"), Some(26));
        assert_eq!(hexadecimal("26"), None);
        let gid = "fe80:0000:0000:0000:0002:c903:0000:0001";
        assert_eq!(interface_identifier(gid), Some(Guid(0x0002_c903_0000_0001)));
        assert_eq!(interface_identifier("0000:0000:0000:0000:0000:0000:0000:0000"), None);
    }

    #[test]
    fn a_pci_address_has_four_parts() {
        assert!(is_pci_address("0000:3b:00.0"));
        assert!(is_pci_address("10000:e1:00.0"), "domains behind a volume management device have five digits");
        for text in ["virtual", "0000:3b:00", "eth0", "0000:3b:00.x"] {
            assert!(!is_pci_address(text), "{text}");
        }
    }
}
