//! The counters of a port and of its network interfaces, read from sysfs.
//!
//! A device and a port come in, numbers go out. What they prove is decided in
//! [`super::proof`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::snapshot::{Netdev, Snapshot};
use crate::name::{DeviceName, IfName};

/// The port isn't there.
#[derive(Debug, Error)]
#[error("{device} has no port {port}: cannot read {path}")]
pub struct CountersError {
    device: DeviceName,
    port: u8,
    path: PathBuf,
    source: std::io::Error,
}

/// Reads a port's counters; `sysfs` is `/sys`.
///
/// # Errors
/// [`CountersError`] if there is no such port. A counter that can't be read is left out.
pub fn read(sysfs: &Path, device: &DeviceName, port: u8) -> Result<Snapshot, CountersError> {
    let device_dir = sysfs.join("class/infiniband").join(device.as_str());
    let port_dir = device_dir.join("ports").join(port.to_string());
    if let Err(source) = fs::metadata(&port_dir) {
        return Err(CountersError { device: device.clone(), port, path: port_dir, source });
    }
    let netdevs = netdevs(&device_dir, &port_dir, port)
        .into_iter()
        .map(|name| {
            let statistics = sysfs.join("class/net").join(name.as_str()).join("statistics");
            let bytes = |file: &str| number(&statistics.join(file)).unwrap_or(0);
            (name.into(), Netdev { tx_bytes: bytes("tx_bytes"), rx_bytes: bytes("rx_bytes") })
        })
        .collect();
    Ok(Snapshot { port: numbers(&port_dir.join("counters")), hw: numbers(&port_dir.join("hw_counters")), netdevs })
}

/// The interfaces that share the port: those of the same PCI function (RoCE
/// and IPoIB alike), and those that the GID table names (soft-RoCE has only these).
fn netdevs(device_dir: &Path, port_dir: &Path, port: u8) -> BTreeSet<IfName> {
    let function = device_dir.join("device/net");
    let of_function = names(&function).filter(|name| {
        // IPoIB and multi-port RoCE say which port they are on, counted from 0.
        let dev_port = number(&function.join(name.as_str()).join("dev_port"));
        dev_port.is_none_or(|n| n + 1 == u64::from(port))
    });
    let of_gids = fs::read_dir(port_dir.join("gid_attrs/ndevs"))
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok()?.trim_end().parse().ok());
    of_function.chain(of_gids).collect()
}

fn names(dir: &Path) -> impl Iterator<Item = IfName> {
    fs::read_dir(dir).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn numbers(dir: &Path) -> BTreeMap<String, u64> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.file_name().into_string().ok()?, number(&entry.path())?))
        })
        .collect()
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_with_its_own_interfaces() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "250\n"),
            ("class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "3\n"),
            ("class/infiniband/mlx5_0/ports/1/hw_counters/lifespan", "not a number\n"),
            ("class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "ib7\n"),
            ("class/infiniband/mlx5_0/device/net/ib0/dev_port", "0\n"),
            ("class/infiniband/mlx5_0/device/net/ib1/dev_port", "1\n"),
            ("class/net/ib0/statistics/tx_bytes", "60\n"),
            ("class/net/ib0/statistics/rx_bytes", "70\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let device = "mlx5_0".parse().unwrap();
        let snapshot = read(root.path(), &device, 1).unwrap();
        assert_eq!(snapshot.port, [("port_xmit_data".to_owned(), 250)].into());
        assert_eq!(snapshot.hw, [("out_of_sequence".to_owned(), 3)].into());
        let ib0 = Netdev { tx_bytes: 60, rx_bytes: 70 };
        assert_eq!(snapshot.netdevs, [("ib0".to_owned(), ib0), ("ib7".to_owned(), Netdev::default())].into());
        assert!(read(root.path(), &device, 2).unwrap_err().to_string().starts_with("mlx5_0 has no port 2"));
    }
}
