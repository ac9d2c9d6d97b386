//! A real machine: each object is handed to the part that can look at it and change it.
//!
//! A live host has all parts; a file system image has files only, and what
//! would need its kernel is unknown there. Netlink, D-Bus and the runtime under
//! them are opened when an object first needs them, so that a look at files
//! opens none of them. Nothing here decides what is to be changed.

mod bus;
mod early;
mod files;
mod modules;
pub(crate) mod netlink;
mod network_manager;
mod program;
mod reload;
mod sysctl;
mod systemd;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Runtime;

use self::bus::Bus;
use self::files::Files;
use self::netlink::Netlink;
use super::{IMAGE, Machine, MachineError};
use crate::name::{IfName, UnitName};
use crate::state::{Blobs, Change, Condition, FilePath, Object, Observed, State};

/// What asks the fabric whether a condition holds.
pub type FabricCheck = Box<dyn FnMut(&Condition) -> Result<(), MachineError> + Send>;

/// This host, or a file system image of one.
pub struct RealMachine {
    files: Files,
    /// None in an image.
    live: Option<Live>,
    fabric: FabricCheck,
}

impl RealMachine {
    /// The host that this program runs on.
    #[must_use]
    pub fn live() -> Self {
        Self { files: Files::live(), live: Some(Live::default()), fabric: Box::new(no_fabric) }
    }

    /// The file system image whose root folder is `root`.
    ///
    /// # Errors
    /// When `root` is no folder that can be opened.
    pub fn image(root: &Path) -> Result<Self, MachineError> {
        Ok(Self { files: Files::image(root)?, live: None, fabric: Box::new(no_fabric) })
    }

    /// Where on this host the machine's folder at `path` (without the leading slash) is, or is to be made.
    ///
    /// # Errors
    /// When it is no folder, or a link that leads nowhere in the image.
    pub fn place_of(&self, path: &str) -> Result<PathBuf, MachineError> {
        self.files.place_of(path)
    }

    /// Lets `check` answer what only the fabric can tell.
    #[must_use]
    pub fn with_fabric(mut self, check: FabricCheck) -> Self {
        self.fabric = check;
        self
    }
}

fn no_fabric(_: &Condition) -> Result<(), MachineError> {
    Err(MachineError::Condition("the subnet managers of the fabric cannot be asked here".to_owned()))
}

impl Machine for RealMachine {
    fn observe(&mut self, scope: &[Object]) -> Result<Observed, MachineError> {
        let mut observed = Observed::default();
        let files = scope.iter().filter_map(|object| match object {
            Object::File { path } => Some(path),
            _ => None,
        });
        observed.missing = files.flat_map(|path| self.files.missing_above(path)).collect();
        let states = &mut observed.states.0;
        for object in scope {
            let state = match (object, &self.live) {
                (Object::File { path }, _) => self.files.observe(path, &mut observed.blobs),
                (_, None) => State::Unknown { why: IMAGE.to_owned() },
                (Object::Module { name }, Some(_)) => modules::observe(name),
                (Object::Sysctl { key }, Some(_)) => sysctl::observe(key),
                (Object::Reload { .. }, Some(_)) => State::Unknown { why: "no program says what it read".to_owned() },
                // Links and units are looked at together below.
                (_, Some(_)) => continue,
            };
            states.insert(object.clone(), state);
        }
        let Some(live) = &mut self.live else { return Ok(observed) };
        if scope.iter().any(netlink::answers_for) {
            let found = live.netlink().and_then(|netlink| netlink.observe(scope));
            states.extend(found.inspect_err(|error| live.drop_lost(error))?);
        }
        let units: Vec<&UnitName> = scope.iter().filter_map(unit).collect();
        if !units.is_empty() {
            states.extend(live.units(&units));
        }
        Ok(observed)
    }

    fn links(&mut self) -> Result<BTreeSet<IfName>, MachineError> {
        let Some(live) = &mut self.live else { return Ok(BTreeSet::new()) };
        let links = live.netlink().and_then(|netlink| netlink.links());
        Ok(links.inspect_err(|error| live.drop_lost(error))?.into_iter().map(|link| link.name).collect())
    }

    fn perform(&mut self, change: &Change, blobs: &Blobs) -> Result<(), MachineError> {
        if let Object::File { path } = &change.object {
            return self.files.perform(path, &change.after, blobs);
        }
        let Some(live) = &mut self.live else {
            // Nothing runs in an image that would have to read its files again.
            return match &change.object {
                Object::Reload { .. } => Ok(()),
                object => Err(MachineError::Image { object: object.clone() }),
            };
        };
        let performed = match &change.object {
            Object::Reload { system } => reload::perform(live, system),
            Object::Module { name } if change.removes() => modules::perform(name, &change.after),
            Object::Module { name } => reload::and_await_links(live, |_| modules::perform(name, &change.after)),
            object @ Object::Interface { .. } => {
                reload::and_await_links(live, |live| live.netlink()?.perform(object, &change.after))
            }
            Object::Sysctl { key } => sysctl::perform(key, &change.after),
            Object::Unit { name } if !early::has_bus() => early::perform(name, &change.after),
            Object::Unit { name } => {
                live.bus().and_then(|bus| systemd::perform(bus, name, &change.before, &change.after))
            }
            object => live.netlink().and_then(|netlink| netlink.perform(object, &change.after)),
        };
        performed.inspect_err(|error| live.drop_lost(error))
    }

    fn is_at_rest(&self) -> bool {
        self.live.is_none()
    }

    fn refresh(&mut self, scope: &[Object]) {
        if let Some(live) = &mut self.live {
            *live = Live::default();
        }
        for object in scope {
            if let Object::File { path } = object {
                self.files.remove_leftover(path);
            }
        }
    }

    fn leave(&mut self, folders: &BTreeSet<FilePath>) {
        // Those below come after those above.
        folders.iter().rev().for_each(|folder| self.files.remove_folder(folder));
    }

    fn require(&mut self, condition: &Condition) -> Result<(), MachineError> {
        (self.fabric)(condition)
    }
}

fn unit(object: &Object) -> Option<&UnitName> {
    match object {
        Object::Unit { name } => Some(name),
        _ => None,
    }
}

/// What a running kernel is asked through, opened at first use.
#[derive(Default)]
struct Live {
    runtime: Option<Arc<Runtime>>,
    netlink: Option<Netlink>,
    bus: Option<Bus>,
}

impl Live {
    /// A connection that failed may stay so: the next use opens another.
    fn drop_lost(&mut self, error: &MachineError) {
        match error {
            MachineError::Bus { .. } => self.bus = None,
            MachineError::Netlink(_) | MachineError::Refused { .. } => self.netlink = None,
            _ => {}
        }
    }

    fn units(&mut self, units: &[&UnitName]) -> BTreeMap<Object, State> {
        if !early::has_bus() {
            return early::observe(units);
        }
        let found = self.bus().and_then(|bus| systemd::observe(bus, units));
        found
            .inspect_err(|error| self.drop_lost(error))
            .unwrap_or_else(|error| systemd::unseen(units, &error.to_string()))
    }

    fn runtime(&mut self) -> Result<Arc<Runtime>, MachineError> {
        if let Some(runtime) = &self.runtime {
            return Ok(Arc::clone(runtime));
        }
        let runtime = Arc::new(netlink::runtime()?);
        self.runtime = Some(Arc::clone(&runtime));
        Ok(runtime)
    }

    fn netlink(&mut self) -> Result<&mut Netlink, MachineError> {
        if self.netlink.is_none() {
            self.netlink = Some(Netlink::open(self.runtime()?)?);
        }
        self.netlink.as_mut().ok_or_else(|| MachineError::Netlink("it was closed".to_owned()))
    }

    fn bus(&mut self) -> Result<&Bus, MachineError> {
        if self.bus.is_none() {
            self.bus = Some(Bus::open(self.runtime()?)?);
        }
        self.bus.as_ref().ok_or_else(|| MachineError::Netlink("D-Bus was closed".to_owned()))
    }
}
