//! From a port of the spec to a port of the host, with its mode and MTU.

use super::fault::ResolveFault;
use crate::facts::{Device, Facts, Netdev, PortFacts};
use crate::intent::{AddressIntent, LinkIntent, PortIntent, Sourced};
use crate::name::IfName;
use crate::rdma::{CONNECTED_MTU, IPOIB_HEADER_BYTES, IpoibMode, ROCE_MTU, Transport};
use crate::render::{Chosen, LinkConfig, On};
use crate::spec::{DeviceSelector, ModeChoice, MtuChoice};

/// A port of the spec found on the host.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) intent: &'a PortIntent,
    pub(super) device: &'a Device,
    pub(super) port: &'a PortFacts,
}

/// What becomes of the port's interface.
#[derive(Debug)]
pub(super) struct Link {
    /// The name that it has now.
    pub(super) current: IfName,
    /// What it is to be.
    pub(super) config: LinkConfig,
    /// Why the mode cannot be set before something else happens.
    pub(super) waits: Option<String>,
    /// What the reader should know.
    pub(super) note: Option<String>,
}

impl<'a> Found<'a> {
    /// `mlx5_0 port 1`
    pub(super) fn name(&self) -> String {
        format!("{} port {}", self.device.name, self.port.number)
    }

    /// Finds the port that `intent` selects, of the transport that it says.
    pub(super) fn find(intent: &'a PortIntent, facts: &'a Facts) -> Result<Self, ResolveFault> {
        let origin = || intent.device.origin.clone();
        let has = |device: &&Device| match &intent.device.value {
            DeviceSelector::Name(name) => device.name == *name,
            DeviceSelector::Pci(address) => device.pci.as_deref() == Some(&address.to_string()),
            DeviceSelector::Guid(guid) => device.ports.iter().any(|port| port.guid == *guid),
        };
        let is = |port: &&PortFacts| match &intent.device.value {
            DeviceSelector::Guid(guid) => port.guid == *guid,
            DeviceSelector::Name(_) | DeviceSelector::Pci(_) => port.number == intent.port,
        };
        let Some(device) = facts.devices.iter().find(has) else {
            return Err(ResolveFault::NoDevice { origin: origin(), present: present(facts) });
        };
        let Some(port) = device.ports.iter().find(is) else {
            let (device, port, present) = (device.name.clone(), intent.port, present(facts));
            return Err(ResolveFault::NoPort { origin: origin(), device, port, present });
        };
        if port.transport != intent.transport.value {
            return Err(ResolveFault::WrongTransport {
                origin: intent.transport.origin.clone(),
                device: device.name.clone(),
                port: port.number,
                wanted: intent.transport.value,
                found: port.transport,
            });
        }
        if port.transport == Transport::Infiniband && port.guid.0 == 0 {
            let (device, port, guid) = (device.name.clone(), port.number, port.guid);
            return Err(ResolveFault::NoGuid { origin: origin(), device, port, guid });
        }
        Ok(Self { intent, device, port })
    }

    /// What becomes of its interfaces, its own first; none while it has no interface.
    pub(super) fn links(&self, option_asked: bool, kernel: &str) -> Result<Vec<Link>, ResolveFault> {
        let Some(netdev) = &self.port.netdev else { return Ok(Vec::new()) };
        let own = self.link_name(netdev)?;
        let mut links = Vec::new();
        for intent in &self.intent.links {
            links.push(self.link(intent, &own, netdev, option_asked, kernel)?);
        }
        let children =
            links.iter().filter_map(|link| Some((link.config.name.value.clone(), link.config.on.as_ref()?.tag.value)));
        let children: Vec<_> = children.collect();
        if self.port.transport == Transport::Roce {
            self.fit_vlans(&mut links);
        }
        if let Some(own) = links.first_mut() {
            own.config.children = children;
        }
        Ok(links)
    }

    /// A VLAN sends by the interface it is on: that takes the largest MTU of its VLANs if no network is on it, and
    /// otherwise is the most that they have, which `check` holds against what the spec says in bytes.
    fn fit_vlans(&self, links: &mut [Link]) {
        let Some((own, vlans)) = links.split_first_mut() else { return };
        if own.config.addresses.is_empty() {
            let largest = vlans.iter().map(|vlan| &vlan.config.mtu).max_by_key(|mtu| mtu.value);
            own.config.mtu = largest.unwrap_or(&own.config.mtu).clone();
            return;
        }
        for (vlan, intent) in vlans.iter_mut().zip(self.intent.links.iter().skip(1)) {
            if intent.mtu.value == MtuChoice::Max {
                vlan.config.mtu = own.config.mtu.clone();
            }
        }
    }

    fn link(
        &self,
        intent: &LinkIntent,
        own: &Chosen<IfName>,
        netdev: &Netdev,
        option_asked: bool,
        kernel: &str,
    ) -> Result<Link, ResolveFault> {
        let (name, current, on) = match &intent.tag {
            None => (own.clone(), netdev.name.clone(), None),
            Some(tag) => {
                let child = |parent: &IfName| {
                    tag.value.child_of(parent).map_err(|_| ResolveFault::ChildName {
                        origin: tag.origin.clone(),
                        parent: parent.clone(),
                        tag: tag.value,
                    })
                };
                let why = tag.origin.to_string();
                let on = On { parent: own.value.clone(), tag: Chosen { value: tag.value, why } };
                let why = format!("{}: {} of {}", tag.origin, tag.value, self.name());
                (Chosen { value: child(&own.value)?, why }, child(&netdev.name)?, Some(on))
            }
        };
        let (mode, waits, note) = match self.port.transport {
            Transport::Roce => (None, None, None),
            Transport::Infiniband => self.mode(&intent.mode, netdev, option_asked, kernel)?,
        };
        let mtu = self.mtu(&intent.mtu, &name.value, mode.as_ref())?;
        let address = |one: &AddressIntent| Chosen { value: one.address.value, why: one.address.origin.to_string() };
        let addresses = intent.addresses.iter().map(address).collect();
        let transport = self.port.transport;
        // What is said of the port's own interface holds for those on it.
        let note = note.filter(|_| on.is_none());
        let config = LinkConfig { name, transport, mode, mtu, addresses, on, children: Vec::new() };
        Ok(Link { current, config, waits, note })
    }

    fn link_name(&self, netdev: &Netdev) -> Result<Chosen<IfName>, ResolveFault> {
        let Some(pinned) = &self.intent.interface else {
            let why = format!("The kernel's name for {}; the spec pins none.", self.name());
            return Ok(Chosen { value: netdev.name.clone(), why });
        };
        if self.port.transport == Transport::Roce && pinned.value != netdev.name {
            return Err(ResolveFault::EthernetName {
                origin: pinned.origin.clone(),
                device: self.device.name.clone(),
                port: self.port.number,
                current: netdev.name.clone(),
            });
        }
        Ok(Chosen { value: pinned.value.clone(), why: pinned.origin.to_string() })
    }

    fn mode(
        &self,
        asked: &Sourced<ModeChoice>,
        netdev: &Netdev,
        option_asked: bool,
        kernel: &str,
    ) -> Result<ModeAndWord, ResolveFault> {
        let origin = &asked.origin;
        let chosen = |value, why: String| Some(Chosen { value, why });
        let name = &self.device.name;
        match (asked.value, netdev.connected_capable) {
            (ModeChoice::Insist(IpoibMode::Connected), Some(false)) if option_asked => {
                let waits = format!(
                    "{name} can do connected mode: ib_ipoib was loaded without ipoib_enhanced=0, and takes it when it is loaded again, at the latest at the next boot"
                );
                Ok((chosen(IpoibMode::Connected, origin.to_string()), Some(waits), None))
            }
            (ModeChoice::Insist(IpoibMode::Connected), Some(false)) => Err(ResolveFault::CannotConnect {
                origin: origin.clone(),
                device: name.clone(),
                port: self.port.number,
                link: netdev.name.clone(),
                why: self.incapable(kernel),
                mlx5: self.is_mlx5(),
            }),
            (ModeChoice::Insist(mode), _) => Ok((chosen(mode, origin.to_string()), None, None)),
            (ModeChoice::Auto, Some(true)) => {
                Ok((chosen(IpoibMode::Connected, format!("{origin}: {name} can do connected mode")), None, None))
            }
            (ModeChoice::Auto, capable) => {
                let why = match capable {
                    Some(_) => self.incapable(kernel),
                    None => "whether it can do connected mode is not known".to_owned(),
                };
                let note = format!("{origin}: {} takes datagram mode: {why}", self.name());
                Ok((
                    chosen(IpoibMode::Datagram, format!("{origin}: {name} is taken as datagram only")),
                    None,
                    Some(note),
                ))
            }
        }
    }

    fn is_mlx5(&self) -> bool {
        self.device.driver.as_deref().is_some_and(|driver| driver.starts_with("mlx5"))
    }

    /// Why the RC bit of the hardware address can be off.
    fn incapable(&self, kernel: &str) -> String {
        if self.is_mlx5() {
            return "mlx5 runs enhanced IPoIB, which carries datagrams only".to_owned();
        }
        let driver = self.device.driver.as_deref().unwrap_or("its driver");
        format!(
            "its hardware address says so: {driver} has no reliable connections for IPoIB, or kernel {kernel} was built without CONFIG_INFINIBAND_IPOIB_CM"
        )
    }

    fn mtu(
        &self,
        asked: &Sourced<MtuChoice>,
        link: &IfName,
        mode: Option<&Chosen<IpoibMode>>,
    ) -> Result<Chosen<u32>, ResolveFault> {
        let intent = self.intent;
        let origin = &asked.origin;
        let Some(mode) = mode else {
            let value = match asked.value {
                MtuChoice::Max => ROCE_MTU,
                MtuChoice::Bytes(bytes) => bytes,
            };
            return Ok(Chosen { value, why: origin.to_string() });
        };
        let (most, limit) = match mode.value {
            IpoibMode::Connected => (CONNECTED_MTU, "the most that connected mode carries".to_owned()),
            IpoibMode::Datagram => {
                let limit = format!("{} less the {IPOIB_HEADER_BYTES} bytes of IPoIB", intent.fabric_mtu.origin);
                (intent.fabric_mtu.value.bytes() - IPOIB_HEADER_BYTES, limit)
            }
        };
        match asked.value {
            MtuChoice::Max => Ok(Chosen { value: most, why: format!("{origin}: {limit}") }),
            MtuChoice::Bytes(bytes) if bytes <= most => Ok(Chosen { value: bytes, why: origin.to_string() }),
            MtuChoice::Bytes(_) => Err(ResolveFault::MtuAboveMode {
                origin: origin.clone(),
                link: link.clone(),
                mode: mode.value,
                most,
                why: format!("{limit} ({})", mode.why),
            }),
        }
    }
}

/// The mode, what it waits for, and a note.
type ModeAndWord = (Option<Chosen<IpoibMode>>, Option<String>, Option<String>);

/// The ports of a host, one line each, for a reader who has to pick one.
fn present(facts: &Facts) -> Vec<String> {
    let line = |device: &Device, port: &PortFacts| {
        let pci = device.pci.as_deref().map_or(String::new(), |pci| format!(" at {pci}"));
        let netdev =
            port.netdev.as_ref().map_or("no interface".to_owned(), |netdev| format!("interface {}", netdev.name));
        let PortFacts { number, transport, guid, state, physical_state, rate, .. } = port;
        format!(
            "{} port {number}{pci}: {transport}, GUID {guid}, {state}, {physical_state}, {rate}, {netdev}",
            device.name
        )
    };
    facts.devices.iter().flat_map(|device| device.ports.iter().map(move |port| line(device, port))).collect()
}
