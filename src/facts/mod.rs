//! What a host has: HCAs and ports, the system that keeps its network
//! configuration, the programs at hand, the links it must not lose.
//!
//! Gathered on the node, written as JSON by `selvedge facts`, read back for
//! `render` and `plan` elsewhere.

pub mod by_host;
mod gather;
pub mod text;

pub use gather::{FactsError, gather, hardware_for, look_into};

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::name::{DeviceName, HostName, IfName};
use crate::plan::Protected;
use crate::rdma::{Guid, Transport};
use crate::state::FilePath;

/// The version of this format.
pub const VERSION: u32 = 1;

/// Facts of another version may mean something else by the same words.
fn this_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        other => {
            Err(D::Error::custom(format!("these are facts of version {other}, and this selvedge reads {VERSION}")))
        }
    }
}

/// Everything that resolving a spec needs to know of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Version of this format: 1.
    #[serde(deserialize_with = "this_version")]
    pub version: u32,
    /// The host's name, as the kernel has it; none where there is no usable one, as in some images.
    pub hostname: Option<HostName>,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// RDMA devices.
    pub devices: Vec<Device>,
    /// What keeps the network configuration.
    pub config: ConfigEvidence,
    /// Programs that selvedge may have to run or to name in a file.
    pub programs: Programs,
    /// Links that carry what must not be cut.
    pub protected: Vec<Protected>,
}

/// An RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Its name: `mlx5_0`.
    pub name: DeviceName,
    /// The PCI address of its parent, `0000:3b:00.0`; none for a software device.
    pub pci: Option<String>,
    /// The kernel driver of its parent.
    pub driver: Option<String>,
    /// Firmware version, as the device says it.
    pub firmware: Option<String>,
    /// Board or parameter-set id (PSID).
    pub board_id: Option<String>,
    /// NUMA node of its parent.
    pub numa_node: Option<u32>,
    /// Ports, from 1.
    pub ports: Vec<PortFacts>,
}

/// A port of an RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortFacts {
    /// Number, from 1.
    pub number: u8,
    /// InfiniBand or Ethernet, by the link layer.
    pub transport: Transport,
    /// Port GUID; on RoCE the interface identifier of its first GID.
    pub guid: Guid,
    /// Logical state: `DOWN`, `INIT`, `ARMED`, `ACTIVE`.
    pub state: String,
    /// Physical state: `LinkUp`, `Polling`, `Disabled`.
    pub physical_state: String,
    /// Rate as sysfs prints it: `200 Gb/sec (4X HDR)`.
    pub rate: String,
    /// LID, 0 when there is none.
    pub lid: u16,
    /// LID of the master subnet manager, 0 when there is none.
    pub sm_lid: u16,
    /// The port's own network interface, if there is one (never a P_Key child).
    pub netdev: Option<Netdev>,
}

/// The network interface of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Netdev {
    /// Its name.
    pub name: IfName,
    /// Whether it can do connected mode: bit 0x80 of the first byte of the IPoIB hardware address
    /// (RFC 4755), set where the driver does reliable connections. `None` on Ethernet.
    pub connected_capable: Option<bool>,
    /// Its addresses but the link-local ones, which come and go by themselves.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schemars(with = "Vec<String>")]
    pub addresses: Vec<IpNet>,
    /// The `.network` file that systemd-networkd has configured it by, if it has.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub networkd_file: Option<FilePath>,
}

/// Evidence of which system keeps the network configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a finding of its own, and any of them can go together")]
pub struct ConfigEvidence {
    /// The `netplan` program, if it is installed.
    pub netplan: Option<FilePath>,
    /// Whether /etc/netplan, /run/netplan or /usr/lib/netplan holds a file.
    pub netplan_files: bool,
    /// systemd-networkd is running or enabled.
    pub networkd: bool,
    /// NetworkManager is running or enabled.
    pub network_manager: bool,
    /// What reads Red Hat's ifcfg files, and whether there are any.
    #[serde(skip_serializing_if = "IfcfgEvidence::is_none", default)]
    pub ifcfg: IfcfgEvidence,
    /// wicked is running or enabled.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub wicked: bool,
}

/// Evidence of who keeps configuration in the ifcfg files of Red Hat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a finding of its own, and any of them can go together")]
pub struct IfcfgEvidence {
    /// NetworkManager has its plugin that reads them.
    pub plugin: bool,
    /// initscripts' `ifup` is installed, and its service `network` starts at boot.
    pub initscripts: bool,
    /// /etc/sysconfig/network-scripts has one for a link, and not of ours.
    pub files: bool,
    /// /etc/NetworkManager/system-connections has a profile, and not of ours: what is kept there is not kept in ifcfg
    /// files.
    pub keyfiles: bool,
}

impl IfcfgEvidence {
    /// Nothing was found.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Programs by their absolute path; `None` when not installed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// This program itself.
    pub selvedge: Option<FilePath>,
    /// iproute2's `ip`.
    pub ip: Option<FilePath>,
    /// opensm.
    pub opensm: Option<FilePath>,
}
