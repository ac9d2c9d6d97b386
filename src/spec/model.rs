//! The spec as values: what the TOML file says, decoded and each leaf valid.
//!
//! Built by the decoder only; relations between values are held by `check`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use crate::hostlist::HostList;
use crate::name::{DeviceName, HostName, IfName, Label, ModuleName, UnitName};
use crate::rdma::{Guid, IpoibMode, PKey, Speed, Transport};

pub use super::pci::PciAddress;

/// A whole cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// `[cluster]`
    pub cluster: Cluster,
    /// `[fabrics.NAME]`
    pub fabrics: BTreeMap<Label, Fabric>,
    /// `[networks.NAME]`
    pub networks: BTreeMap<Label, Network>,
    /// `[[nodes]]`
    pub nodes: Vec<NodeGroup>,
    /// `[hosts.NAME]`
    pub hosts: BTreeMap<HostName, HostException>,
    /// `[modules.NAME]`: options of kernel modules, parameter to value.
    pub modules: BTreeMap<ModuleName, BTreeMap<ModuleName, ModuleOption>>,
    /// `[verify]`
    pub verify: Verify,
}

/// `[cluster]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The cluster's name, used in comments and reports.
    pub name: Label,
}

/// `[fabrics.NAME]`
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    /// InfiniBand or RoCE.
    pub transport: Transport,
    /// Nominal speed of each host link.
    pub speed: Speed,
    /// How the switches are wired.
    pub topology: Topology,
    /// The MTU of the fabric's IPoIB multicast groups, bytes: 2048 (what opensm makes by default) or 4096.
    pub mtu: FabricMtu,
    /// `[fabrics.NAME.subnet-manager]`; absent on RoCE.
    pub subnet_manager: Option<SubnetManager>,
    /// `[fabrics.NAME.partitions.NAME]`; none on RoCE.
    pub partitions: BTreeMap<Label, Partition>,
}

/// `[fabrics.NAME.partitions.NAME]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its key.
    pub pkey: PKey,
    /// Members that reach all members.
    pub full: Members,
    /// Members that reach full members only.
    pub limited: Members,
}

impl Partition {
    /// Whether the host is a limited member. One that is named is what it is named as, whatever `all` says.
    #[must_use]
    pub fn is_limited(&self, host: &HostName) -> bool {
        match (&self.full, &self.limited) {
            (Members::Hosts(full), _) if full.contains(host) => false,
            (_, Members::Hosts(limited)) => limited.contains(host),
            (_, limited) => *limited == Members::All,
        }
    }
}

/// The members of a partition. A host that is named is what it is named as; `All` is for the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Members {
    /// Nobody.
    None,
    /// Every port of the fabric.
    All,
    /// The ports of these hosts.
    Hosts(HostList),
}

impl Members {
    /// Whether the host is among them.
    #[must_use]
    pub fn has(&self, host: &HostName) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Hosts(hosts) => hosts.contains(host),
        }
    }
}

/// The IB MTU of the IPoIB multicast groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FabricMtu {
    /// 2048 bytes, opensm's default: IPoIB datagrams of 2044.
    #[default]
    B2048,
    /// 4096 bytes: IPoIB datagrams of 4092.
    B4096,
}

impl Network {
    /// The partition of `fabrics` that it is on; none on a port's own interface or a VLAN.
    #[must_use]
    pub fn partition<'s>(&self, fabrics: &'s BTreeMap<Label, Fabric>) -> Option<&'s Partition> {
        match &self.on {
            Layer::Partition(name) => fabrics.get(&self.fabric)?.partitions.get(name),
            Layer::Port | Layer::Vlan(_) => None,
        }
    }
}

impl FabricMtu {
    /// In bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self {
            Self::B2048 => 2048,
            Self::B4096 => 4096,
        }
    }
}

/// `topology`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// One switch, or two hosts back to back.
    SingleSwitch,
    /// A two- or three-level folded Clos.
    FatTree,
    /// Groups of leaf and spine switches, wired all to all.
    DragonflyPlus,
}

/// `[fabrics.NAME.subnet-manager]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetManager {
    /// The host that is master while it is healthy.
    pub primary: HostName,
    /// The hosts that take over, in this order.
    pub standby: Vec<HostName>,
}

/// `[networks.NAME]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The fabric it runs on.
    pub fabric: Label,
    /// The interfaces of it that are not the ports' own.
    pub on: Layer,
    /// Host n has base + n.
    pub cidr: IpNet,
    /// IPoIB mode; `Auto` on RoCE means none.
    pub mode: ModeChoice,
    /// MTU of the interface.
    pub mtu: MtuChoice,
}

/// `partition`, `vlan`
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Layer {
    /// The port's own interface.
    #[default]
    Port,
    /// A P_Key child of it, for this partition of the network's fabric.
    Partition(Label),
    /// A VLAN on it, 1 to 4094.
    Vlan(u16),
}

/// `mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModeChoice {
    /// Connected where the HCA can, else datagram.
    #[default]
    Auto,
    /// This one, or an error.
    Insist(IpoibMode),
}

/// `mtu`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MtuChoice {
    /// The most that the mode in effect carries.
    #[default]
    Max,
    /// This many bytes.
    Bytes(u32),
}

/// `[[nodes]]`
#[derive(Debug, Clone, PartialEq)]
pub struct NodeGroup {
    /// The hosts of this group.
    pub hosts: HostList,
    /// Who keeps the configuration over a reboot.
    pub config: ConfigChoice,
    /// Where a host's number comes from.
    pub numbering: Numbering,
    /// Each host's number is multiplied by this, at least 1.
    pub stride: i64,
    /// Added to that.
    pub offset: i64,
    /// The services without a limit of locked memory.
    pub memlock: BTreeSet<UnitName>,
    /// `[[nodes.ports]]`
    pub ports: Vec<Port>,
}

/// `numbering`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbering {
    /// The last number in the host's name.
    #[default]
    Name,
    /// The host's place in the group's list, from 1.
    Position,
}

/// `config`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each is the program of that name")]
pub enum ConfigChoice {
    /// What the host uses.
    #[default]
    Auto,
    Netplan,
    Networkd,
    NetworkManager,
    Ifcfg,
    IfcfgSuse,
}

/// `[[nodes.ports]]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Which HCA; `None` where each host of the group has its GUID in `[hosts.NAME]`.
    pub device: Option<DeviceSelector>,
    /// Port of the HCA, from 1.
    pub port: u8,
    /// The interface name to pin; `None` keeps the kernel's.
    pub interface: Option<IfName>,
    /// The networks this port is in: one or more, of one fabric.
    pub networks: Vec<Label>,
}

/// How the spec names an HCA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceSelector {
    /// By RDMA device name.
    Name(DeviceName),
    /// By PCI address, `0000:3b:00.0`.
    Pci(PciAddress),
    /// By port GUID.
    Guid(Guid),
}

/// The value of a module parameter: an integer, a boolean, or one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleOption(pub String);

impl ModuleOption {
    /// What a value can hold: modprobe.d has no quoting.
    #[must_use]
    pub fn may_hold(c: char) -> bool {
        c.is_ascii_alphanumeric() || "-_.:,/+".contains(c)
    }
}

/// `[hosts.NAME]`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostException {
    /// The name or address that ssh is given; the host's own name otherwise.
    pub ssh: Option<HostName>,
    /// The GUIDs of its ports, by the interface name that the spec pins.
    pub guids: BTreeMap<IfName, Guid>,
    /// Its addresses, by network, where they are not what its number says.
    pub addresses: BTreeMap<Label, IpAddr>,
}

/// `[verify]`
#[derive(Debug, Clone, PartialEq)]
pub struct Verify {
    /// One-direction RDMA WRITE bandwidth.
    pub min_bandwidth: MinBandwidth,
    /// Typical (median) RDMA READ latency.
    pub max_latency: Duration,
}

/// `min-bandwidth`
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MinBandwidth {
    /// Percent of the fabric's data rate in the spec.
    Percent(f64),
    /// Bytes a second.
    BytesPerSecond(f64),
}
