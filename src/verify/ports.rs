//! What sysfs has of a port beyond the facts: its interface's hardware address, and whether a subnet manager has it.

use std::fs;
use std::path::Path;

use crate::facts::Facts;
use crate::intent::{Intent, ManagerRole};
use crate::name::IfName;
use crate::resolve::select;
use crate::state::opensm_unit;

/// `IsSM` in PortInfo's CapabilityMask (IBA 1.4 volume 1, 14.2.5.6): set while a manager holds the port.
const IS_SM: u32 = 1 << 1;

/// The hardware address of an interface.
#[must_use]
pub fn hardware_address(root: &Path, interface: &IfName) -> Option<String> {
    let text = fs::read_to_string(root.join(format!("sys/class/net/{interface}/address"))).ok()?;
    Some(text.trim().to_owned())
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
    fn a_hardware_address_is_read_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("sys/class/net/ib0")).unwrap();
        fs::write(root.path().join("sys/class/net/ib0/address"), "80:00:02:08\n").unwrap();
        assert_eq!(hardware_address(root.path(), &"ib0".parse().unwrap()).as_deref(), Some("80:00:02:08"));
        assert_eq!(hardware_address(root.path(), &"ib1".parse().unwrap()), None);
    }
}
