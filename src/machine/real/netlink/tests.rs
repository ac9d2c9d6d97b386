use ipnet::IpNet;
use netlink_packet_route::link::{
    InfoData, InfoIpoib, InfoKind, IpoibMode as WireMode, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType,
    LinkMessage,
};

use super::*;
use crate::rdma::{Guid, IpoibMode};

const GUID: Guid = Guid(0x0002_c903_0000_0001);

fn ipoib(index: u32, name: &str, parent: Option<u32>) -> LinkMessage {
    let mut address = vec![0x80, 0, 0, 0x48, 0xfe, 0x80, 0, 0, 0, 0, 0, 0];
    address.extend(GUID.0.to_be_bytes());
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.link_layer_type = LinkLayerType::Infiniband;
    message.header.flags = LinkFlags::Up;
    message.attributes = vec![
        LinkAttribute::IfName(name.into()),
        LinkAttribute::Mtu(2044),
        LinkAttribute::Address(address),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Ipoib),
            LinkInfo::Data(InfoData::Ipoib(vec![InfoIpoib::Pkey(0xffff), InfoIpoib::Mode(WireMode::Datagram)])),
        ]),
    ];
    message.attributes.extend(parent.map(LinkAttribute::Link));
    message
}

fn links() -> Vec<Link> {
    [ipoib(7, "ib0.8001", Some(3)), ipoib(3, "ib0", None)].iter().filter_map(Link::parse).collect()
}

fn address(link: u32, net: &str) -> Address {
    Address { link, net: net.parse().unwrap(), secondary: false, duplicate: false }
}

fn on_ib0(net: &str) -> Object {
    Object::Address { link: "ib0".parse().unwrap(), address: net.parse::<IpNet>().unwrap() }
}

#[test]
fn a_port_is_found_by_its_guid_and_never_its_child() {
    let scope = [Object::Interface { guid: GUID }, Object::Interface { guid: Guid(5) }];
    let states = view::states(&scope, &links(), &[], &[]);
    assert_eq!(states[&scope[0]], State::Named { name: "ib0".parse().unwrap() });
    assert_eq!(states[&scope[1]], State::Absent);
    assert_eq!(states.len(), 2, "links that only have a GUID in the scope are not looked into");
}

#[test]
fn a_link_in_scope_shows_all_it_has() {
    let scope = [on_ib0("10.0.0.1/16"), on_ib0("fe80::1/64")];
    let addresses = [
        address(3, "10.0.0.2/16"),
        address(3, "fe80::1/64"),
        address(3, "fe80::2/64"),
        address(7, "10.0.0.1/16"),
        Address { duplicate: true, ..address(3, "2001:db8::1/64") },
    ];
    let states = view::states(&scope, &links(), &addresses, &[]);
    let link = || "ib0".parse().unwrap();
    assert_eq!(states[&Object::LinkUp { link: link() }], State::Up);
    assert_eq!(states[&Object::LinkMtu { link: link() }], State::Mtu { bytes: 2044 });
    assert_eq!(states[&Object::LinkMode { link: link() }], State::Mode { mode: IpoibMode::Datagram });
    assert_eq!(states[&on_ib0("10.0.0.1/16")], State::Absent);
    assert_eq!(states[&on_ib0("10.0.0.2/16")], State::Present);
    assert_eq!(states[&on_ib0("fe80::1/64")], State::Present);
    assert!(!states.contains_key(&on_ib0("fe80::2/64")), "the kernel's own");
    assert!(matches!(states[&on_ib0("2001:db8::1/64")], State::Unknown { .. }));
}

#[test]
fn a_link_that_is_not_there_has_nothing() {
    let link = || "ib9".parse().unwrap();
    let scope = [Object::LinkMtu { link: link() }, Object::LinkMode { link: link() }];
    let states = view::states(&scope, &links(), &[], &[]);
    assert_eq!(states.into_values().collect::<Vec<_>>(), [State::Absent, State::Absent]);
}

#[test]
fn a_lost_socket_is_not_a_kernel_without_links() {
    let netlink = Netlink::open(Arc::new(runtime().unwrap())).unwrap();
    assert!(!netlink.links().unwrap().is_empty());
    netlink.connection.abort();
    let error = netlink.links().unwrap_err();
    assert!(matches!(error, MachineError::Netlink(_)), "{error}");
}
