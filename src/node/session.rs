//! What can be done on the machine this runs on, or on an image of one.
//!
//! A spec's text comes in, reports go out. The commands, the node's end of the
//! protocol and the agent all call this.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use super::error::SessionError;
use super::report::{ChangeReport, PlanReport};
use super::signals::Held;
use super::timer::{self, Armed};
use super::{earlier, image};
use crate::apply::recover::{self, Recovered};
use crate::apply::rollback::When;
use crate::apply::store::{Lock, Store, StoreError, number_at};
use crate::apply::{Applied, ApplyError, Confirm, Options, Rollback, apply};
use crate::compile::compile;
use crate::facts::{Facts, gather, hardware_for, look_into};
use crate::intent::Intent;
use crate::machine::Machine;
use crate::machine::real::RealMachine;
use crate::name::{DeviceName, HostName, Label};
use crate::plan::{Desired, refused};
use crate::rdma::Guid;
use crate::resolve::{ResolveFaults, resolve, resolve_image, select, strangers};
use crate::spec::{self, Checked, Faults, Spec};
use crate::state::{Change, Owned};
use crate::verify::{Check, Memlock, NodeChecks, checks, memlock, ports};

/// Where the journals are.
const STORE: &str = "var/lib/selvedge";

/// A spec as text, and what messages call it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecText {
    /// Its path, or `<stdin>`.
    pub name: String,
    /// The TOML text.
    pub text: String,
}

impl SpecText {
    /// Reads and checks it.
    ///
    /// # Errors
    /// All of its faults.
    pub fn load(&self) -> Result<Checked, Faults> {
        spec::load(&self.name, &self.text)
    }
}

/// An apply of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhichApply {
    /// Its number, which its journal is called by.
    pub number: u64,
    /// When it was done or confirmed, by the node's clock, seconds since the epoch.
    pub at: u64,
}

/// A machine that commands are done on.
pub struct Session {
    machine: RealMachine,
    store: Store,
    root: PathBuf,
    live: bool,
    /// The HCAs of an image's host, as a node that has such says.
    hardware: Option<Facts>,
}

impl Session {
    /// The host that this program runs on.
    #[must_use]
    pub fn live() -> Self {
        let root = PathBuf::from("/");
        let machine = RealMachine::live().with_fabric(Box::new(crate::sm::require));
        Self { machine, store: Store::new(root.join(STORE)), root, live: true, hardware: None }
    }

    /// The file system image at `root`, for a host with HCAs as in `hardware`, which `selvedge facts` printed on a node.
    ///
    /// # Errors
    /// When it cannot be opened, or has links where its journals are to be.
    pub fn image(root: &Path, hardware: Option<Facts>) -> Result<Self, SessionError> {
        let machine = RealMachine::image(root)?;
        let store = image::store(&machine, STORE)?;
        let hardware = hardware.map(|facts| hardware_for(root, facts));
        Ok(Self { machine, store, root: root.to_owned(), live: false, hardware })
    }

    /// What this host has; of an image, what can be seen in it.
    ///
    /// # Errors
    /// When the kernel's own view cannot be read.
    pub fn facts(&self) -> Result<Facts, SessionError> {
        if self.live { Ok(gather(&self.root)?) } else { Ok(look_into(&self.root)) }
    }

    fn desired(&self, intent: &Intent, facts: &Facts) -> Result<Desired, ResolveFaults> {
        if self.live { resolve(intent, facts) } else { resolve_image(intent, facts.clone(), self.hardware.as_ref()) }
    }

    /// The changes that an apply would make now.
    ///
    /// # Errors
    /// When the spec has faults, or the host cannot be looked at or have what is asked.
    pub fn plan(&mut self, spec: &SpecText, host: &HostName) -> Result<PlanReport, SessionError> {
        let intent = Self::intent(spec, host)?;
        let facts = self.facts()?;
        let mut desired = self.desired(&intent, &facts)?;
        let owned = self.store.owned()?;
        let observed = self.machine.observe(&desired.scope(&owned))?;
        let mut notes = earlier::notes(&self.store, now())?;
        let changes = desired.changes(&observed, &owned);
        notes.append(&mut desired.notes);
        notes.extend(self.owner_note());
        notes.extend(refused(&changes, &facts.protected));
        notes.extend(strangers(&desired, &owned, &facts));
        notes.extend(self.memlock_notes(&intent));
        let changes = changes.into_iter();
        let report = |change| ChangeReport::new(change, &observed.blobs, &desired.blobs);
        Ok(PlanReport {
            node: intent.host,
            changes: changes.map(report).collect(),
            deferred: desired.deferred,
            notes,
            undid_earlier: false,
            confirm_by: None,
        })
    }

    /// Makes the changes. `watch` sees each before it is made.
    ///
    /// # Errors
    /// When it could not be done; what had been changed was rolled back.
    pub fn apply(
        &mut self,
        spec: &SpecText,
        host: &HostName,
        confirm: Option<Duration>,
        watch: &mut dyn FnMut(&Change),
    ) -> Result<PlanReport, SessionError> {
        let intent = Self::intent(spec, host)?;
        if confirm.is_some() && !self.live {
            return Err(SessionError::ConfirmOnImage);
        }
        let signals = Held::hold().map_err(SessionError::Signals)?;
        let lock = self.store.lock()?;
        let settled = self.settle_the_last()?;
        let applied = self.apply_alone(&intent, confirm, (&signals, lock), watch);
        let Some(undone) = settled else { return applied };
        match applied {
            Ok(mut report) => {
                report.undid_earlier = true;
                report.notes.insert(0, undone);
                Ok(report)
            }
            Err(then) => Err(SessionError::AfterUndoing { undone, then: Box::new(then) }),
        }
    }

    /// The same, when no earlier apply is in the way. Without a lock there is no store yet.
    fn apply_alone(
        &mut self,
        intent: &Intent,
        confirm: Option<Duration>,
        (signals, mut lock): (&Held, Option<Lock>),
        watch: &mut dyn FnMut(&Change),
    ) -> Result<PlanReport, SessionError> {
        let facts = self.facts()?;
        let owned = self.store.owned()?;
        let selvedge = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
        let selvedge = || selvedge.as_ref().map_err(copy);
        let wait = confirm.unwrap_or_default();
        let await_confirmation = |place: &str| {
            let number = number_at(place).ok_or_else(|| std::io::Error::other(format!("{place} has no number")))?;
            let deadline = now() + wait.as_secs();
            timer::arm_for_unconfirmed(selvedge()?, wait, number, deadline)?;
            Ok(deadline)
        };
        let confirming = confirm.map(|_| &await_confirmation as Confirm<'_>);
        let options = Options { protected: facts.protected.clone(), confirm: confirming };
        let Self { machine, store, root, live, hardware } = self;
        let mut first = Some(facts);
        let mut desire = |_: &mut RealMachine| {
            let desired = match (first.take(), *live) {
                (Some(facts), true) => resolve(intent, &facts)?,
                (None, true) => resolve(intent, &gather(root)?)?,
                // Nothing moves in an image but what is moved here.
                (facts, false) => resolve_image(intent, facts.unwrap_or_else(|| look_into(root)), hardware.as_ref())?,
            };
            Ok(with_origins(desired, store, &owned))
        };
        let mut open = || {
            if let Some(wait) = confirm {
                timer::arm_for_open(selvedge()?, wait, now())?;
            }
            if lock.is_none() {
                lock = Some(store.lock_first().map_err(std::io::Error::other)?);
            }
            store.begin()
        };
        let mut watch = |change: &Change| {
            watch(change);
            match signals.asked_to_stop() {
                Some(signal) => ControlFlow::Break(signal.as_str().to_owned()),
                None => ControlFlow::Continue(()),
            }
        };
        let applied = apply(machine, &mut desire, &owned, &options, &mut open, &mut watch);
        if confirm.is_some()
            && let Some(armed) = no_longer_needed(&applied)
        {
            timer::stop(armed);
        }
        let applied = applied?;
        let mut notes = applied.notes;
        notes.extend(self.owner_note());
        notes.extend(self.memlock_notes(intent));
        if !applied.changes.is_empty()
            && let Err(error) = self.store.prune()
        {
            // The apply stands all the same.
            notes.push(format!("old journals were not removed: {error}"));
        }
        let report = |change| ChangeReport { change, diff: None };
        let changes = applied.changes.into_iter().map(report).collect();
        let (deferred, confirm_by) = (applied.deferred, applied.confirm_by);
        Ok(PlanReport { node: intent.host.clone(), changes, deferred, notes, undid_earlier: false, confirm_by })
    }

    /// Looks whether this host is as the spec says.
    ///
    /// # Errors
    /// When the spec has faults, or the host cannot be looked at.
    pub fn check(&mut self, spec: &SpecText, host: &HostName) -> Result<NodeChecks, SessionError> {
        let intent = Self::intent(spec, host)?;
        let facts = self.facts()?;
        let mut checks = checks::hardware_of(&intent, &facts);
        checks.extend(ports::partitions(&self.root, &intent, &facts));
        // What cannot be resolved is a finding like any other: the hardware checks say why.
        let desired = resolve(&intent, &facts).unwrap_or_else(|faults| {
            checks.extend(faults.faults.iter().map(checks::unresolved));
            Desired::default()
        });
        let observed = self.machine.observe(&desired.scope(&Owned::default()))?;
        checks.extend(checks::in_effect(&desired, &observed.states));
        for role in &intent.managers {
            if let Some((unit, port)) = ports::held(&self.root, role, &intent, &facts) {
                checks::held_port(&mut checks, &unit, &port);
            }
        }
        checks.extend(self.memlocks(&intent).iter().map(checks::memlock));
        let mut ports = checks::ports(&intent, &facts, &observed.states);
        for port in &mut ports {
            port.hardware_address = ports::hardware_address(&self.root, &port.interface);
        }
        Ok(NodeChecks { node: intent.host, checks, ports })
    }

    /// What the fabric says of its subnet managers, asked through this host's port on it.
    ///
    /// # Errors
    /// When the spec has faults, or this host is not on the fabric or cannot ask it.
    pub fn managers(
        &self,
        spec: &SpecText,
        host: &HostName,
        fabric: &Label,
        guids: &BTreeMap<HostName, Guid>,
    ) -> Result<Vec<Check>, SessionError> {
        let spec = spec.load().map_err(SessionError::Spec)?.spec;
        let (device, port) = self.port_on(&spec, host, fabric)?;
        let report = crate::sm::ask(&spec, fabric, &device, port, guids)?;
        Ok(checks::managers(&report))
    }

    /// The device and port through which this host is on a fabric.
    ///
    /// # Errors
    /// When the spec gives this host no port there, or the host does not have it.
    pub fn port_on(&self, spec: &Spec, host: &HostName, fabric: &Label) -> Result<(DeviceName, u8), SessionError> {
        let intent = compile(spec, host)?;
        let facts = self.facts()?;
        let on_it = intent.ports.iter().find(|port| port.fabric == *fabric);
        let port = on_it.ok_or_else(|| SessionError::NoPortOn { host: host.clone(), fabric: fabric.clone() })?;
        let (device, found) =
            select(port, &facts).map_err(|fault| ResolveFaults { host: host.clone(), faults: vec![fault] })?;
        Ok((device.name.clone(), found.number))
    }

    /// Keeps the last apply.
    ///
    /// # Errors
    /// When none waits for it.
    pub fn confirm(&mut self) -> Result<(), SessionError> {
        let _lock = self.store.lock()?;
        recover::confirm(&self.store)?;
        timer::stop(Armed::Any);
        Ok(())
    }

    /// Undoes the last apply, and says which that was; with `allow_cut` even where that disturbs a protected link or leaves the fabric without
    /// a manager.
    ///
    /// # Errors
    /// When there is none, it was undone already, or it could do one of the two.
    pub fn roll_back(&mut self, allow_cut: bool) -> Result<(Option<WhichApply>, Rollback), SessionError> {
        let _signals = Held::hold().map_err(SessionError::Signals)?;
        let _lock = self.store.lock()?;
        let standing = self.store.standing()?;
        // Looked at before its journal is written to again.
        let which =
            standing.as_ref().and_then(|last| Some(WhichApply { number: last.number()?, at: last.written_at()? }));
        let unguarded = allow_cut || standing.is_none();
        let protected = if unguarded { None } else { Some(self.facts()?.protected) };
        let rollback = recover::undo_last(&mut self.machine, &self.store, protected.as_deref())?;
        if self.live && !matches!(rollback, Rollback::Failed { .. }) {
            timer::stop(Armed::Any);
        }
        Ok((which, rollback))
    }

    /// Undoes what was cut off, or not confirmed in time. Waits for an apply that is under way.
    ///
    /// # Errors
    /// When the journals cannot be used.
    pub fn recover(&mut self, when: When) -> Result<Recovered, SessionError> {
        self.recover_by(|machine, store| recover::recover(machine, store, when, now()))
    }

    /// The same, when the time to confirm the transaction number `due`, until `deadline`, is over.
    ///
    /// # Errors
    /// When the journals cannot be used.
    pub fn recover_due(&mut self, due: u64, deadline: u64) -> Result<Recovered, SessionError> {
        self.recover_by(|machine, store| recover::recover_due(machine, store, due, deadline))
    }

    fn recover_by(
        &mut self,
        recover: impl FnOnce(&mut RealMachine, &Store) -> Result<Recovered, StoreError>,
    ) -> Result<Recovered, SessionError> {
        let _signals = Held::hold().map_err(SessionError::Signals)?;
        let _lock = self.store.lock_in_turn()?;
        let recovered = recover(&mut self.machine, &self.store)?;
        if matches!(&recovered, Recovered::Undone { rollback: Rollback::Done { .. }, .. }) {
            // What a killed apply left among the contents; the next one would remove it as well.
            let _ = self.store.prune();
        }
        Ok(recovered)
    }

    /// What to say of an image's files that are not root's.
    fn owner_note(&self) -> Option<String> {
        let user = nix::unistd::geteuid();
        (!self.live && !user.is_root()).then(|| {
            format!(
                "its files are made as user {user}: they have to be root's before it boots, or NetworkManager refuses its profiles"
            )
        })
    }

    /// Of the services of the spec, and of those that usually start jobs, the limits of those that run.
    fn memlocks(&self, intent: &Intent) -> Vec<Memlock> {
        let units = if self.live { memlock::units(&intent.memlock.value) } else { Vec::new() };
        let mut all: Vec<Memlock> = units.iter().filter_map(|unit| memlock::of_unit(&self.root, unit)).collect();
        let others = memlock::of_job_starters(&self.root);
        all.extend(others.into_iter().filter(|other| !intent.memlock.value.contains(&other.unit)));
        all
    }

    /// What of the limits of locked memory an apply does not do.
    fn memlock_notes(&self, intent: &Intent) -> Vec<String> {
        let units = if self.live { memlock::units(&intent.memlock.value) } else { Vec::new() };
        memlock::notes(&self.root, &units)
    }

    fn intent(spec: &SpecText, host: &HostName) -> Result<Intent, SessionError> {
        let checked = spec.load().map_err(SessionError::Spec)?;
        Ok(compile(&checked.spec, host)?)
    }

    /// Undoes what an earlier apply left half done; gives what to say of it.
    fn settle_the_last(&mut self) -> Result<Option<String>, SessionError> {
        let waits = self.live && recover::pending(&self.store, now())?.is_some();
        // Nothing runs in an image that could be cut off.
        let protected = if waits { self.facts()?.protected } else { Vec::new() };
        match recover::settle(&mut self.machine, &self.store, now(), &protected)? {
            Recovered::Nothing => Ok(None),
            Recovered::Awaiting(_) => Err(SessionError::Awaiting),
            Recovered::Undone { rollback: rollback @ Rollback::Failed { .. }, .. } => Err(SessionError::Torn(rollback)),
            Recovered::Undone { cause, rollback } => Ok(Some(earlier::undone(cause, &rollback))),
        }
    }
}

/// The timers that an apply which ended leaves without a use; one without changes armed none. A rollback that failed is tried once more by them.
fn no_longer_needed(applied: &Result<Applied, ApplyError>) -> Option<Armed> {
    match applied {
        Ok(applied) if applied.changes.is_empty() => None,
        Ok(_) => Some(Armed::ForOpen),
        Err(ApplyError { rollback: Rollback::Failed { .. }, .. }) => None,
        Err(_) => Some(Armed::Any),
    }
}

fn with_origins(mut desired: Desired, store: &Store, owned: &Owned) -> Desired {
    desired.blobs.extend(store.origins(owned));
    desired
}

fn copy(error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), error.to_string())
}

/// Seconds since the epoch.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
