//! The port's GID and P_Key tables, and the choice from them.
//!
//! The tables are read from sysfs; the choice is a function of its arguments.
//! The index is never fixed: it moves when an address or a VLAN is added.

use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use thiserror::Error;

use crate::name::DeviceName;

/// What a GID is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GidKind {
    /// InfiniBand, or RoCE version 1: not routed, and not used on Ethernet.
    V1,
    /// RoCE version 2: UDP and IP.
    RoceV2,
}

/// An entry of the GID table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GidEntry {
    /// Its index.
    pub index: u8,
    /// The GID; an IPv4 address is mapped, `::ffff:10.0.0.1`.
    pub gid: Ipv6Addr,
    /// What it is good for.
    pub kind: GidKind,
}

impl GidEntry {
    /// The IP address that the GID stands for.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        IpAddr::V6(self.gid).to_canonical()
    }

    /// Whether packets with it reach beyond the own link: neither link-local IPv6 nor 169.254/16.
    #[must_use]
    pub fn is_global(&self) -> bool {
        match self.address() {
            IpAddr::V4(v4) => !v4.is_link_local() && !v4.is_unspecified(),
            IpAddr::V6(v6) => !v6.is_unicast_link_local() && !v6.is_unspecified(),
        }
    }
}

/// Why no GID was chosen.
#[derive(Debug, Error)]
pub enum GidError {
    /// The table can't be read.
    #[error("{device} port {port}: cannot read {path}")]
    Read {
        /// The RDMA device.
        device: DeviceName,
        /// Its port.
        port: u8,
        /// The folder or file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// No entry fits.
    #[error("{device} port {port} has no RoCE v2 GID with a global address{}: its table has {}; has the interface its IP address?",
        within(*subnet), describe(table))]
    NoneFits {
        /// The RDMA device.
        device: DeviceName,
        /// Its port.
        port: u8,
        /// The subnet it should be in.
        subnet: Option<IpNet>,
        /// What is there.
        table: Vec<GidEntry>,
    },
}

/// Chooses the entry for RoCE: version 2, global, in the subnet if one is
/// given. IPv4 goes before IPv6, then the lowest index.
#[must_use]
pub fn choose(table: &[GidEntry], subnet: Option<IpNet>) -> Option<&GidEntry> {
    table
        .iter()
        .filter(|entry| entry.kind == GidKind::RoceV2 && entry.is_global())
        .filter(|entry| subnet.is_none_or(|net| net.contains(&entry.address())))
        .min_by_key(|entry| (entry.address().is_ipv6(), entry.index))
}

/// Reads the table of a port and chooses from it.
///
/// # Errors
/// [`GidError`].
pub fn select(sysfs: &Path, device: &DeviceName, port: u8, subnet: Option<IpNet>) -> Result<GidEntry, GidError> {
    let table = read_table(sysfs, device, port)?;
    match choose(&table, subnet) {
        Some(entry) => Ok(entry.clone()),
        None => Err(GidError::NoneFits { device: device.clone(), port, subnet, table }),
    }
}

/// The entries of a port's GID table that are in use, by index.
///
/// # Errors
/// [`GidError::Read`].
pub fn read_table(sysfs: &Path, device: &DeviceName, port: u8) -> Result<Vec<GidEntry>, GidError> {
    let base = port_dir(sysfs, device, port);
    let mut table: Vec<GidEntry> = indexed(&base.join("gids"), device, port)?
        .into_iter()
        .filter_map(|(index, text)| {
            let gid: Ipv6Addr = text.parse().ok()?;
            // An empty entry has no type: the kernel answers EINVAL.
            let kind = fs::read_to_string(base.join(format!("gid_attrs/types/{index}"))).ok()?;
            let kind = if kind.trim_end() == "RoCE v2" { GidKind::RoceV2 } else { GidKind::V1 };
            (!gid.is_unspecified()).then_some(GidEntry { index: u8::try_from(index).ok()?, gid, kind })
        })
        .collect();
    table.sort_by_key(|entry| entry.index);
    Ok(table)
}

/// The index of a P_Key in the port's table, full or limited member, or the table without it.
///
/// # Errors
/// [`GidError::Read`].
pub fn pkey_index(sysfs: &Path, device: &DeviceName, port: u8, pkey: u16) -> Result<Result<u16, Vec<u16>>, GidError> {
    let mut keys: Vec<(u16, u16)> = indexed(&port_dir(sysfs, device, port).join("pkeys"), device, port)?
        .into_iter()
        .filter_map(|(index, text)| Some((index, u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()?)))
        .filter(|(_, key)| key & 0x7fff != 0)
        .collect();
    keys.sort_unstable();
    let exact = keys.iter().find(|(_, key)| *key == pkey);
    let found = exact.or_else(|| keys.iter().find(|(_, key)| key & 0x7fff == pkey & 0x7fff));
    Ok(found.map(|(index, _)| *index).ok_or_else(|| keys.iter().map(|(_, key)| *key).collect()))
}

fn port_dir(sysfs: &Path, device: &DeviceName, port: u8) -> PathBuf {
    sysfs.join("class/infiniband").join(device.as_str()).join("ports").join(port.to_string())
}

/// A folder of files named by their index, with what they hold.
fn indexed(path: &Path, device: &DeviceName, port: u8) -> Result<Vec<(u16, String)>, GidError> {
    let entries = fs::read_dir(path).map_err(|source| GidError::Read {
        device: device.clone(),
        port,
        path: path.to_owned(),
        source,
    })?;
    Ok(entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let index = entry.file_name().to_str()?.parse().ok()?;
            Some((index, fs::read_to_string(entry.path()).ok()?.trim().to_owned()))
        })
        .collect())
}

fn within(subnet: Option<IpNet>) -> String {
    subnet.map(|net| format!(" in {net}")).unwrap_or_default()
}

fn describe(table: &[GidEntry]) -> String {
    let line = |entry: &GidEntry| {
        let kind = if entry.kind == GidKind::RoceV2 { "v2" } else { "v1" };
        format!("{} {} ({kind})", entry.index, entry.address())
    };
    if table.is_empty() { "no entry".to_owned() } else { table.iter().map(line).collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u8, gid: &str, kind: GidKind) -> GidEntry {
        GidEntry { index, gid: gid.parse().unwrap(), kind }
    }

    /// What a ConnectX port with one address of each family and a VLAN shows.
    fn table() -> Vec<GidEntry> {
        vec![
            entry(0, "fe80::1", GidKind::V1),
            entry(1, "fe80::1", GidKind::RoceV2),
            entry(2, "2001:db8::1", GidKind::RoceV2),
            entry(3, "::ffff:10.0.0.1", GidKind::V1),
            entry(4, "::ffff:10.0.0.1", GidKind::RoceV2),
            entry(5, "::ffff:10.9.0.1", GidKind::RoceV2),
        ]
    }

    #[test]
    fn version_2_global_and_in_the_subnet_wins() {
        let index = |net: &str| choose(&table(), Some(net.parse().unwrap())).map(|e| e.index);
        assert_eq!(index("10.0.0.0/16"), Some(4));
        assert_eq!(index("10.9.0.0/24"), Some(5));
        assert_eq!(index("2001:db8::/64"), Some(2));
        assert_eq!(index("192.168.0.0/16"), None);
        assert_eq!(index("fe80::/10"), None, "link-local never");
        assert_eq!(choose(&table(), None).map(|e| e.index), Some(4));
    }

    #[test]
    fn the_tables_are_read_from_sysfs() {
        let root = tempfile::tempdir().unwrap();
        let port = root.path().join("class/infiniband/rxe0/ports/1");
        for (path, text) in [
            ("gids/0", "fe80:0000:0000:0000:5054:00ff:fe12:3456\n"),
            ("gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001\n"),
            ("gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n"),
            ("gid_attrs/types/0", "RoCE v2\n"),
            ("gid_attrs/types/1", "RoCE v2\n"),
            ("pkeys/0", "0xffff\n"),
            ("pkeys/1", "0x8001\n"),
            ("pkeys/2", "0x0000\n"),
        ] {
            let path = port.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let device = "rxe0".parse().unwrap();
        let chosen = select(root.path(), &device, 1, None).unwrap();
        assert_eq!((chosen.index, chosen.address().to_string()), (1, "10.0.0.1".to_owned()));
        assert_eq!(pkey_index(root.path(), &device, 1, 0x0001).unwrap(), Ok(1));
        assert_eq!(pkey_index(root.path(), &device, 1, 0x8002).unwrap(), Err(vec![0xffff, 0x8001]));
        let none = select(root.path(), &device, 1, Some("10.1.0.0/16".parse().unwrap())).unwrap_err();
        assert_eq!(
            none.to_string(),
            "rxe0 port 1 has no RoCE v2 GID with a global address in 10.1.0.0/16: its table has \
             0 fe80::5054:ff:fe12:3456 (v2), 1 10.0.0.1 (v2); has the interface its IP address?"
        );
    }
}
