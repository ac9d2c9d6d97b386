//! Changes of links and addresses.

use std::io::{self, Write};
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use netlink_packet_route::link::{
    InfoData, InfoIpoib, InfoKind, InfoVlan, IpoibMode as WireMode, LinkAttribute, LinkExtentMask, LinkFlags, LinkInfo,
    LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;

use super::{Address, KernelError, Link, Netlink, RequestError};
use crate::machine::MachineError;
use crate::name::IfName;
use crate::rdma::IpoibMode;
use crate::state::{AddressGeneration, Object, State};
use crate::tag::Tag;

impl Netlink {
    /// Makes `object` be `after`.
    pub(crate) fn perform(&self, object: &Object, after: &State) -> Result<(), MachineError> {
        match (object, after) {
            (Object::Interface { guid }, State::Named { name }) => self.name_interface(*guid, name),
            (Object::Child { link, parent, tag }, State::Present) => {
                self.add_child(link, parent, *tag).map_err(|error| refused(object, after, error))
            }
            (Object::Child { link, .. }, State::Absent) => {
                self.remove_child(link).map_err(|error| refused(object, after, error))
            }
            (Object::LinkMode { link }, State::Mode { mode }) => self.set_mode(link, *mode),
            (Object::LinkMtu { .. }, State::Mtu { bytes }) => {
                self.set_link(object, after, |message| message.attributes.push(LinkAttribute::Mtu(*bytes)))
            }
            (Object::LinkUp { .. }, State::Up | State::Down) => {
                self.set_link(object, after, |message| fill_up(message, *after == State::Up))
            }
            (Object::LinkLocal { link }, State::Made { by }) => {
                write_generation(link, *by).map_err(|error| refused(object, after, error))
            }
            (Object::Address { link, address }, State::Present) => self.add_address(object, link, *address),
            (Object::Address { link, address }, State::Absent) => self.remove_address(object, link, *address),
            (Object::Route { link, route }, State::Present) => self.add_route(object, link, route),
            _ => Err(MachineError::Impossible { object: object.clone(), state: after.to_string() }),
        }
    }

    /// One that is there already is judged by whoever reads it back.
    fn add_child(&self, name: &IfName, parent: &IfName, tag: Tag) -> io::Result<()> {
        let (kind, data) = match tag {
            Tag::Pkey(pkey) => (InfoKind::Ipoib, InfoData::Ipoib(vec![InfoIpoib::Pkey(pkey.full())])),
            Tag::Vlan(number) => (InfoKind::Vlan, InfoData::Vlan(vec![InfoVlan::Id(number)])),
        };
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.to_string()),
            LinkAttribute::Link(self.link(parent)?.index),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind), LinkInfo::Data(data)]),
        ];
        match self.ask(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL) {
            Err(error) if errno_of(&error) == Some(Errno::EEXIST) => Ok(()),
            other => other,
        }
    }

    fn remove_child(&self, name: &IfName) -> io::Result<()> {
        let gone = |result: io::Result<()>| match result {
            Err(error) if errno_of(&error) == Some(Errno::ENODEV) => Ok(()),
            other => other,
        };
        let link = match self.link(name) {
            Ok(link) => link,
            Err(error) => return gone(Err(error)),
        };
        let mut message = LinkMessage::default();
        message.header.index = link.index;
        gone(self.ask(RouteNetlinkMessage::DelLink(message), 0))
    }

    fn set_link(
        &self,
        object: &Object,
        after: &State,
        fill: impl FnOnce(&mut LinkMessage),
    ) -> Result<(), MachineError> {
        let refuse = |error| refused(object, after, error);
        let Some(name) = object.link() else {
            return Err(MachineError::Impossible { object: object.clone(), state: after.to_string() });
        };
        self.change_link(self.link(name).map_err(refuse)?.index, fill).map_err(refuse)
    }

    /// Changes the link with the number `index`.
    ///
    /// `RTM_NEWLINK` without `NLM_F_CREATE` changes and never makes a link;
    /// `RTM_SETLINK` would not reach what belongs to the link's kind.
    pub(super) fn change_link(&self, index: u32, fill: impl FnOnce(&mut LinkMessage)) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        fill(&mut message);
        self.ask(RouteNetlinkMessage::NewLink(message), 0)
    }

    pub(super) fn set_up(&self, index: u32, up: bool) -> io::Result<()> {
        self.change_link(index, |message| fill_up(message, up))
    }

    fn set_mode(&self, name: &IfName, mode: IpoibMode) -> Result<(), MachineError> {
        let object = Object::LinkMode { link: name.clone() };
        let after = State::Mode { mode };
        let refuse = |error| refused(&object, &after, error);
        let link = self.link(name).map_err(refuse)?;
        if link.mode == Some(mode) {
            return Ok(());
        }
        if mode == IpoibMode::Connected && link.infiniband && !link.connected_capable() {
            return Err(MachineError::NoConnectedMode { link: name.clone() });
        }
        let wire = match mode {
            IpoibMode::Datagram => WireMode::Datagram,
            IpoibMode::Connected => WireMode::Connected,
        };
        let data = InfoData::Ipoib(vec![InfoIpoib::Mode(wire)]);
        let info = LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Ipoib), LinkInfo::Data(data)]);
        let changed = self.change_link(link.index, |message| message.attributes.push(info));
        match changed {
            // A link whose driver made it without netlink operations: sysfs has the same switch.
            Err(error) if link.infiniband && errno_of(&error) == Some(Errno::EOPNOTSUPP) => {
                write_mode(name, mode).map_err(refuse)
            }
            // The kernel sets the mode, lets go of its lock and gives this when somebody else took it: what is read back
            // decides.
            Err(error) if errno_of(&error) == Some(Errno::EBUSY) => Ok(()),
            other => other.map_err(refuse),
        }
    }

    fn add_address(&self, object: &Object, name: &IfName, net: IpNet) -> Result<(), MachineError> {
        let refuse = |error| refused(object, &State::Present, error);
        let index = self.link(name).map_err(refuse)?.index;
        match self.put_address(index, net) {
            Err(error) if errno_of(&error) == Some(Errno::EEXIST) => Ok(()),
            other => other.map_err(refuse),
        }
    }

    /// Removes an address, and no other.
    ///
    /// With the last primary of a subnet the kernel drops its secondaries,
    /// unless `promote_secondaries` is set: they are put back.
    fn remove_address(&self, object: &Object, name: &IfName, net: IpNet) -> Result<(), MachineError> {
        let refuse = |error| refused(object, &State::Absent, error);
        let link = match self.link(name) {
            // Its addresses went with it.
            Err(error) if errno_of(&error) == Some(Errno::ENODEV) => return Ok(()),
            other => other.map_err(refuse)?,
        };
        let with_it = secondaries(net, link.index, &self.addresses()?);
        let message = RouteNetlinkMessage::DelAddress(address_message(link.index, net));
        match self.ask(message, 0) {
            Err(error) if matches!(errno_of(&error), Some(Errno::EADDRNOTAVAIL | Errno::ENODEV | Errno::ENXIO)) => {
                return Ok(());
            }
            other => other.map_err(refuse)?,
        }
        for lost in with_it {
            match self.put_address(link.index, lost) {
                Err(error) if errno_of(&error) == Some(Errno::EEXIST) => {}
                other => other.map_err(refuse)?,
            }
        }
        Ok(())
    }

    fn put_address(&self, index: u32, net: IpNet) -> io::Result<()> {
        let mut message = address_message(index, net);
        if let IpNet::V4(net) = net
            && net.prefix_len() < 31
        {
            message.attributes.push(AddressAttribute::Broadcast(net.broadcast()));
        }
        self.ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    pub(super) fn ask(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.answers(message, flags).map(drop)
    }

    fn answers(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
        match self.request(message, flags) {
            Ok(found) => Ok(found),
            Err(RequestError::Kernel(error)) => Err(error.into()),
            Err(RequestError::Lost(why)) => Err(io::Error::other(why)),
        }
    }

    /// The link called `name`.
    pub(super) fn link(&self, name: &IfName) -> io::Result<Link> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_string()));
        message.attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
        let found = self.answers(RouteNetlinkMessage::GetLink(message), 0)?;
        let link = found.iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(message) => Link::parse(message),
            _ => None,
        });
        link.ok_or_else(|| KernelError { errno: Errno::ENODEV, message: None }.into())
    }
}

fn fill_up(message: &mut LinkMessage, up: bool) {
    message.header.change_mask = LinkFlags::Up;
    message.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
}

/// The secondaries that share the subnet of `net` on its link.
fn secondaries(net: IpNet, link: u32, addresses: &[Address]) -> Vec<IpNet> {
    let lost = |address: &&Address| {
        address.link == link && address.secondary && address.net != net && address.net.trunc() == net.trunc()
    };
    addresses.iter().filter(lost).map(|address| address.net).collect()
}

fn address_message(index: u32, net: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.prefix_len = net.prefix_len();
    let (family, scope) = match net.addr() {
        IpAddr::V4(ip) if ip.is_link_local() => (AddressFamily::Inet, AddressScope::Link),
        IpAddr::V4(_) => (AddressFamily::Inet, AddressScope::Universe),
        IpAddr::V6(_) => (AddressFamily::Inet6, AddressScope::Universe),
    };
    message.header.family = family;
    message.header.scope = scope;
    message.attributes = vec![AddressAttribute::Local(net.addr()), AddressAttribute::Address(net.addr())];
    message
}

/// The kernel compares the word with its newline (ipoib_set_mode): without one it is refused.
fn write_mode(link: &IfName, mode: IpoibMode) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).open(format!("/sys/class/net/{link}/mode"))?;
    file.write_all(format!("{mode}\n").as_bytes())
}

/// By sysctl, which makes the address at once; netlink sets the same for the next time that the link gets carrier.
fn write_generation(link: &IfName, by: AddressGeneration) -> io::Result<()> {
    let number = match by {
        AddressGeneration::Eui64 => "0",
        AddressGeneration::None => "1",
        AddressGeneration::StablePrivacy => "2",
        AddressGeneration::Random => "3",
    };
    let path = format!("/proc/sys/net/ipv6/conf/{link}/addr_gen_mode");
    std::fs::OpenOptions::new().write(true).open(path)?.write_all(number.as_bytes())
}

/// The kernel's number in an error, from netlink or from a file.
pub(super) fn errno_of(error: &io::Error) -> Option<Errno> {
    if let Some(raw) = error.raw_os_error() {
        return Some(Errno::from_raw(raw));
    }
    error.get_ref()?.downcast_ref::<KernelError>().map(|error| error.errno)
}

pub(super) fn refused(object: &Object, after: &State, source: io::Error) -> MachineError {
    MachineError::Refused { object: object.clone(), asked: after.to_string(), source }
}
