//! What the spec asks of one host, before anything is known of the host itself.
//!
//! Made by [`compile`](crate::compile::compile) from the spec alone. Each value
//! carries the place in the spec that it came from, so that every reason and
//! every refusal further on can name it. Values only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ipnet::IpNet;

use crate::name::{HostName, IfName, Label, ModuleName, UnitName};
use crate::rdma::{Guid, PKey, Speed, Transport};
use crate::spec::{ConfigChoice, DeviceSelector, FabricMtu, ModeChoice, ModuleOption, MtuChoice};
use crate::tag::Tag;

/// A place in the spec, as its text reads: `[networks.compute] mode = "connected"`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The table: `[networks.compute]`.
    pub table: Box<str>,
    /// The key and its value: `mode = "connected"`.
    pub entry: Box<str>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.table, self.entry)
    }
}

/// A value and the place in the spec that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

/// All that the spec asks of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The host, by the name that the spec has for it.
    pub host: HostName,
    /// The cluster's name, for comments in files.
    pub cluster: Label,
    /// What keeps the configuration over a reboot.
    pub config: Sourced<ConfigChoice>,
    /// The ports, in the order of the spec.
    pub ports: Vec<PortIntent>,
    /// The fabrics that this host is a subnet manager of.
    pub managers: Vec<ManagerRole>,
    /// The services without a limit of locked memory.
    pub memlock: Sourced<BTreeSet<UnitName>>,
    /// Options of kernel modules: module, parameter, value.
    pub modules: BTreeMap<ModuleName, BTreeMap<ModuleName, ModuleOption>>,
}

/// What the spec asks of one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortIntent {
    /// Which HCA.
    pub device: Sourced<DeviceSelector>,
    /// What its group says of the HCA, where the host's own GUID comes before it.
    pub kind: Option<Sourced<DeviceSelector>>,
    /// Port of the HCA, from 1; a selector by GUID names the port itself.
    pub port: u8,
    /// The interface name to pin.
    pub interface: Option<Sourced<IfName>>,
    /// The fabric that its networks run on.
    pub fabric: Label,
    /// InfiniBand or RoCE.
    pub transport: Sourced<Transport>,
    /// Nominal speed; only verify looks at it.
    pub speed: Speed,
    /// IB MTU of the fabric's multicast groups.
    pub fabric_mtu: Sourced<FabricMtu>,
    /// Its interfaces: its own first, then those on partitions and VLANs.
    pub links: Vec<LinkIntent>,
}

/// What the spec asks of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkIntent {
    /// Its partition or VLAN; none for the port's own interface.
    pub tag: Option<Sourced<Tag>>,
    /// IPoIB mode; `Auto` on RoCE means none.
    pub mode: Sourced<ModeChoice>,
    /// MTU.
    pub mtu: Sourced<MtuChoice>,
    /// This host's addresses, one for each network on it; none where all networks are on partitions or VLANs.
    pub addresses: Vec<AddressIntent>,
}

/// An address in a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressIntent {
    /// The network.
    pub network: Label,
    /// How many hosts have a port in it, this one among them.
    pub hosts: usize,
    /// This host's address, with the prefix length of the network.
    pub address: Sourced<IpNet>,
}

impl PortIntent {
    /// All addresses of all its interfaces.
    pub fn addresses(&self) -> impl Iterator<Item = &AddressIntent> {
        self.links.iter().flat_map(|link| &link.addresses)
    }
}

/// This host's part in managing a fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerRole {
    /// The fabric.
    pub fabric: Label,
    /// 0 for the primary, 1 for the first standby, and so on.
    pub rank: usize,
    /// All managers of the fabric, the primary first.
    pub managers: Vec<HostName>,
    /// Their ports on the fabric, as far as the spec names them by GUID.
    pub guids: Vec<Guid>,
    /// MTU of the IPoIB multicast groups that the manager makes.
    pub fabric_mtu: FabricMtu,
    /// The partitions beside the default one, in the order of their names.
    pub partitions: Vec<PartitionRole>,
    /// The entry that makes this host a manager.
    pub origin: Origin,
}

/// A partition as its manager has to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionRole {
    /// Its name in the spec.
    pub name: Label,
    /// Its key.
    pub pkey: PKey,
    /// What ports that are not among the others are.
    pub rest: Option<Membership>,
    /// Single ports.
    pub ports: Vec<(Guid, Membership)>,
}

/// How a port is a member of a partition (IBA 1.4 volume 1, 10.9.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Membership {
    /// Reaches all members.
    Full,
    /// Reaches full members only.
    Limited,
}
