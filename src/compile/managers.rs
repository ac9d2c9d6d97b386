//! A host's part in managing fabrics, and the ports that managers know by GUID.

use super::{locate, selector};
use crate::intent::{ManagerRole, Membership, Origin, PartitionRole};
use crate::name::{HostName, Label};
use crate::rdma::Guid;
use crate::spec::{DeviceSelector, Fabric, Layer, Members, Partition, Port, Spec};

/// The fabrics that a host manages, and what it has to know of each.
pub(super) fn of(spec: &Spec, host: &HostName) -> Vec<ManagerRole> {
    let role = |(label, fabric): (&Label, &Fabric)| {
        let manager = fabric.subnet_manager.as_ref()?;
        let managers: Vec<HostName> = std::iter::once(&manager.primary).chain(&manager.standby).cloned().collect();
        let rank = managers.iter().position(|name| name == host)?;
        let guids = managers.iter().filter_map(|host| guid_on(spec, host, label)).collect();
        let entry = match rank {
            0 => format!("primary = \"{host}\""),
            _ => format!("standby has \"{host}\""),
        };
        let origin = Origin { table: format!("[fabrics.{label}.subnet-manager]").into(), entry: entry.into() };
        let partitions = fabric.partitions.iter().map(|(name, one)| partition_role(spec, label, name, one)).collect();
        Some(ManagerRole { fabric: label.clone(), rank, managers, guids, fabric_mtu: fabric.mtu, partitions, origin })
    };
    spec.fabrics.iter().filter_map(role).collect()
}

fn partition_role(spec: &Spec, fabric: &Label, name: &Label, partition: &Partition) -> PartitionRole {
    let lists = [(&partition.full, Membership::Full), (&partition.limited, Membership::Limited)];
    let rest = lists.iter().find(|(members, _)| **members == Members::All).map(|(_, membership)| *membership);
    let mut ports = Vec::new();
    for (members, membership) in lists {
        if let Members::Hosts(hosts) = members {
            let guids = hosts.iter().flat_map(|host| member_ports(spec, &host, fabric, name));
            ports.extend(guids.map(|guid| (guid, membership)));
        }
    }
    PartitionRole { name: name.clone(), pkey: partition.pkey, rest, ports }
}

/// The GUID of the host's first port on a fabric, where the spec selects it by GUID.
#[must_use]
pub fn guid_on(spec: &Spec, host: &HostName, fabric: &Label) -> Option<Guid> {
    guids_on(spec, host, fabric).into_iter().next()?.1
}

/// The host's ports on a fabric, in their order, each with its GUID where the spec selects it by that.
fn guids_on<'s>(spec: &'s Spec, host: &HostName, fabric: &Label) -> Vec<(&'s Port, Option<Guid>)> {
    let Some((host, group)) = locate(spec, host) else { return Vec::new() };
    let is_on = |port: &&Port| {
        port.networks.first().and_then(|name| spec.networks.get(name)).is_some_and(|network| network.fabric == *fabric)
    };
    let guid = |port: &Port| match selector(spec, &host, port)?.value {
        DeviceSelector::Guid(guid) => Some(guid),
        DeviceSelector::Name(_) | DeviceSelector::Pci(_) => None,
    };
    group.ports.iter().filter(is_on).map(|port| (port, guid(port))).collect()
}

/// The host's ports that are members of a partition whose members are named: those in its networks, or all if none is.
fn member_ports(spec: &Spec, host: &HostName, fabric: &Label, partition: &Label) -> Vec<Guid> {
    let ports = guids_on(spec, host, fabric);
    let on = |name: &Label| spec.networks.get(name).map(|network| &network.on);
    let joins = |port: &Port| {
        port.networks.iter().any(|name| matches!(on(name), Some(Layer::Partition(own)) if own == partition))
    };
    let some_join = ports.iter().any(|(port, _)| joins(port));
    ports.into_iter().filter(|(port, _)| !some_join || joins(port)).filter_map(|(_, guid)| guid).collect()
}
