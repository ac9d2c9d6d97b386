//! The transaction's promises on the simulated machine: all or nothing, whatever goes wrong and whenever.

mod hands;
mod history;
mod recovery;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::rc::Rc;

use proptest::prelude::*;

use super::engine::{Applied, Options, apply};
use super::journal::{CUT_OFF, Record};
use super::log::Log;
use super::recover::{Recovered, recover, undo_last};
use super::rollback::When;
use super::store::Store;
use super::{ApplyError, Rollback};
use crate::machine::sim::{SimMachine, SimPort};
use crate::machine::{Machine, MachineError};
use crate::name::IfName;
use crate::plan::{Deferred, Desired};
use crate::rdma::{Guid, IpoibMode};
use crate::state::{
    Blobs, Change, Condition, Digest, FilePath, LinkSetting, Object, Observed, Owned, State, SysctlKey,
};

/// A rollback after which nothing of somebody else's had to be kept.
const DONE: Rollback = Rollback::Done { saved: Vec::new() };

const GUID: Guid = Guid(0x0002_c903_0000_0001);

fn machine() -> SimMachine {
    let port = SimPort {
        guid: GUID,
        kernel_name: "ibp3s0".parse().unwrap(),
        connected_capable: true,
        max_mtu: 4096,
        multicast_mtu: 2048,
    };
    SimMachine { ports: vec![port], ..SimMachine::default() }
}

fn ib0() -> IfName {
    "ib0".parse().unwrap()
}

/// A node as the quickstart wants it.
fn wanted(mode: IpoibMode, mtu: u32, address: &str, file: &str) -> Desired {
    let mut desired = Desired::default();
    let digest = desired.blobs.insert(file.into());
    let path = "/etc/netplan/60-selvedge.yaml".parse().unwrap();
    desired.want(Object::File { path }, State::File { digest, mode: 0o600 }, "persistent");
    desired.want(Object::Module { name: "ib_ipoib".parse().unwrap() }, State::Present, "IPoIB");
    desired.want(Object::Interface { guid: GUID }, State::Named { name: ib0() }, "interface = \"ib0\"");
    desired.want(Object::LinkMode { link: ib0() }, State::Mode { mode }, "mode");
    desired.want(Object::LinkMtu { link: ib0() }, State::Mtu { bytes: mtu }, "mtu");
    desired.want(Object::LinkUp { link: ib0() }, State::Up, "a port of a network is up");
    desired.want(Object::Address { link: ib0(), address: address.parse().unwrap() }, State::Present, "cidr");
    let arp = SysctlKey::of_ipv4_link(&ib0(), LinkSetting::ArpIgnore);
    desired.want(Object::Sysctl { key: arp }, State::Value { text: "1".to_owned() }, "two ports on a fabric");
    desired.want(Object::Unit { name: "selvedge-opensm-compute.service".parse().unwrap() }, State::Running, "primary");
    desired
}

fn quickstart() -> Desired {
    wanted(IpoibMode::Connected, 65520, "10.0.0.1/16", "a")
}

/// Counts effects and records, and fails or dies at one of them.
#[derive(Clone, Default)]
struct Fate {
    step: Rc<Cell<usize>>,
    fails_at: Option<usize>,
    dies_at: Option<usize>,
}

/// The panic that stands for SIGKILL.
struct Killed;

impl Fate {
    /// True when this step is to fail.
    fn step(&self) -> bool {
        let step = self.step.get();
        self.step.set(step + 1);
        if self.dies_at == Some(step) {
            panic_any(Killed);
        }
        self.fails_at == Some(step)
    }
}

/// A machine with a fate before and after each effect.
struct Fated<'a>(&'a mut SimMachine, Fate);

impl Machine for Fated<'_> {
    fn observe(&mut self, scope: &[Object]) -> Result<Observed, MachineError> {
        self.0.observe(scope)
    }
    fn links(&mut self) -> Result<BTreeSet<IfName>, MachineError> {
        self.0.links()
    }
    fn perform(&mut self, change: &Change, blobs: &Blobs) -> Result<(), MachineError> {
        let injected = || MachineError::Netlink("injected".to_owned());
        if self.1.step() {
            return Err(injected());
        }
        self.0.perform(change, blobs)?;
        if self.1.step() { Err(injected()) } else { Ok(()) }
    }
    fn leave(&mut self, folders: &BTreeSet<FilePath>) {
        self.0.leave(folders);
    }
    fn require(&mut self, condition: &Condition) -> Result<(), MachineError> {
        self.0.require(condition)
    }
}

/// A journal with a fate before and after each record.
struct FatedLog(Box<dyn Log>, Fate);

impl Log for FatedLog {
    fn keep(&mut self, blobs: &Blobs) -> std::io::Result<()> {
        self.0.keep(blobs)
    }
    fn append(&mut self, record: &Record) -> std::io::Result<()> {
        if self.1.step() {
            return Err(std::io::Error::other("injected"));
        }
        self.0.append(record)?;
        if self.1.step() { Err(std::io::Error::other("injected")) } else { Ok(()) }
    }
    fn abandon(&mut self) {
        self.0.abandon();
    }
    fn recall(&mut self, digest: &Digest) -> std::io::Result<Vec<u8>> {
        self.0.recall(digest)
    }
    fn place(&self) -> String {
        self.0.place()
    }
}

fn run(machine: &mut SimMachine, store: &Store, desired: &Desired, options: &Options) -> Result<Applied, ApplyError> {
    run_fated(machine, store, desired, options, &Fate::default())
}

fn run_fated(
    machine: &mut SimMachine,
    store: &Store,
    desired: &Desired,
    options: &Options<'_>,
    fate: &Fate,
) -> Result<Applied, ApplyError> {
    let owned = store.owned().unwrap();
    let mut desired = desired.clone();
    desired.blobs.extend(store.origins(&owned));
    let mut open = || -> std::io::Result<Box<dyn Log>> { Ok(Box::new(FatedLog(store.begin()?, fate.clone()))) };
    let mut desire = |_: &mut Fated<'_>| Ok(desired.clone());
    apply(
        &mut Fated(machine, fate.clone()),
        &mut desire,
        &owned,
        options,
        &mut open,
        &mut |_| ControlFlow::Continue(()),
    )
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("selvedge"));
    (folder, store)
}

#[test]
fn an_unconfigured_node_is_configured_and_a_second_apply_changes_nothing() {
    let (_folder, store) = store();
    let mut machine = machine();
    let applied = run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    assert!(!applied.changes.is_empty());
    let link = &machine.links[&ib0()];
    assert_eq!((link.mode, link.mtu, link.up), (IpoibMode::Connected, 65520, true));
    let again = run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    assert_eq!(again.changes, []);
}

#[test]
fn an_mtu_that_a_mode_switch_resets_is_set_again() {
    let (_folder, store) = store();
    let mut machine = machine();
    run(&mut machine, &store, &wanted(IpoibMode::Datagram, 2044, "10.0.0.1/16", "a"), &Options::default()).unwrap();
    run(&mut machine, &store, &wanted(IpoibMode::Connected, 2044, "10.0.0.1/16", "a"), &Options::default()).unwrap();
    let link = &machine.links[&ib0()];
    assert_eq!((link.mode, link.mtu), (IpoibMode::Connected, 2044));
}

#[test]
fn what_left_the_spec_leaves_the_node() {
    let (_folder, store) = store();
    let mut machine = machine();
    run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    run(&mut machine, &store, &Desired::default(), &Options::default()).unwrap();
    assert!(machine.files.is_empty() && machine.folders.is_empty());
    assert!(machine.links[&ib0()].addresses.is_empty());
    assert!(store.owned().unwrap().0.is_empty());
}

#[test]
fn what_cannot_be_told_yet_stays_ours_until_it_can() {
    let (_folder, store) = store();
    let mut machine = machine();
    run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    let mut less = wanted(IpoibMode::Connected, 65520, "10.0.0.1/16", "b");
    less.items.retain(|object, _| !matches!(object, Object::Unit { .. }));
    less.deferred.push(Deferred { what: "a port".to_owned(), until: "it is there".to_owned() });
    run(&mut machine, &store, &less, &Options::default()).unwrap();
    assert_eq!(machine.units.values().next(), Some(&State::Running), "nothing is taken for left over yet");
    less.deferred.clear();
    let applied = run(&mut machine, &store, &less, &Options::default()).unwrap();
    assert!(matches!(applied.changes[..], [Change { object: Object::Unit { .. }, .. }]), "{:?}", applied.changes);
}

#[test]
fn a_failure_at_any_step_leaves_the_node_as_it_was() {
    let steps = steps_of_an_apply();
    for step in 0..steps {
        let (_folder, store) = store();
        let mut machine = machine();
        let before = machine.clone();
        let fate = Fate { fails_at: Some(step), ..Fate::default() };
        match run_fated(&mut machine, &store, &quickstart(), &Options::default(), &fate) {
            Ok(_) => panic!("step {step} did not fail"),
            Err(error) => assert!(!error.is_torn(), "step {step}: {error}"),
        }
        assert_eq!(machine, before, "step {step}");
    }
}

#[test]
fn a_kill_at_any_step_ends_fully_before_or_fully_after() {
    let steps = steps_of_an_apply();
    let (mut as_before, mut as_after) = (0, 0);
    for step in 0..steps {
        let (_folder, store) = store();
        let mut machine = machine();
        let before = machine.clone();
        let fate = Fate { dies_at: Some(step), ..Fate::default() };
        let killed = catch_unwind(AssertUnwindSafe(|| {
            run_fated(&mut machine, &store, &quickstart(), &Options::default(), &fate).map(|_| ())
        }));
        assert!(killed.is_err(), "step {step} was not reached");
        let recovered = recover(&mut machine, &store, When::Running, 0).unwrap();
        assert!(
            matches!(
                recovered,
                Recovered::Nothing | Recovered::Undone { cause: CUT_OFF, rollback: Rollback::Done { .. } }
            ),
            "step {step}: {recovered:?}"
        );
        if machine == before {
            as_before += 1;
        } else {
            as_after += 1;
        }
        let again = run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
        assert_eq!(again.changes.is_empty(), as_after == 1, "step {step}");
    }
    assert_eq!(as_after, 1, "only a kill after the last record keeps the changes");
    assert_eq!(as_before, steps - 1);
}

#[test]
fn a_kill_during_the_rollback_is_recovered_too() {
    for step in 20..60 {
        let (_folder, store) = store();
        let mut machine = machine();
        let before = machine.clone();
        let fate = Fate { fails_at: Some(19), dies_at: Some(step), ..Fate::default() };
        let _ = catch_unwind(AssertUnwindSafe(|| {
            run_fated(&mut machine, &store, &quickstart(), &Options::default(), &fate).map(|_| ())
        }));
        recover(&mut machine, &store, When::Running, 0).unwrap();
        assert_eq!(machine, before, "step {step}");
    }
}

fn steps_of_an_apply() -> usize {
    let (_folder, store) = store();
    let fate = Fate::default();
    run_fated(&mut machine(), &store, &quickstart(), &Options::default(), &fate).unwrap();
    fate.step.get()
}

#[test]
fn a_protected_link_is_not_disturbed_without_a_way_back() {
    let (_folder, store) = store();
    let mut machine = machine();
    let protected = vec![crate::plan::Protected { link: ib0(), carries: "the default route".into() }];
    let error = run(&mut machine, &store, &quickstart(), &Options { protected, confirm: None }).unwrap_err();
    assert!(error.to_string().contains("--confirm"), "{error}");
    assert!(store.last().unwrap().is_none());
}

fn any_desired() -> impl Strategy<Value = Desired> {
    let mode = prop_oneof![Just(IpoibMode::Datagram), Just(IpoibMode::Connected)];
    (mode, 1u8..6, any::<bool>(), 0u8..3, any::<bool>()).prop_map(|(mode, host, large, file, empty)| {
        let mtu = match (mode, large) {
            (IpoibMode::Connected, true) => 65520,
            (_, true) => 2044,
            (_, false) => 1500,
        };
        if empty { Desired::default() } else { wanted(mode, mtu, &format!("10.0.0.{host}/16"), &file.to_string()) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn walks_from_spec_to_spec_converge(walk in proptest::collection::vec(any_desired(), 1..8)) {
        let (_folder, store) = store();
        let mut machine = machine();
        for desired in walk {
            run(&mut machine, &store, &desired, &Options::default()).unwrap();
            let again = run(&mut machine, &store, &desired, &Options::default()).unwrap();
            prop_assert_eq!(again.changes, vec![]);
            let addresses: Vec<_> = machine.links.values().flat_map(|link| link.addresses.iter()).collect();
            prop_assert!(addresses.len() <= 1);
        }
    }

    #[test]
    fn a_walk_can_be_undone_step_by_failing_step(walk in proptest::collection::vec((any_desired(), 0usize..60), 1..6)) {
        let (_folder, store) = store();
        let mut machine = machine();
        for (desired, step) in walk {
            let before = machine.clone();
            let fate = Fate { fails_at: Some(step), ..Fate::default() };
            match run_fated(&mut machine, &store, &desired, &Options::default(), &fate) {
                Ok(_) => {}
                Err(error) => {
                    prop_assert!(!error.is_torn(), "{}", error);
                    prop_assert_eq!(&machine, &before);
                }
            }
        }
    }
}

#[test]
fn an_apply_that_is_told_to_stop_goes_back() {
    let (_folder, store) = store();
    let mut machine = machine();
    let before = machine.clone();
    let mut seen = 0;
    let mut watch = |_: &Change| {
        seen += 1;
        if seen < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break("SIGINT".to_owned()) }
    };
    let mut open = || store.begin();
    let mut desire = |_: &mut SimMachine| Ok(quickstart());
    let stopped =
        apply(&mut machine, &mut desire, &Owned::default(), &Options::default(), &mut open, &mut watch).unwrap_err();
    assert!(stopped.to_string().starts_with("stopped by SIGINT; all changes were rolled back"), "{stopped}");
    assert_eq!(machine, before);
}

#[test]
fn a_datagram_mtu_that_the_fabric_cuts_is_no_failed_rollback() {
    let (_folder, store) = store();
    let mut machine = machine();
    run(&mut machine, &store, &wanted(IpoibMode::Datagram, 2044, "10.0.0.1/16", "a"), &Options::default()).unwrap();
    // As it is before the link has joined a multicast group.
    machine.links.get_mut(&ib0()).unwrap().mtu = 4092;
    run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    assert_eq!(undo_last(&mut machine, &store, None).unwrap(), DONE);
    let link = &machine.links[&ib0()];
    assert_eq!((link.mode, link.mtu), (IpoibMode::Datagram, 2044));
}
