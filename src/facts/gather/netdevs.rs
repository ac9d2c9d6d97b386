//! The network interface of each RDMA port.

use super::tree::Tree;
use crate::facts::Netdev;
use crate::name::IfName;
use crate::rdma::Guid;
use crate::render::netplan;
use crate::state::FilePath;

const CLASS: &str = "/sys/class/net";

/// `ARPHRD_INFINIBAND`.
const INFINIBAND: &str = "32";

/// Length of an IPoIB hardware address (RFC 4391, section 9.1.1).
const IPOIB_ADDRESS_BYTES: usize = 20;

/// Bit of its first byte: reliable connections are supported (RFC 4755, section 3.1).
const RC_CAPABLE: u8 = 0x80;

/// The own IPoIB interface of an InfiniBand port.
pub(super) struct IpoibLink {
    guid: Guid,
    netdev: Netdev,
}

/// All IPoIB interfaces but P_Key children.
pub(super) fn ipoib_links(tree: &Tree) -> Vec<IpoibLink> {
    tree.names(CLASS).iter().filter_map(|name| ipoib_link(tree, name)).collect()
}

fn ipoib_link(tree: &Tree, name: &str) -> Option<IpoibLink> {
    let word = |file: &str| tree.word(&format!("{CLASS}/{name}/{file}"));
    // A child has its parent's hardware address but for the queue pair; it lies on its parent.
    if word("type")? != INFINIBAND || word("iflink") != word("ifindex") {
        return None;
    }
    let address = hardware_address(&word("address")?)?;
    let guid = Guid(u64::from_be_bytes(*address.last_chunk::<8>()?));
    let connected_capable = Some(address.first()? & RC_CAPABLE != 0);
    let networkd_file = networkd_file(tree, name);
    Some(IpoibLink {
        guid,
        netdev: Netdev { name: name.parse().ok()?, connected_capable, addresses: Vec::new(), networkd_file },
    })
}

/// The interface of the InfiniBand port with this GUID.
pub(super) fn of_infiniband_port(links: &[IpoibLink], guid: Guid) -> Option<Netdev> {
    links.iter().find(|link| link.guid == guid).map(|link| link.netdev.clone())
}

/// The interface of an Ethernet port: that of its first GID, the default one.
pub(super) fn of_ethernet_port(tree: &Tree, device: &str, number: u8) -> Option<Netdev> {
    let base = format!("/sys/class/infiniband/{device}");
    let name = tree.word(&format!("{base}/ports/{number}/gid_attrs/ndevs/0")).or_else(|| {
        // Without a GID yet: the interface of the same PCI function and port.
        let names = tree.names(&format!("{base}/device/net"));
        let of_port =
            |name: &String| tree.word(&format!("{base}/device/net/{name}/dev_port")) == Some((number - 1).to_string());
        let single = names.len() == 1;
        names.into_iter().find(|name| single || of_port(name))
    })?;
    let name: IfName = name.parse().ok()?;
    let networkd_file = networkd_file(tree, name.as_str());
    Some(Netdev { name, connected_capable: None, addresses: Vec::new(), networkd_file })
}

/// The file that systemd-networkd chose for the link, as its own record of the link has it (sd-network reads it too).
/// One that netplan made is of everybody's files in /etc/netplan together; with ours among them it says nothing.
fn networkd_file(tree: &Tree, name: &str) -> Option<FilePath> {
    let index = tree.word(&format!("{CLASS}/{name}/ifindex"))?;
    let record = tree.text(&format!("/run/systemd/netif/links/{index}"))?;
    let file = record.lines().find_map(|line| line.strip_prefix("NETWORK_FILE="))?;
    let ours = file.starts_with("/run/systemd/network/10-netplan-") && tree.has(netplan::PATH);
    if ours { None } else { file.parse().ok() }
}

fn hardware_address(text: &str) -> Option<Vec<u8>> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes.filter(|bytes| bytes.len() == IPOIB_ADDRESS_BYTES)
}
