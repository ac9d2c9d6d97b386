//! What is cut off or not confirmed is undone, by the timer, at boot, or by hand.

use super::*;
use crate::apply::journal::{NOT_BEFORE_RESTART, NOT_IN_TIME};
use crate::apply::recover::{confirm, recover_due};
use crate::name::UnitName;

#[test]
fn an_unconfirmed_apply_is_undone_and_a_confirmed_one_stays() {
    let (_folder, store) = store();
    let mut machine = machine();
    let before = machine.clone();
    let options = Options { confirm: Some(&|_| Ok(100)), ..Options::default() };
    run(&mut machine, &store, &quickstart(), &options).unwrap();
    let after = machine.clone();
    assert_eq!(recover(&mut machine, &store, When::Running, 99).unwrap(), Recovered::Awaiting(100));
    assert_eq!(machine, after);
    assert_eq!(
        recover(&mut machine, &store, When::Running, 100).unwrap(),
        Recovered::Undone { cause: NOT_IN_TIME, rollback: DONE }
    );
    assert_eq!(machine, before);

    run(&mut machine, &store, &quickstart(), &options).unwrap();
    confirm(&store).unwrap();
    assert_eq!(recover(&mut machine, &store, When::Boot, 200).unwrap(), Recovered::Nothing);
    assert_eq!(machine, after);
    assert_eq!(undo_last(&mut machine, &store, None).unwrap(), DONE);
    assert_eq!(machine, before);
    assert!(undo_last(&mut machine, &store, None).is_err());
}

/// A machine on which the programs that read files do not always do so.
struct Readers<'a> {
    machine: &'a mut SimMachine,
    refuses: usize,
    reloads: Vec<crate::state::ConfigSystem>,
}

impl Machine for Readers<'_> {
    fn observe(&mut self, scope: &[Object]) -> Result<Observed, MachineError> {
        self.machine.observe(scope)
    }
    fn links(&mut self) -> Result<BTreeSet<IfName>, MachineError> {
        self.machine.links()
    }
    fn perform(&mut self, change: &Change, blobs: &Blobs) -> Result<(), MachineError> {
        if let Object::Reload { system } = &change.object {
            if self.refuses > 0 {
                self.refuses -= 1;
                return Err(MachineError::Netlink("not now".to_owned()));
            }
            self.reloads.push(system.clone());
        }
        self.machine.perform(change, blobs)
    }
    fn leave(&mut self, folders: &BTreeSet<FilePath>) {
        self.machine.leave(folders);
    }
    fn require(&mut self, condition: &Condition) -> Result<(), MachineError> {
        self.machine.require(condition)
    }
}

#[test]
fn who_read_a_file_in_between_reads_it_again_even_when_a_rollback_was_cut_off_after_putting_it_back() {
    use crate::state::ConfigSystem::{Netplan, Networkd};
    for refuses in [0, 2, 100] {
        let (_folder, store) = store();
        let mut machine = machine();
        run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
        machine.files.clear();
        let mut readers = Readers { machine: &mut machine, refuses, reloads: Vec::new() };
        let undone = undo_last(&mut readers, &store, None).unwrap();
        if refuses == 100 {
            assert!(matches!(undone, Rollback::Failed { .. }), "a reload that failed was forgotten: {undone:?}");
        } else {
            assert_eq!(undone, DONE);
            assert_eq!(readers.reloads, [Netplan, Networkd]);
        }
    }
}

#[test]
fn the_timer_of_an_apply_is_believed_and_not_the_clock() {
    let (_folder, store) = store();
    let mut machine = machine();
    let before = machine.clone();
    run(&mut machine, &store, &quickstart(), &Options { confirm: Some(&|_| Ok(u64::MAX)), ..Options::default() })
        .unwrap();
    let number = store.last().unwrap().unwrap().number().unwrap();
    assert_eq!(recover_due(&mut machine, &store, number - 1, u64::MAX).unwrap(), Recovered::Awaiting(u64::MAX));
    // The journals were removed, and this is another one of that number.
    assert_eq!(recover_due(&mut machine, &store, number, 100).unwrap(), Recovered::Awaiting(u64::MAX));
    assert_eq!(
        recover_due(&mut machine, &store, number, u64::MAX).unwrap(),
        Recovered::Undone { cause: NOT_IN_TIME, rollback: DONE }
    );
    assert_eq!(machine, before);
}

#[test]
fn at_boot_nothing_is_started_and_what_is_about_to_start_is_called_off() {
    let (_folder, store) = store();
    let mut machine = machine();
    let (ours, theirs) =
        ("selvedge-opensm-compute.service".parse().unwrap(), "opensm.service".parse::<UnitName>().unwrap());
    let mut desired = quickstart();
    desired.want(Object::Unit { name: theirs.clone() }, State::Stopped, "a rival");
    machine.units.insert(theirs.clone(), State::Running);
    run(&mut machine, &store, &desired, &Options { confirm: Some(&|_| Ok(9)), ..Options::default() }).unwrap();
    // After the reboot: the files are there, and nothing is loaded yet.
    machine.modules.clear();
    machine.links.clear();
    machine.units = [(ours, State::Running), (theirs.clone(), State::Stopped)].into();
    assert_eq!(
        recover(&mut machine, &store, When::Boot, 0).unwrap(),
        Recovered::Undone { cause: NOT_BEFORE_RESTART, rollback: DONE }
    );
    assert!(machine.files.is_empty() && machine.units.values().all(|state| *state == State::Stopped));
}

#[test]
fn a_unit_that_waits_for_its_next_try_does_not_outlive_a_rollback() {
    let (_folder, store) = store();
    let mut machine = machine();
    let name: UnitName = "selvedge-opensm-compute.service".parse().unwrap();
    run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    assert_eq!(machine.units.get(&name), Some(&State::Running));
    machine.units.insert(name.clone(), State::Restarting);
    assert_eq!(undo_last(&mut machine, &store, None).unwrap(), DONE);
    assert_eq!(machine.units.get(&name), Some(&State::Stopped));
}

#[test]
fn the_unit_that_undoes_the_rest_is_the_last_to_go() {
    let (_folder, store) = store();
    let mut machine = machine();
    let mut desired = quickstart();
    let digest = desired.blobs.insert("unit".into());
    let unit: crate::state::FilePath = crate::state::RECOVER_UNIT.parse().unwrap();
    desired.want(Object::File { path: unit.clone() }, State::File { digest, mode: 0o644 }, "recovery");
    run(&mut machine, &store, &desired, &Options::default()).unwrap();
    for step in 0.. {
        let fate = Fate { dies_at: Some(step), ..Fate::default() };
        let mut killed = machine.clone();
        let undo = || undo_last(&mut Fated(&mut killed, fate), &store, None).map(drop);
        let dead = catch_unwind(AssertUnwindSafe(undo)).is_err();
        assert!(killed.files.contains_key(&unit) || killed.links.is_empty() && killed.files.is_empty(), "step {step}");
        if !dead {
            break;
        }
    }
}
