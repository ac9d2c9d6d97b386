//! Why a spec cannot be made so on a host, each with what to do.

use std::fmt;

use thiserror::Error;

use crate::count::counted;
use crate::intent::Origin;
use crate::name::{DeviceName, HostName, IfName, Label};
use crate::rdma::{Guid, IpoibMode, Transport};
use crate::render::RenderError;
use crate::sm::config::ConfigError;
use crate::sm::election::PriorityError;
use crate::state::FilePath;
use crate::tag::Tag;

/// All that stands in the way on one host, at once.
#[derive(Debug, Error)]
pub struct ResolveFaults {
    /// The host.
    pub host: HostName,
    /// At least one.
    pub faults: Vec<ResolveFault>,
}

/// One line for each fault, and a `help:` line under it.
impl fmt::Display for ResolveFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be made as the spec asks: {}", self.host, counted(self.faults.len(), "fault"))?;
        for fault in &self.faults {
            write!(f, "\n\n{fault}")?;
            for help in fault.help() {
                write!(f, "\n  help: {help}")?;
            }
        }
        Ok(())
    }
}

/// One thing that stands in the way.
#[derive(Debug, Error)]
pub enum ResolveFault {
    /// No device is what the selector says.
    #[error("{origin}: no such RDMA device here{}", list_text(present))]
    NoDevice {
        /// The selector.
        origin: Origin,
        /// The ports that are here, one line each.
        present: Vec<String>,
    },
    /// The device has no port of that number.
    #[error("{origin}: {device} has no port {port}{}", list_text(present))]
    NoPort {
        /// The selector.
        origin: Origin,
        /// The device.
        device: DeviceName,
        /// The port asked for.
        port: u8,
        /// The ports that are here, one line each.
        present: Vec<String>,
    },
    /// Two ports of the spec are one port of the host.
    #[error("{origin}: {device} port {port} is already the port of {first}")]
    SamePort {
        /// The second selector.
        origin: Origin,
        /// The first one.
        first: Origin,
        /// The device.
        device: DeviceName,
        /// The port.
        port: u8,
    },
    /// Two interfaces with one name.
    #[error("two interfaces would both be `{name}`: {one}; {other}")]
    SameName {
        /// The name.
        name: IfName,
        /// Why the first one has it.
        one: String,
        /// Why the second one has it.
        other: String,
    },
    /// The port's link layer is another.
    #[error("{origin}: {device} port {port} runs {found}, not {wanted}")]
    WrongTransport {
        /// The fabric's transport.
        origin: Origin,
        /// The device.
        device: DeviceName,
        /// The port.
        port: u8,
        /// What the spec says.
        wanted: Transport,
        /// What the port says.
        found: Transport,
    },
    /// Connected mode is insisted on, and the HCA cannot.
    #[error("{origin}: {device} port {port} ({link}) cannot do connected mode: {why}")]
    CannotConnect {
        /// The mode.
        origin: Origin,
        /// The device.
        device: DeviceName,
        /// The port.
        port: u8,
        /// Its interface.
        link: IfName,
        /// What is known of the reason.
        why: String,
        /// Whether its driver is mlx5, which has a way out of its own.
        mlx5: bool,
    },
    /// More than the mode in effect carries.
    #[error("{origin}: {link} is in {mode} mode, which carries at most {most} bytes: {why}")]
    MtuAboveMode {
        /// The MTU.
        origin: Origin,
        /// The interface.
        link: IfName,
        /// The mode in effect.
        mode: IpoibMode,
        /// The most, bytes.
        most: u32,
        /// Why this mode, or where the limit comes from.
        why: String,
    },
    /// The kernel's name of an interface leaves no room for those of its children.
    #[error("{origin}: `{parent}` leaves no room for the name of an interface for {tag}")]
    ChildName {
        /// The network.
        origin: Origin,
        /// The port's own interface.
        parent: IfName,
        /// The partition or VLAN.
        tag: Tag,
    },
    /// An Ethernet interface would have to be renamed.
    #[error(
        "{origin}: the interface of {device} port {port} is `{current}`, and selvedge renames InfiniBand interfaces only"
    )]
    EthernetName {
        /// The pinned name.
        origin: Origin,
        /// The device.
        device: DeviceName,
        /// The port.
        port: u8,
        /// The name it has.
        current: IfName,
    },
    /// Nothing that keeps a configuration was found.
    #[error("{origin}: nothing that keeps network configuration was found here: {seen}")]
    NoConfigSystem {
        /// The choice.
        origin: Origin,
        /// The evidence.
        seen: String,
    },
    /// The chosen system is not at work here.
    #[error("{origin}: {system} is not at work here: {seen}")]
    NotHere {
        /// The choice.
        origin: Origin,
        /// The system.
        system: &'static str,
        /// The evidence.
        seen: String,
        /// What to do.
        way: &'static str,
    },
    /// initscripts would set another MTU than the one that is asked.
    #[error(
        "{why}: {link} would have an MTU of {} after a reboot and not {mtu}: initscripts' `ifup-ib` cuts it down in datagram mode",
        crate::render::ifcfg::INITSCRIPTS_DATAGRAM_MTU
    )]
    MtuCut {
        /// Where the MTU is from.
        why: String,
        /// The interface.
        link: IfName,
        /// The MTU, bytes.
        mtu: u32,
    },
    /// A file of somebody else decides over a link.
    #[error("{origin}: {link} is configured by {file}, which systemd-networkd reads before {ours} and instead of it")]
    Overridden {
        /// The choice.
        origin: Origin,
        /// The interface.
        link: IfName,
        /// The file in effect.
        file: FilePath,
        /// The name of the file that is to be in effect.
        ours: String,
    },
    /// A program that a file has to name is not installed.
    #[error("{wanted_by}: `{program}` is not installed here")]
    NoProgram {
        /// Why it is needed.
        wanted_by: String,
        /// The program.
        program: &'static str,
        /// The package that brings it.
        package: &'static str,
    },
    /// A manager needs a port of its own on the fabric.
    #[error("{origin}: this host has no InfiniBand port in a network of the fabric `{fabric}`")]
    ManagerWithoutPort {
        /// The entry that makes it a manager.
        origin: Origin,
        /// The fabric.
        fabric: Label,
    },
    /// More managers than there are priorities.
    #[error("{origin}: {source}")]
    Priority {
        /// The entry that makes it a manager.
        origin: Origin,
        /// The rule.
        source: PriorityError,
    },
    /// The manager's files cannot be made.
    #[error("{origin}: {source}")]
    Manager {
        /// The entry that makes it a manager.
        origin: Origin,
        /// Why.
        source: Box<ConfigError>,
    },
    /// A port without a GUID cannot be told from others.
    #[error("{origin}: the port GUID of {device} port {port} is {guid}")]
    NoGuid {
        /// The selector.
        origin: Origin,
        /// The device.
        device: DeviceName,
        /// The port.
        port: u8,
        /// What the port says.
        guid: Guid,
    },
    /// What only the hardware can say, and nothing has said.
    #[error("not known of the HCAs, which an image does not have:{}", list_text_of(ports))]
    HardwareUnknown {
        /// Each port with what is not known of it: `ib0 ([[nodes.ports]] device = "mlx5_0"): its GUID`.
        ports: Vec<String>,
        /// What to do, one line each.
        ways: Vec<String>,
    },
    /// A file cannot be made.
    #[error("a file cannot be made: {0}")]
    Render(#[from] RenderError),
}

impl ResolveFault {
    /// What to do about it, one line each.
    #[must_use]
    pub fn help(&self) -> Vec<String> {
        let one = |text: &str| vec![text.to_owned()];
        match self {
            Self::NoDevice { present, .. } if present.is_empty() => {
                one("`lspci` shows whether the HCA is there, `rdma link` whether its driver is loaded")
            }
            Self::NoDevice { origin, .. } if origin.entry.starts_with("guid") => one(
                "a port that is here has another GUID: a card that was replaced brings its own; correct it in the spec",
            ),
            Self::NoDevice { .. } | Self::NoPort { .. } => {
                one("name one of these; names move with driver upgrades, `guid` and `pci` do not")
            }
            Self::SameName { .. } => {
                one("pin another name, or pin one for each of them, with `interface` in [[nodes.ports]]")
            }
            Self::SamePort { .. } => one("a port of an HCA is one port of the spec"),
            Self::WrongTransport { .. } => one(
                "change the fabric's `transport`, or the port's link type (`mlxconfig -d DEVICE set LINK_TYPE_P1=1` is InfiniBand, 2 is Ethernet)",
            ),
            Self::CannotConnect { mlx5, .. } => ways_out(*mlx5),
            Self::MtuAboveMode { most, .. } => vec![format!("set `mtu = \"max\"`, or at most {most}")],
            Self::ChildName { .. } => one("pin a shorter name with `interface` in [[nodes.ports]]"),
            Self::EthernetName { current, .. } => {
                vec![format!(
                    "set `interface = \"{current}\"`, leave `interface` out, or rename it with a systemd .link file first"
                )]
            }
            Self::NoConfigSystem { .. } => {
                one("install and enable one of them, or say which with `config` in [[nodes]]")
            }
            Self::NotHere { way, .. } => one(way),
            Self::MtuCut { .. } => {
                one("set `mtu = 2044`, or have NetworkManager keep the link, which leaves the MTU alone")
            }
            Self::Overridden { link, file, .. } => overridden(link, file),
            Self::NoProgram { program: "selvedge", .. } => {
                one("copy the `selvedge` binary there first, to /usr/local/bin or /usr/bin")
            }
            Self::NoProgram { package, .. } => vec![format!("install the package {package}")],
            Self::ManagerWithoutPort { .. } => one("give the host a port in such a network, or name another host"),
            Self::NoGuid { .. } => one("the subnet manager or the driver has not set it up: see `ibstat`"),
            Self::HardwareUnknown { ways, .. } => ways.clone(),
            Self::Render(_) | Self::Priority { .. } | Self::Manager { .. } => Vec::new(),
        }
    }
}

/// One on each line.
fn list_text_of(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |text, line| text + "\n    " + line)
}

/// What can be done about a file that comes first.
fn overridden(link: &IfName, file: &FilePath) -> Vec<String> {
    let netplan = file.as_str().strip_prefix("/run/systemd/network/10-netplan-").is_some();
    let way = if netplan {
        format!(
            "netplan made it: take {link} out of the files in /etc/netplan, or set `config = \"netplan\"` in [[nodes]]"
        )
    } else {
        format!("remove {file}, or have its [Match] leave {link} out; then `networkctl reload`")
    };
    vec![way]
}

/// What can be done about an HCA that refuses connected mode.
fn ways_out(mlx5: bool) -> Vec<String> {
    let datagram = "set `mode = \"datagram\"`, or `mode = \"auto\"`, which takes it where nothing else works";
    let enhanced = "with the vendor's OFED drivers, and only there: `ipoib_enhanced = 0` in [modules.ib_ipoib] of the spec; the kernel's own mlx5 driver has no such option";
    let kernel = "use a kernel with CONFIG_INFINIBAND_IPOIB_CM=y";
    vec![datagram.to_owned(), if mlx5 { enhanced } else { kernel }.to_owned()]
}

fn list_text(present: &[String]) -> String {
    if present.is_empty() {
        return "; there is none at all".to_owned();
    }
    "; there is".to_owned() + &list_text_of(present)
}
