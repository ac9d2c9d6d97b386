//! The objects that selvedge manages on a node.

use std::fmt;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FilePath, Route, SysctlKey};
use crate::name::{IfName, ModuleName, UnitName};
use crate::rdma::Guid;
use crate::tag::Tag;

/// A thing on a node whose state can be looked at and changed.
///
/// The order of the variants is the order in which changes are made: what a
/// reboot will read first, then what runs, from the parent link outwards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Object {
    /// A regular file or a symbolic link.
    File {
        /// Where, from the root of the file system.
        path: FilePath,
    },
    /// Whether a program has read its files since they last changed.
    Reload {
        /// Which program.
        system: ConfigSystem,
    },
    /// A kernel module.
    Module {
        /// Its name, with `_`.
        name: ModuleName,
    },
    /// The network interface of an InfiniBand port, found by the port's GUID.
    Interface {
        /// The port's GUID: the last 8 bytes of the hardware address.
        guid: Guid,
    },
    /// An interface on a port's own one, for a partition or VLAN.
    Child {
        /// Its name.
        link: IfName,
        /// The interface that it is on.
        parent: IfName,
        /// The partition or VLAN.
        tag: Tag,
    },
    /// The IPoIB mode of a link.
    LinkMode {
        /// The interface.
        link: IfName,
    },
    /// The MTU of a link, bytes.
    LinkMtu {
        /// The interface.
        link: IfName,
    },
    /// Whether the link is up (`IFF_UP`); carrier is another matter.
    LinkUp {
        /// The interface.
        link: IfName,
    },
    /// How the kernel makes a link's IPv6 link-local address. Never wanted: a network daemon that configures the link
    /// turns it off, and it is put back by a rollback.
    LinkLocal {
        /// The interface.
        link: IfName,
    },
    /// An IP address with its prefix on a link.
    Address {
        /// The interface.
        link: IfName,
        /// Address and prefix length.
        #[schemars(with = "String")]
        address: IpNet,
    },
    /// A route over a link. None is managed yet: those of others are seen so that they can be put back.
    Route {
        /// The interface.
        link: IfName,
        /// The route; large, and rare among objects.
        route: Box<Route>,
    },
    /// A network setting of the kernel.
    Sysctl {
        /// Its path below `/proc/sys`.
        key: SysctlKey,
    },
    /// A systemd unit that runs or does not.
    Unit {
        /// Its name with its type.
        name: UnitName,
    },
}

/// A program that keeps configuration in files and has to be told to read them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is the program of that name")]
pub enum ConfigSystem {
    Udev,
    Systemd,
    Netplan,
    Networkd,
    NetworkManager,
    /// A service that reads its files when it starts: it is restarted if it runs.
    Unit(UnitName),
}

/// Where the configuration of each subnet manager is: `FABRIC.conf` and what belongs to it.
pub const OPENSM_FOLDER: &str = "/etc/selvedge/opensm/";

/// The unit that undoes an interrupted apply at boot: written before anything else.
pub const RECOVER_UNIT: &str = "/etc/systemd/system/selvedge-recover.service";

/// The link that enables it.
pub const RECOVER_ENABLEMENT: &str = "/etc/systemd/system/sysinit.target.wants/selvedge-recover.service";

/// The unit that runs the subnet manager of a fabric.
#[must_use]
pub fn opensm_unit(fabric: &str) -> Option<UnitName> {
    format!("selvedge-opensm-{fabric}.service").parse().ok()
}

impl ConfigSystem {
    /// The program that reads `path`, if one has to be told that it changed. initscripts and wicked read a file when
    /// they bring its link up, and are told nothing.
    #[must_use]
    pub fn reading(path: &FilePath) -> Option<Self> {
        let path = path.as_str();
        let under = |folder: &str| path.starts_with(folder);
        if under("/etc/udev/rules.d/") {
            Some(Self::Udev)
        } else if under("/etc/systemd/system/") {
            Some(Self::Systemd)
        } else if under("/etc/netplan/") {
            Some(Self::Netplan)
        } else if under("/etc/systemd/network/") {
            Some(Self::Networkd)
        } else if under("/etc/NetworkManager/") || under("/etc/sysconfig/network-scripts/") {
            Some(Self::NetworkManager)
        } else {
            let file = path.strip_prefix(OPENSM_FOLDER)?;
            let fabric = file.split_once('.').map_or(file, |(fabric, _)| fabric);
            opensm_unit(fabric).map(Self::Unit)
        }
    }
}

impl fmt::Display for ConfigSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Udev => "udev",
            Self::Systemd => "systemd",
            Self::Netplan => "netplan",
            Self::Networkd => "systemd-networkd",
            Self::NetworkManager => "NetworkManager",
            Self::Unit(name) => name.as_str(),
        })
    }
}

impl Object {
    /// The link that this object is part of, if it is named by one.
    #[must_use]
    pub fn link(&self) -> Option<&IfName> {
        match self {
            Self::Child { link, .. }
            | Self::LinkUp { link }
            | Self::LinkMode { link }
            | Self::LinkMtu { link }
            | Self::LinkLocal { link }
            | Self::Address { link, .. }
            | Self::Route { link, .. } => Some(link),
            Self::File { .. }
            | Self::Reload { .. }
            | Self::Module { .. }
            | Self::Interface { .. }
            | Self::Sysctl { .. }
            | Self::Unit { .. } => None,
        }
    }

    /// True for what outlives a reboot: all else is made anew at boot from it.
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// True for what a link carries and does not come with it: whoever configures the link anew can drop it.
    #[must_use]
    pub fn is_carried(&self) -> bool {
        matches!(self, Self::Address { .. } | Self::Route { .. })
    }

    /// True for an attribute that exists exactly while its link does.
    #[must_use]
    pub fn is_attribute(&self) -> bool {
        matches!(self, Self::LinkUp { .. } | Self::LinkMode { .. } | Self::LinkMtu { .. } | Self::LinkLocal { .. })
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path } => write!(f, "file {path}"),
            Self::Reload { system } => write!(f, "{system} configuration"),
            Self::Module { name } => write!(f, "module {name}"),
            Self::Interface { guid } => write!(f, "interface of port {guid}"),
            Self::Child { link, parent, tag } => write!(f, "{link} on {parent} ({tag})"),
            Self::LinkUp { link } => write!(f, "{link} link"),
            Self::LinkMode { link } => write!(f, "{link} IPoIB mode"),
            Self::LinkMtu { link } => write!(f, "{link} MTU"),
            Self::LinkLocal { link } => write!(f, "{link} IPv6 link-local address"),
            Self::Address { link, address } => write!(f, "{link} address {address}"),
            Self::Route { link, route } => write!(f, "{link} route {route}"),
            Self::Sysctl { key } => write!(f, "sysctl {key}"),
            Self::Unit { name } => write!(f, "unit {name}"),
        }
    }
}
