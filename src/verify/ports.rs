//! What sysfs has of a port beyond the facts: its interface's hardware address, and whether a subnet manager has it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::checks;
use super::model::Check;
use crate::facts::Facts;
use crate::intent::{Intent, ManagerRole};
use crate::name::{DeviceName, IfName};
use crate::rdma::PKey;
use crate::resolve::select;
use crate::state::opensm_unit;
use crate::tag::Tag;

/// `IsSM` in PortInfo's CapabilityMask (IBA 1.4 volume 1, 14.2.5.6): set while a manager holds the port.
const IS_SM: u32 = 1 << 1;

/// The hardware address of an interface.
#[must_use]
pub fn hardware_address(root: &Path, interface: &IfName) -> Option<String> {
    let text = fs::read_to_string(root.join(format!("sys/class/net/{interface}/address"))).ok()?;
    Some(text.trim().to_owned())
}

/// Whether the ports are let into the partitions that they have interfaces for.
#[must_use]
pub fn partitions(root: &Path, intent: &Intent, facts: &Facts) -> Vec<Check> {
    let mut all = Vec::new();
    for port in &intent.ports {
        let Ok((device, found)) = select(port, facts) else { continue };
        let Some(netdev) = &found.netdev else { continue };
        let mut keys = None;
        for tag in port.links.iter().filter_map(|link| Some(link.tag.as_ref()?.value)) {
            if let (Tag::Pkey(pkey), Ok(child)) = (tag, tag.child_of(&netdev.name)) {
                let keys = keys.get_or_insert_with(|| pkeys(root, &device.name, found.number));
                all.push(checks::partition(&child, pkey, keys));
            }
        }
    }
    all
}

/// The P_Key table of a port, in the order of its keys; limited and full membership are one partition.
fn pkeys(root: &Path, device: &DeviceName, port: u8) -> Vec<PKey> {
    let folder = root.join(format!("sys/class/infiniband/{device}/ports/{port}/pkeys"));
    let texts =
        fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let key = |text: String| u16::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok().and_then(PKey::new);
    texts.filter_map(key).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The unit of a manager's role and its port in words, where a subnet manager holds that port.
#[must_use]
pub fn held(root: &Path, role: &ManagerRole, intent: &Intent, facts: &Facts) -> Option<(String, String)> {
    let port = intent.ports.iter().find(|port| port.fabric == role.fabric)?;
    let (device, found) = select(port, facts).ok()?;
    let place = format!("sys/class/infiniband/{}/ports/{}/cap_mask", device.name, found.number);
    let mask = fs::read_to_string(root.join(place)).ok()?;
    let unit = opensm_unit(role.fabric.as_str())?;
    has_manager(&mask).then(|| (unit.to_string(), format!("{} port {}", device.name, found.number)))
}

fn has_manager(mask: &str) -> bool {
    u32::from_str_radix(mask.trim().trim_start_matches("0x"), 16).is_ok_and(|mask| mask & IS_SM != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_seen_in_the_capability_mask() {
        assert!(has_manager("0x2651e84a\n"));
        assert!(!has_manager("0x2651e848\n"));
        assert!(!has_manager(""));
    }

    #[test]
    fn keys_are_read_as_the_partitions_that_they_are_of() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/class/infiniband/mlx5_0/ports/1/pkeys");
        fs::create_dir_all(&folder).unwrap();
        for (index, key) in ["0xffff", "0x0002", "0x8001", "0x0000", "nonsense"].into_iter().enumerate() {
            fs::write(folder.join(index.to_string()), format!("{key}\n")).unwrap();
        }
        let keys = pkeys(root.path(), &"mlx5_0".parse().unwrap(), 1);
        assert_eq!(keys.iter().map(|key| key.full()).collect::<Vec<_>>(), [0x8001, 0x8002, 0xffff]);
        assert_eq!(pkeys(root.path(), &"mlx5_1".parse().unwrap(), 1), []);
    }

    #[test]
    fn a_hardware_address_is_read_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("sys/class/net/ib0")).unwrap();
        fs::write(root.path().join("sys/class/net/ib0/address"), "80:00:02:08\n").unwrap();
        assert_eq!(hardware_address(root.path(), &"ib0".parse().unwrap()).as_deref(), Some("80:00:02:08"));
        assert_eq!(hardware_address(root.path(), &"ib1".parse().unwrap()), None);
    }
}
