//! A link as the kernel describes it, reduced to what selvedge looks at.

use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoIpoib, InfoVlan, IpoibMode as WireMode, LinkAttribute,
    LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};

use crate::name::IfName;
use crate::rdma::{Guid, IpoibMode, PKey};
use crate::state::AddressGeneration;
use crate::tag::Tag;

/// Length of an IPoIB hardware address: flags and QPN 4, subnet prefix 8, port GUID 8 (RFC 4391).
const IPOIB_ADDRESS_BYTES: usize = 20;

/// Bit of the first byte of an IPoIB hardware address: reliable connections are supported (RFC 4755).
const RC_CAPABLE: u8 = 0x80;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its number.
    pub(crate) index: u32,
    /// Its name.
    pub(crate) name: IfName,
    /// `IFF_UP`.
    pub(crate) up: bool,
    /// Bytes.
    pub(crate) mtu: u32,
    /// ARPHRD_INFINIBAND.
    pub(crate) infiniband: bool,
    /// The hardware address; empty when there is none.
    pub(crate) hardware_address: Vec<u8>,
    /// The number of the link below it: the parent of a P_Key child or VLAN.
    pub(crate) parent: Option<u32>,
    /// The number of the bond or bridge that it is a port of.
    pub(crate) controller: Option<u32>,
    /// The partition or VLAN that the kernel says it is on; a port's own interface is on the default partition.
    pub(crate) tag: Option<Tag>,
    /// The IPoIB mode, if the kernel said it.
    pub(crate) mode: Option<IpoibMode>,
    /// How the kernel makes its IPv6 link-local address; none where the link has no IPv6.
    pub(crate) link_local: Option<AddressGeneration>,
}

impl Link {
    /// Reads a message; `None` for a link whose name no spec can give.
    pub(super) fn parse(message: &LinkMessage) -> Option<Self> {
        let name = message.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => name.parse().ok(),
            _ => None,
        })?;
        let header = &message.header;
        let mut link = Self {
            index: header.index,
            name,
            up: header.flags.contains(LinkFlags::Up),
            mtu: 0,
            infiniband: header.link_layer_type == LinkLayerType::Infiniband,
            hardware_address: Vec::new(),
            parent: None,
            controller: None,
            tag: None,
            mode: None,
            link_local: None,
        };
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::Mtu(bytes) => link.mtu = *bytes,
                LinkAttribute::Address(bytes) => link.hardware_address.clone_from(bytes),
                LinkAttribute::Link(index) if *index != 0 && *index != header.index => link.parent = Some(*index),
                LinkAttribute::Controller(index) if *index != 0 => link.controller = Some(*index),
                LinkAttribute::AfSpecUnspec(families) => link.link_local = families.iter().find_map(link_local),
                LinkAttribute::LinkInfo(infos) => {
                    link.mode = infos.iter().find_map(mode);
                    link.tag = infos.iter().find_map(tag);
                }
                _ => {}
            }
        }
        Some(link)
    }

    /// The GUID of the InfiniBand port that this is the own interface of.
    ///
    /// A P_Key child has the port's GUID too; what sets it apart is its parent.
    pub(crate) fn port_guid(&self) -> Option<Guid> {
        if !self.infiniband || self.parent.is_some() || self.hardware_address.len() != IPOIB_ADDRESS_BYTES {
            return None;
        }
        let guid = self.hardware_address.last_chunk::<8>()?;
        Some(Guid(u64::from_be_bytes(*guid)))
    }

    /// Whether its driver does the reliable connections that connected mode is made of.
    pub(crate) fn connected_capable(&self) -> bool {
        self.hardware_address.first().is_some_and(|byte| byte & RC_CAPABLE != 0)
    }

    /// Asks sysfs for the IPoIB mode where netlink did not have it (before Linux 3.7).
    pub(super) fn mode_from_sysfs_if_unsaid(&mut self) {
        if self.infiniband && self.mode.is_none() {
            let text = std::fs::read_to_string(format!("/sys/class/net/{}/mode", self.name));
            self.mode = match text.as_deref().map(str::trim) {
                Ok("connected") => Some(IpoibMode::Connected),
                Ok("datagram") => Some(IpoibMode::Datagram),
                _ => None,
            };
        }
    }
}

fn link_local(family: &AfSpecUnspec) -> Option<AddressGeneration> {
    let AfSpecUnspec::Inet6(attributes) = family else { return None };
    attributes.iter().find_map(|attribute| match attribute {
        AfSpecInet6::AddrGenMode(In6AddrGenMode::Eui64) => Some(AddressGeneration::Eui64),
        AfSpecInet6::AddrGenMode(In6AddrGenMode::None) => Some(AddressGeneration::None),
        AfSpecInet6::AddrGenMode(In6AddrGenMode::StablePrivacy) => Some(AddressGeneration::StablePrivacy),
        AfSpecInet6::AddrGenMode(In6AddrGenMode::Random) => Some(AddressGeneration::Random),
        _ => None,
    })
}

fn tag(info: &LinkInfo) -> Option<Tag> {
    let LinkInfo::Data(data) = info else { return None };
    match data {
        InfoData::Ipoib(data) => data.iter().find_map(|item| match item {
            InfoIpoib::Pkey(key) => PKey::new(*key).map(Tag::Pkey),
            _ => None,
        }),
        InfoData::Vlan(data) => data.iter().find_map(|item| match item {
            InfoVlan::Id(number) => Some(Tag::Vlan(*number)),
            _ => None,
        }),
        _ => None,
    }
}

fn mode(info: &LinkInfo) -> Option<IpoibMode> {
    let LinkInfo::Data(InfoData::Ipoib(data)) = info else { return None };
    data.iter().find_map(|item| match item {
        InfoIpoib::Mode(WireMode::Datagram) => Some(IpoibMode::Datagram),
        InfoIpoib::Mode(WireMode::Connected) => Some(IpoibMode::Connected),
        _ => None,
    })
}
