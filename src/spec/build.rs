//! From a draft without faults to the spec's values.
//!
//! Nothing is judged here: a value that is absent means that its fault has
//! been reported, and there is no spec.

use std::collections::BTreeMap;

use super::draft::{Draft, Entry, FabricDraft, GroupDraft, HostDraft, NetworkDraft, PartitionDraft, PortDraft, Read};
use super::fault::Located;
use super::model::{Cluster, Fabric, HostException, Network, NodeGroup, Partition, Port, Spec, SubnetManager, Verify};

pub(super) fn build(draft: Draft) -> Option<Spec> {
    let Draft { cluster_name, fabrics, networks, nodes, hosts, modules, verify } = draft;
    Some(Spec {
        cluster: Cluster { name: value(cluster_name)? },
        fabrics: fabrics.all.into_iter().map(|(name, draft)| Some((name, fabric(draft)?))).collect::<Option<_>>()?,
        networks: networks.all.into_iter().map(|(name, draft)| Some((name, network(draft)?))).collect::<Option<_>>()?,
        nodes: nodes.all.into_iter().map(group).collect::<Option<_>>()?,
        hosts: hosts.all.into_iter().map(|(name, draft)| Some((name, host(draft)?))).collect::<Option<_>>()?,
        modules,
        verify: Verify { min_bandwidth: value(verify.min_bandwidth)?, max_latency: value(verify.max_latency)? },
    })
}

fn value<T>(read: Read<T>) -> Option<T> {
    read.map(|Located { value, .. }| value)
}

fn fabric(draft: FabricDraft) -> Option<Fabric> {
    let FabricDraft { at: _, transport, speed, topology, mtu, mtu_given: _, manager, partitions } = draft;
    let subnet_manager = match manager {
        None => None,
        Some(manager) => Some(SubnetManager {
            primary: value(manager.primary)?,
            standby: manager.standby?.into_iter().map(|host| host.value).collect(),
        }),
    };
    Some(Fabric {
        transport: value(transport)?,
        speed: value(speed)?,
        topology: value(topology)?,
        mtu: value(mtu)?,
        subnet_manager,
        partitions: partitions
            .all
            .into_iter()
            .map(|(name, draft)| Some((name, partition(draft)?)))
            .collect::<Option<_>>()?,
    })
}

fn partition(draft: PartitionDraft) -> Option<Partition> {
    let PartitionDraft { at: _, pkey, full, limited } = draft;
    Some(Partition { pkey: value(pkey)?, full: value(full)?, limited: value(limited)? })
}

fn network(draft: NetworkDraft) -> Option<Network> {
    let NetworkDraft { at: _, fabric, on, cidr, mode, mtu } = draft;
    Some(Network { fabric: value(fabric)?, on: value(on)?, cidr: value(cidr)?, mode: value(mode)?, mtu: value(mtu)? })
}

fn group(draft: GroupDraft) -> Option<NodeGroup> {
    let GroupDraft { hosts, config, numbering, stride, offset, memlock, ports } = draft;
    Some(NodeGroup {
        hosts: value(hosts)?,
        config: value(config)?,
        numbering: value(numbering)?,
        stride: value(stride)?,
        offset: value(offset)?,
        memlock: value(memlock)?,
        ports: ports.all.into_iter().map(port).collect::<Option<_>>()?,
    })
}

fn port(draft: PortDraft) -> Option<Port> {
    let PortDraft { device, port, interface, networks } = draft;
    let networks = networks.all.into_iter().map(|network| network.value).collect();
    Some(Port { device: value(device)?, port: value(port)?, interface: value(interface), networks })
}

fn host(draft: HostDraft) -> Option<HostException> {
    let HostDraft { at: _, ssh, guids, addresses } = draft;
    Some(HostException { ssh, guids: entries(guids)?, addresses: entries(addresses)? })
}

fn entries<K: Ord, V>(all: Vec<Entry<K, V>>) -> Option<BTreeMap<K, V>> {
    all.into_iter().map(|Entry { key, value: read }| Some((key.value, value(read)?))).collect()
}
