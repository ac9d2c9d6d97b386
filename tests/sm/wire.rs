//! The attributes as infiniband-diags reads them.

use selvedge::sm::mad::{Block, NodeDescription, NodeInfo, NodeType, PortInfo, SmInfo, SmState};
use selvedge::spec::FabricMtu;

use crate::fabric::{Fabric, guid};
use crate::managed;

/// What `smpdump` prints for an attribute.
fn dump(fabric: &Fabric, route: &str, attribute: &str, modifier: &str) -> Block {
    let text = fabric.text(3, "smpdump", &["-D", route, attribute, modifier]);
    let lines =
        text.lines().filter(|l| l.split_whitespace().all(|w| w.len() == 4 && u16::from_str_radix(w, 16).is_ok()));
    let bytes: Vec<u8> =
        lines.flat_map(str::split_whitespace).flat_map(|w| u16::from_str_radix(w, 16).unwrap().to_be_bytes()).collect();
    bytes.try_into().unwrap_or_else(|_| panic!("{text}"))
}

/// A value that `smpquery` prints after dots.
fn value(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|l| l.strip_prefix(name).and_then(|l| l.strip_prefix(":."))).unwrap();
    line.trim_start_matches('.').trim().to_owned()
}

pub(crate) fn attributes_read_as_smpquery_reads_them() {
    let mut fabric = Fabric::start(3);
    managed::start(&mut fabric, 1, 0, FabricMtu::B2048);
    fabric.wait_for(3, 1, "SMINFO_MASTER");
    for (route, port) in [("0,1,1", "1"), ("0,1,2", "1"), ("0", "1"), ("0,1", "0"), ("0,1", "2"), ("0,1", "4")] {
        port_info(&fabric, route, port);
    }
    let node = NodeInfo::decode(&dump(&fabric, "0,1,1", "0x11", "0"));
    let text = fabric.text(3, "smpquery", &["-D", "nodeinfo", "0,1,1"]);
    assert_eq!(node.port_guid, guid(1));
    assert_eq!(node.node_guid.to_string(), value(&text, "Guid"));
    assert_eq!(node.node_type, NodeType::Ca);
    assert_eq!(node.ports.to_string(), value(&text, "NumPorts"));
    assert_eq!(node.local_port.to_string(), value(&text, "LocalPort"));
    assert_eq!(node.partition_cap.to_string(), value(&text, "PartCap"));
    assert_eq!(format!("0x{:08x}", node.revision), value(&text, "Revision"));
    let switch = NodeInfo::decode(&dump(&fabric, "0,1", "0x11", "0"));
    assert_eq!((switch.node_type, switch.ports, switch.local_port), (NodeType::Switch, 4, 3));
    let text = fabric.text(3, "smpquery", &["-D", "nodedesc", "0,1,1"]);
    assert_eq!(
        NodeDescription::decode(&dump(&fabric, "0,1,1", "0x10", "0")).as_str(),
        value(&text, "Node Description")
    );
    let info = SmInfo::decode(&dump(&fabric, "0,1,1", "0x20", "0"));
    assert_eq!((info.guid, info.priority.get(), info.state), (guid(1), 14, SmState::Master));
    assert_eq!(fabric.sminfo(3, 1), Some((14, "SMINFO_MASTER".to_owned())));
}

fn port_info(fabric: &Fabric, route: &str, port: &str) {
    let block = dump(fabric, route, "0x15", port);
    let text = fabric.text(3, "smpquery", &["-D", "portinfo", route, port]);
    let info = PortInfo::decode(&block);
    let at = format!("{route} port {port}");
    assert_eq!(info.lid.to_string(), value(&text, "Lid"), "{at}");
    assert_eq!(info.master_sm_lid.to_string(), value(&text, "SMLid"), "{at}");
    assert_eq!(format!("0x{:x}", info.capability_mask), value(&text, "CapMask"), "{at}");
    assert_eq!(info.is_sm(), text.lines().any(|l| l.trim() == "IsSM"), "{at}");
    assert_eq!(info.lmc.to_string(), value(&text, "LMC"), "{at}");
    assert_eq!(info.neighbor_mtu.to_string(), value(&text, "NeighborMTU"), "{at}");
    assert_eq!(info.mtu_cap.to_string(), value(&text, "MtuCap"), "{at}");
    assert_eq!(info.state.to_string(), value(&text, "LinkState").to_lowercase(), "{at}");
    let physical = value(&text, "PhysLinkState").to_lowercase();
    assert_eq!(info.physical_state.to_string().replace(' ', ""), physical, "{at}");
    let width = match info.link_width_active {
        1 => "1X",
        2 => "4X",
        4 => "8X",
        8 => "12X",
        _ => "?",
    };
    assert_eq!(width, value(&text, "LinkWidthActive"), "{at}");
}
