//! What was read of a spec, each value with its place; what could not be read is absent.
//!
//! The decoder fills it, the checks compare its values, and `build` turns it
//! into a [`Spec`](super::model::Spec) once no fault is left. An absent value
//! has been reported already, so a check skips it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::fault::{Located, Span};
use super::model::{
    ConfigChoice, DeviceSelector, FabricMtu, Layer, Members, MinBandwidth, ModeChoice, ModuleOption, MtuChoice,
    Numbering, Topology,
};
use crate::hostlist::HostList;
use crate::name::{HostName, IfName, Label, ModuleName, UnitName};
use crate::rdma::{Guid, PKey, Speed, Transport};

/// A value that was read, or whose fault has been reported.
pub(super) type Read<T> = Option<Located<T>>;

/// Tables by name, and whether none is missing for being unreadable or left out where it is needed.
#[derive(Debug)]
pub(super) struct Named<N, T> {
    pub(super) all: BTreeMap<N, T>,
    pub(super) whole: bool,
}

/// The same for an array of tables.
#[derive(Debug)]
pub(super) struct Rows<T> {
    pub(super) all: Vec<T>,
    pub(super) whole: bool,
}

impl<N, T> Default for Named<N, T> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), whole: false }
    }
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { all: Vec::new(), whole: false }
    }
}

#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) cluster_name: Read<Label>,
    pub(super) fabrics: Named<Label, FabricDraft>,
    pub(super) networks: Named<Label, NetworkDraft>,
    pub(super) nodes: Rows<GroupDraft>,
    pub(super) hosts: Named<HostName, HostDraft>,
    pub(super) modules: BTreeMap<ModuleName, BTreeMap<ModuleName, ModuleOption>>,
    pub(super) verify: VerifyDraft,
}

#[derive(Debug)]
pub(super) struct FabricDraft {
    /// Where its name stands.
    pub(super) at: Span,
    pub(super) transport: Read<Transport>,
    pub(super) speed: Read<Speed>,
    pub(super) topology: Read<Topology>,
    pub(super) mtu: Read<FabricMtu>,
    /// Whether the file sets `mtu`.
    pub(super) mtu_given: bool,
    pub(super) manager: Option<ManagerDraft>,
    pub(super) partitions: Named<Label, PartitionDraft>,
}

#[derive(Debug)]
pub(super) struct PartitionDraft {
    /// Where its name stands.
    pub(super) at: Span,
    pub(super) pkey: Read<PKey>,
    pub(super) full: Read<Members>,
    pub(super) limited: Read<Members>,
}

#[derive(Debug)]
pub(super) struct ManagerDraft {
    pub(super) at: Span,
    pub(super) primary: Read<HostName>,
    /// Those that could be read; `None` when the array itself could not.
    pub(super) standby: Option<Vec<Located<HostName>>>,
}

#[derive(Debug)]
pub(super) struct NetworkDraft {
    pub(super) at: Span,
    pub(super) fabric: Read<Label>,
    pub(super) on: Read<Layer>,
    pub(super) cidr: Read<IpNet>,
    pub(super) mode: Read<ModeChoice>,
    pub(super) mtu: Read<MtuChoice>,
}

#[derive(Debug)]
pub(super) struct GroupDraft {
    pub(super) hosts: Read<HostList>,
    pub(super) config: Read<ConfigChoice>,
    pub(super) numbering: Read<Numbering>,
    pub(super) stride: Read<i64>,
    pub(super) offset: Read<i64>,
    pub(super) memlock: Read<BTreeSet<UnitName>>,
    pub(super) ports: Rows<PortDraft>,
}

#[derive(Debug)]
pub(super) struct PortDraft {
    /// Read as `None` where the hosts have to say it.
    pub(super) device: Read<Option<DeviceSelector>>,
    pub(super) port: Read<u8>,
    pub(super) interface: Read<IfName>,
    pub(super) networks: Rows<Located<Label>>,
}

#[derive(Debug)]
pub(super) struct HostDraft {
    /// Where its name stands.
    pub(super) at: Span,
    pub(super) ssh: Option<HostName>,
    pub(super) guids: Vec<Entry<IfName, Guid>>,
    pub(super) addresses: Vec<Entry<Label, IpAddr>>,
}

/// A key of the reader's choice, and what it has.
#[derive(Debug)]
pub(super) struct Entry<K, V> {
    pub(super) key: Located<K>,
    pub(super) value: Read<V>,
}

#[derive(Debug, Default)]
pub(super) struct VerifyDraft {
    pub(super) min_bandwidth: Read<MinBandwidth>,
    pub(super) max_latency: Read<Duration>,
}
