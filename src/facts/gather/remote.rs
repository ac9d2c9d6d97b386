//! Block devices and daemons that live on the network: iSCSI, NVMe over Fabrics, GPFS.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::mounts::address;
use super::tree::Tree;

/// The port of the GPFS daemon (mmfsd).
const GPFS_PORT: u16 = 1191;

/// `TCP_ESTABLISHED` in /proc/net/tcp.
const ESTABLISHED: &str = "01";

/// The addresses of iSCSI targets with a session.
pub(super) fn iscsi_targets(tree: &Tree) -> Vec<IpAddr> {
    const CLASS: &str = "/sys/class/iscsi_connection";
    let target = |connection: &String| {
        let word = |file: &str| tree.word(&format!("{CLASS}/{connection}/{file}")).as_deref().and_then(address);
        word("address").or_else(|| word("persistent_address"))
    };
    tree.names(CLASS).iter().filter_map(target).collect()
}

/// The addresses of NVMe controllers that are reached over TCP or RDMA.
pub(super) fn nvme_targets(tree: &Tree) -> Vec<IpAddr> {
    const CLASS: &str = "/sys/class/nvme";
    let target = |controller: &String| {
        let word = |file: &str| tree.word(&format!("{CLASS}/{controller}/{file}"));
        matches!(word("transport")?.as_str(), "tcp" | "rdma").then(|| traddr(&word("address")?)).flatten()
    };
    tree.names(CLASS).iter().filter_map(target).collect()
}

/// `traddr=10.0.0.5,trsvcid=4420,src_addr=10.0.0.1`.
fn traddr(text: &str) -> Option<IpAddr> {
    text.split(',').find_map(|field| address(field.strip_prefix("traddr=")?))
}

/// The peers of the GPFS daemon here: its mounts do not say where they come from.
pub(super) fn gpfs_peers(tree: &Tree) -> Vec<IpAddr> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| tree.text(path).unwrap_or_default());
    let mut peers: Vec<IpAddr> = tables.iter().flat_map(|table| peers(table, GPFS_PORT)).collect();
    peers.sort();
    peers.dedup();
    peers
}

fn peers(table: &str, port: u16) -> Vec<IpAddr> {
    let peer = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let ((_, from), (peer, to)) = (endpoint(fields.next()?)?, endpoint(fields.next()?)?);
        (fields.next()? == ESTABLISHED && (from == port || to == port)).then_some(peer)
    };
    table.lines().filter_map(peer).collect()
}

/// An address as words of 32 bits in the machine's byte order, and a port: `0F02000A:0016`.
fn endpoint(text: &str) -> Option<(IpAddr, u16)> {
    let (words, port) = text.split_once(':')?;
    let word = |index: usize| u32::from_str_radix(words.get(8 * index..8 * index + 8)?, 16).ok();
    let ip = match words.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?.to_ne_bytes())),
        32 => {
            let mut bytes = [0; 16];
            for (index, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(index)?.to_ne_bytes());
            }
            IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn peers_are_found_by_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
             0: 0F02000A:04A7 0202000A:C738 01 00000000:00000000\n\
             1: 0F02000A:C739 0302000A:04A7 01 00000000:00000000\n\
             2: 0F02000A:C739 0402000A:0016 01 00000000:00000000\n\
             3: 00000000:04A7 00000000:0000 0A 00000000:00000000\n";
        let found: Vec<String> = peers(table, GPFS_PORT).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.0.2.2", "10.0.2.3"]);
        let mapped = endpoint("0000000000000000FFFF00000F02000A:0016").unwrap();
        assert_eq!(mapped, ("10.0.2.15".parse().unwrap(), 22));
    }

    #[test]
    fn an_nvme_address_is_one_field() {
        assert_eq!(traddr("traddr=10.0.0.5,trsvcid=4420"), Some("10.0.0.5".parse().unwrap()));
        assert_eq!(traddr("nn-0x1:pn-0x2"), None);
    }
}
