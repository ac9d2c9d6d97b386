//! A machine in memory that keeps the kernel's rules for IPoIB.
//!
//! It serves property tests that need thousands of machines. Its rules are
//! held against the real kernel by a test that walks both through the same
//! random changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use ipnet::IpNet;

use super::{Machine, MachineError};
use crate::name::{IfName, ModuleName, UnitName};
use crate::rdma::{CONNECTED_MTU, Guid, IPOIB_HEADER_BYTES, IpoibMode};
use crate::state::{
    AddressGeneration, Blobs, Change, Condition, ConfigSystem, FilePath, Object, Observed, Route, State, SysctlKey,
};
use crate::tag::Tag;

/// The smallest MTU that carries IPv4 (RFC 791), bytes, and `ETH_MIN_MTU` in the kernel: below it IPv4 leaves the link.
const MIN_MTU: u32 = 68;

/// The smallest MTU that carries IPv6 (RFC 8200, section 5), bytes: below it IPv6 leaves the link.
const MIN_IPV6_MTU: u32 = 1280;

/// What the ARP settings of a new link are.
const UNSET: &str = "0";

/// An InfiniBand port that gets an interface when `ib_ipoib` is loaded.
#[derive(Debug, Clone)]
pub struct SimPort {
    /// Its GUID.
    pub guid: Guid,
    /// The name the kernel gives its interface.
    pub kernel_name: IfName,
    /// Whether its driver does connected mode.
    pub connected_capable: bool,
    /// The largest IB MTU of the port, bytes.
    pub max_mtu: u32,
    /// The IB MTU of its multicast groups, bytes.
    pub multicast_mtu: u32,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimLink {
    /// The port it belongs to.
    pub guid: Guid,
    /// For a child, the link that it is on and its partition or VLAN.
    pub child: Option<(IfName, Tag)>,
    /// IPoIB mode.
    pub mode: IpoibMode,
    /// MTU, bytes.
    pub mtu: u32,
    /// `IFF_UP`.
    pub up: bool,
    /// How its IPv6 link-local address is made.
    pub link_local: AddressGeneration,
    /// Addresses.
    pub addresses: BTreeSet<IpNet>,
    /// Routes that somebody made; they go when the link goes down.
    pub routes: BTreeSet<Route>,
    /// Its IPv4 settings that are not the kernel's default of 0.
    pub settings: BTreeMap<String, String>,
}

fn least_mtu(address: &IpNet) -> u32 {
    match address {
        IpNet::V4(_) => MIN_MTU,
        IpNet::V6(_) => MIN_IPV6_MTU,
    }
}

/// A simulated machine.
#[derive(Debug, Clone, Default)]
pub struct SimMachine {
    /// Its HCA ports.
    pub ports: Vec<SimPort>,
    /// Files and symbolic links.
    pub files: BTreeMap<FilePath, State>,
    /// The folders that hold them, or did.
    pub folders: BTreeSet<FilePath>,
    /// Contents of the files.
    pub contents: Blobs,
    /// Loaded modules.
    pub modules: BTreeSet<ModuleName>,
    /// Interfaces.
    pub links: BTreeMap<IfName, SimLink>,
    /// Units that systemd knows.
    pub units: BTreeMap<UnitName, State>,
    /// Network settings that were set and are no link's.
    pub sysctls: BTreeMap<SysctlKey, String>,
    /// Reads: how often `observe` was called.
    pub looks: usize,
    /// No other subnet manager answers on its fabric.
    pub alone: bool,
}

impl PartialEq for SimMachine {
    /// Equal in all that a reader of the machine can see.
    fn eq(&self, other: &Self) -> bool {
        let Self { ports: _, files, folders, contents: _, modules, links, units, sysctls, looks: _, alone: _ } = self;
        let running = |units: &BTreeMap<UnitName, State>| {
            units
                .iter()
                .filter(|(_, state)| **state == State::Running)
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        *files == other.files
            && *folders == other.folders
            && *modules == other.modules
            && *links == other.links
            && *sysctls == other.sysctls
            && running(units) == running(&other.units)
    }
}

impl Machine for SimMachine {
    fn observe(&mut self, scope: &[Object]) -> Result<Observed, MachineError> {
        self.looks += 1;
        let mut observed = Observed::default();
        let links: BTreeSet<&IfName> = scope.iter().filter_map(Object::link).collect();
        for link in links {
            observed.states.0.extend(self.seen_of(link));
        }
        for object in scope {
            if let Object::File { path } = object {
                observed.missing.extend(path.folders().filter(|folder| !self.folders.contains(folder)));
            }
            let state = self.look_at(object);
            if let State::File { digest, .. } = &state
                && let Some(bytes) = self.contents.get(digest)
            {
                observed.blobs.insert(bytes.to_vec());
            }
            observed.states.0.insert(object.clone(), state);
        }
        Ok(observed)
    }

    fn links(&mut self) -> Result<BTreeSet<IfName>, MachineError> {
        Ok(self.links.keys().cloned().collect())
    }

    fn perform(&mut self, change: &Change, blobs: &Blobs) -> Result<(), MachineError> {
        let impossible = || MachineError::Impossible { object: change.object.clone(), state: change.after.to_string() };
        match (&change.object, &change.after) {
            (Object::File { path }, state) => self.set_file(path, state, blobs),
            (Object::Reload { system: ConfigSystem::Networkd | ConfigSystem::NetworkManager }, _) => {
                self.configure_anew();
                Ok(())
            }
            (Object::Reload { .. }, _) => Ok(()),
            (Object::Module { name }, State::Present) => self.load(name),
            (Object::Module { name }, State::Absent) => self.unload(name),
            (Object::Interface { guid }, State::Named { name }) => self.name(*guid, name),
            (Object::Child { link, parent, tag }, State::Present) => self.add_child(link, parent, *tag, change),
            (Object::Child { link, .. }, State::Absent) => {
                self.links.remove(link);
                Ok(())
            }
            (Object::LinkMode { link }, State::Mode { mode }) => self.set_mode(link, *mode, change),
            (Object::LinkMtu { link }, State::Mtu { bytes }) => self.set_mtu(link, *bytes, change),
            (Object::LinkUp { link }, State::Up) => self.set_up(link, true, change),
            (Object::LinkUp { link }, State::Down) => self.set_up(link, false, change),
            (Object::LinkLocal { link }, State::Made { by }) => {
                let link = self.link_mut(link, change)?;
                if link.mtu < MIN_IPV6_MTU {
                    return Err(refused(change, io::ErrorKind::NotFound));
                }
                link.link_local = *by;
                Ok(())
            }
            (Object::Address { link, address }, State::Present) => {
                let link = self.link_mut(link, change)?;
                if link.mtu < least_mtu(address) {
                    return Err(refused(change, io::ErrorKind::InvalidInput));
                }
                link.addresses.insert(*address);
                Ok(())
            }
            (Object::Route { link, route }, State::Present) => {
                let link = self.link_mut(link, change)?;
                if !link.up {
                    return Err(refused(change, io::ErrorKind::NetworkDown));
                }
                link.routes.insert(Route::clone(route));
                Ok(())
            }
            (Object::Address { link, address }, State::Absent) => {
                if let Some(link) = self.links.get_mut(link) {
                    link.addresses.remove(address);
                }
                Ok(())
            }
            (Object::Sysctl { key }, State::Value { text }) => {
                if self.set(key, text) {
                    Ok(())
                } else {
                    Err(refused(change, io::ErrorKind::NotFound))
                }
            }
            (Object::Unit { name }, state @ (State::Running | State::Stopped | State::Failed | State::Restarting)) => {
                // A failure is not made again: what is not to run is stopped.
                let state = if *state == State::Running { State::Running } else { State::Stopped };
                self.units.insert(name.clone(), state);
                Ok(())
            }
            _ => Err(impossible()),
        }
    }

    fn leave(&mut self, folders: &BTreeSet<FilePath>) {
        for folder in folders.iter().rev() {
            let holds = |path: &FilePath| path.folders().any(|above| above == *folder);
            if !self.files.keys().any(holds) && !self.folders.iter().any(holds) {
                self.folders.remove(folder);
            }
        }
    }

    fn require(&mut self, condition: &Condition) -> Result<(), MachineError> {
        match condition {
            Condition::AnotherManager { .. } if self.alone => {
                Err(MachineError::Condition("no other subnet manager answers".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

impl SimMachine {
    fn look_at(&self, object: &Object) -> State {
        match object {
            Object::File { path } => self.files.get(path).cloned().unwrap_or(State::Absent),
            Object::Reload { .. } => State::Unknown { why: "only the program itself knows".to_owned() },
            Object::Module { name } => {
                if self.modules.contains(name) {
                    State::Present
                } else {
                    State::Absent
                }
            }
            Object::Interface { guid } => {
                let found = self.links.iter().find(|(_, link)| link.guid == *guid && link.child.is_none());
                found.map_or(State::Absent, |(name, _)| State::Named { name: name.clone() })
            }
            Object::Child { link, parent, tag } => match self.links.get(link) {
                None => State::Absent,
                Some(found) if found.child == Some((parent.clone(), *tag)) => State::Present,
                Some(_) => State::Unknown { why: "there is another interface of this name".to_owned() },
            },
            Object::LinkUp { link }
            | Object::LinkMode { link }
            | Object::LinkMtu { link }
            | Object::LinkLocal { link }
            | Object::Address { link, .. }
            | Object::Route { link, .. } => {
                let seen = self.seen_of(link);
                seen.into_iter().find(|(seen, _)| seen == object).map_or(State::Absent, |(_, state)| state)
            }
            Object::Sysctl { key } => self.setting(key).map_or(State::Absent, |text| State::Value { text }),
            Object::Unit { name } => self.units.get(name).cloned().unwrap_or(State::Stopped),
        }
    }

    /// Every attribute and address of a link.
    fn seen_of(&self, name: &IfName) -> Vec<(Object, State)> {
        let Some(link) = self.links.get(name) else { return Vec::new() };
        let name = || name.clone();
        let mut seen = vec![
            (Object::LinkMode { link: name() }, State::Mode { mode: link.mode }),
            (Object::LinkMtu { link: name() }, State::Mtu { bytes: link.mtu }),
            (Object::LinkUp { link: name() }, if link.up { State::Up } else { State::Down }),
        ];
        if link.mtu >= MIN_IPV6_MTU {
            seen.push((Object::LinkLocal { link: name() }, State::Made { by: link.link_local }));
        }
        let address = |address: &IpNet| (Object::Address { link: name(), address: *address }, State::Present);
        seen.extend(link.addresses.iter().map(address));
        let route = |route: &Route| (Object::Route { link: name(), route: Box::new(route.clone()) }, State::Present);
        seen.extend(link.routes.iter().map(route));
        seen
    }

    /// The value of a setting; one of a link is there with the link.
    fn setting(&self, key: &SysctlKey) -> Option<String> {
        let Some((link, setting)) = key.on_link() else { return self.sysctls.get(key).cloned() };
        // Without IPv4 a link has no settings of it.
        let link = self.links.get(link).filter(|link| link.mtu >= MIN_MTU)?;
        Some(link.settings.get(setting).cloned().unwrap_or_else(|| UNSET.to_owned()))
    }

    /// Sets what is there; false for what is not.
    fn set(&mut self, key: &SysctlKey, text: &str) -> bool {
        let Some((link, setting)) = key.on_link() else {
            return self.sysctls.get_mut(key).map(|value| text.clone_into(value)).is_some();
        };
        let Some(link) = self.links.get_mut(link).filter(|link| link.mtu >= MIN_MTU) else { return false };
        if text == UNSET {
            link.settings.remove(setting);
        } else {
            link.settings.insert(setting.to_owned(), text.to_owned());
        }
        true
    }

    /// As networkd does with a link whose file changed: all that it carries is dropped. What the file names would
    /// come back; here nothing does.
    fn configure_anew(&mut self) {
        for link in self.links.values_mut() {
            link.link_local = AddressGeneration::None;
            link.addresses.clear();
            link.routes.clear();
        }
    }

    fn set_file(&mut self, path: &FilePath, state: &State, blobs: &Blobs) -> Result<(), MachineError> {
        if *state != State::Absent {
            self.folders.extend(path.folders());
        }
        match state {
            State::Absent => {
                self.files.remove(path);
            }
            State::File { digest, .. } => {
                let bytes = blobs.get(digest).or_else(|| self.contents.get(digest)).map(<[u8]>::to_vec);
                let missing = || io::Error::other("its contents are not at hand");
                let bytes = bytes.ok_or_else(|| MachineError::File {
                    operation: "write",
                    path: path.to_string(),
                    source: missing(),
                })?;
                self.contents.insert(bytes);
                self.files.insert(path.clone(), state.clone());
            }
            _ => {
                self.files.insert(path.clone(), state.clone());
            }
        }
        Ok(())
    }

    fn load(&mut self, module: &ModuleName) -> Result<(), MachineError> {
        if self.modules.insert(module.clone()) && module.as_str() == "ib_ipoib" {
            for port in &self.ports {
                let mtu = port.multicast_mtu.min(port.max_mtu) - IPOIB_HEADER_BYTES;
                let link = SimLink {
                    guid: port.guid,
                    child: None,
                    mode: IpoibMode::Datagram,
                    mtu,
                    up: false,
                    link_local: AddressGeneration::Eui64,
                    addresses: BTreeSet::new(),
                    routes: BTreeSet::new(),
                    settings: BTreeMap::new(),
                };
                self.links.insert(port.kernel_name.clone(), link);
            }
        }
        Ok(())
    }

    fn unload(&mut self, module: &ModuleName) -> Result<(), MachineError> {
        if self.modules.remove(module) && module.as_str() == "ib_ipoib" {
            self.links.clear();
        }
        Ok(())
    }

    fn name(&mut self, guid: Guid, name: &IfName) -> Result<(), MachineError> {
        let own = |link: &SimLink| link.guid == guid && link.child.is_none();
        let found = self.links.iter().find(|(_, link)| own(link)).map(|(found, _)| found.clone());
        let Some(found) = found else {
            return Err(MachineError::Timeout { what: format!("the interface of port {guid}"), seconds: 10 });
        };
        if let Some(link) = self.links.remove(&found) {
            self.links.insert(name.clone(), link);
        }
        for link in self.links.values_mut() {
            if let Some((parent, _)) = link.child.as_mut().filter(|(parent, _)| *parent == found) {
                parent.clone_from(name);
            }
        }
        Ok(())
    }

    /// A child starts down, in datagram mode, with the MTU of its port's multicast groups.
    fn add_child(&mut self, name: &IfName, parent: &IfName, tag: Tag, change: &Change) -> Result<(), MachineError> {
        let multicast_mtu = self.port_of(parent, change)?.multicast_mtu;
        let guid = self.link_mut(parent, change)?.guid;
        self.links.entry(name.clone()).or_insert_with(|| SimLink {
            guid,
            child: Some((parent.clone(), tag)),
            mode: IpoibMode::Datagram,
            mtu: multicast_mtu - IPOIB_HEADER_BYTES,
            up: false,
            link_local: AddressGeneration::Eui64,
            addresses: BTreeSet::new(),
            settings: BTreeMap::new(),
            routes: BTreeSet::new(),
        });
        Ok(())
    }

    fn set_mode(&mut self, name: &IfName, mode: IpoibMode, change: &Change) -> Result<(), MachineError> {
        let port = self.port_of(name, change)?;
        if mode == IpoibMode::Connected && !port.connected_capable {
            return Err(refused(change, io::ErrorKind::InvalidInput));
        }
        let datagram = port.multicast_mtu - IPOIB_HEADER_BYTES;
        let link = self.link_mut(name, change)?;
        if link.mode != mode {
            link.mode = mode;
            link.mtu = if mode == IpoibMode::Connected { CONNECTED_MTU } else { datagram.min(link.mtu) };
        }
        Ok(())
    }

    fn set_mtu(&mut self, name: &IfName, bytes: u32, change: &Change) -> Result<(), MachineError> {
        let port = self.port_of(name, change)?;
        let link = self.link_mut(name, change)?;
        // What it has already is not judged (dev_set_mtu_ext).
        if link.mtu == bytes {
            return Ok(());
        }
        let range = match link.mode {
            IpoibMode::Connected => 0..=CONNECTED_MTU,
            IpoibMode::Datagram => MIN_MTU + IPOIB_HEADER_BYTES..=port.max_mtu - IPOIB_HEADER_BYTES,
        };
        if !range.contains(&bytes) {
            return Err(refused(change, io::ErrorKind::InvalidInput));
        }
        let carried = port.multicast_mtu - IPOIB_HEADER_BYTES;
        link.mtu = if link.mode == IpoibMode::Datagram { bytes.min(carried) } else { bytes };
        let mtu = link.mtu;
        link.addresses.retain(|address| mtu >= least_mtu(address));
        if mtu < MIN_MTU {
            link.settings.clear();
        }
        if mtu < MIN_IPV6_MTU {
            link.link_local = AddressGeneration::Eui64;
        }
        Ok(())
    }

    /// A parent takes its children up and down with it.
    fn set_up(&mut self, name: &IfName, up: bool, change: &Change) -> Result<(), MachineError> {
        if self.link_mut(name, change)?.up == up {
            return Ok(());
        }
        let is_on = |link: &SimLink| link.child.as_ref().is_some_and(|(parent, _)| parent == name);
        for (_, link) in self.links.iter_mut().filter(|(own, link)| *own == name || is_on(link)) {
            if link.up && !up {
                link.addresses.retain(|address| matches!(address, IpNet::V4(_)));
                link.routes.clear();
            }
            link.up = up;
        }
        Ok(())
    }

    fn link_mut(&mut self, name: &IfName, change: &Change) -> Result<&mut SimLink, MachineError> {
        self.links.get_mut(name).ok_or_else(|| refused(change, io::ErrorKind::NotFound))
    }

    fn port_of(&self, name: &IfName, change: &Change) -> Result<SimPort, MachineError> {
        let guid = self.links.get(name).map(|link| link.guid);
        let port = self.ports.iter().find(|port| Some(port.guid) == guid);
        port.cloned().ok_or_else(|| refused(change, io::ErrorKind::NotFound))
    }
}

fn refused(change: &Change, kind: io::ErrorKind) -> MachineError {
    MachineError::Refused { object: change.object.clone(), asked: change.after.to_string(), source: kind.into() }
}
