//! The journals: which of them counts, and what becomes of the others.

use super::*;
use crate::apply::journal::{NOT_IN_TIME, Phase};
use crate::apply::recover::{UndoError, confirm, pending, settle};
use crate::apply::store::StoreError;
use crate::plan::Protected;

fn spec(file: &str) -> Desired {
    wanted(IpoibMode::Connected, 65520, "10.0.0.1/16", file)
}

fn undo(machine: &mut SimMachine, store: &Store) -> Result<Rollback, String> {
    undo_last(machine, store, None).map_err(|error| error.to_string())
}

/// An apply that fails at its tenth step, and is rolled back.
fn fail(machine: &mut SimMachine, store: &Store) {
    let fate = Fate { fails_at: Some(9), ..Fate::default() };
    run_fated(machine, store, &spec("failed"), &Options::default(), &fate).unwrap_err();
    assert_eq!(store.last().unwrap().unwrap().transaction.phase, Phase::RolledBack);
}

/// An apply that nobody confirms.
fn time_out(machine: &mut SimMachine, store: &Store) {
    let options = Options { confirm: Some(&|_| Ok(100)), ..Options::default() };
    run(machine, store, &spec("not confirmed"), &options).unwrap();
    let undone = Recovered::Undone { cause: NOT_IN_TIME, rollback: DONE };
    assert_eq!(recover(machine, store, When::Running, 100).unwrap(), undone);
}

#[test]
fn an_apply_that_was_undone_leaves_the_one_before_it_to_be_undone() {
    for undone in [fail, time_out] {
        let (_folder, store) = store();
        let mut machine = machine();
        let before = machine.clone();
        run(&mut machine, &store, &spec("a"), &Options::default()).unwrap();
        let (after, owned) = (machine.clone(), store.owned().unwrap());
        undone(&mut machine, &store);
        undone(&mut machine, &store);
        assert_eq!((&machine, store.owned().unwrap()), (&after, owned));
        assert_eq!(undo(&mut machine, &store).unwrap(), DONE);
        assert_eq!(machine, before);
        assert_eq!(store.owned().unwrap(), Owned::default(), "the newest journal says what was owned before this");
    }
}

#[test]
fn a_rollback_that_is_given_twice_undoes_one_apply() {
    let (_folder, store) = store();
    let mut machine = machine();
    assert!(undo(&mut machine, &store).unwrap_err().contains("nothing was ever applied"));
    fail(&mut machine, &store);
    assert!(undo(&mut machine, &store).unwrap_err().contains("no apply holds"));
    run(&mut machine, &store, &spec("a"), &Options::default()).unwrap();
    let first = machine.clone();
    run(&mut machine, &store, &spec("b"), &Options::default()).unwrap();
    assert_eq!(undo(&mut machine, &store).unwrap(), DONE);
    fail(&mut machine, &store);
    let again = undo(&mut machine, &store).unwrap_err();
    assert!(again.contains("undone already; to go back further, apply the spec of that time"), "{again}");
    assert_eq!(machine, first);
    // What the first one made is owned still.
    run(&mut machine, &store, &Desired::default(), &Options::default()).unwrap();
    assert!(machine.files.is_empty());
}

#[test]
fn a_kill_in_the_rollback_of_an_older_apply_is_recovered() {
    for step in 0.. {
        let (_folder, store) = store();
        let mut machine = machine();
        let before = machine.clone();
        run(&mut machine, &store, &spec("a"), &Options::default()).unwrap();
        fail(&mut machine, &store);
        let fate = Fate { dies_at: Some(step), ..Fate::default() };
        let undo = || undo_last(&mut Fated(&mut machine, fate), &store, None).map(drop);
        if catch_unwind(AssertUnwindSafe(undo)).is_ok() {
            break;
        }
        assert!(pending(&store, 0).unwrap().is_some_and(|note| note.contains("apply 1 was cut off")));
        let recovered = recover(&mut machine, &store, When::Running, 0).unwrap();
        assert_eq!(recovered, Recovered::Undone { cause: CUT_OFF, rollback: DONE }, "step {step}");
        assert_eq!((&machine, store.owned().unwrap()), (&before, Owned::default()), "step {step}");
    }
}

#[test]
fn however_many_applies_fail_the_one_that_holds_is_kept() {
    let (_folder, store) = store();
    let mut machine = machine();
    let before = machine.clone();
    run(&mut machine, &store, &spec("a"), &Options::default()).unwrap();
    for _ in 0..25 {
        fail(&mut machine, &store);
    }
    store.prune().unwrap();
    assert_eq!(undo(&mut machine, &store).unwrap(), DONE);
    assert_eq!(machine, before);
}

#[test]
fn a_late_confirmation_is_told_that_it_is_late() {
    let (_folder, store) = store();
    let mut machine = machine();
    let none = |store: &Store| confirm(store).unwrap_err().to_string();
    assert_eq!(none(&store), "no apply waits for its confirmation");
    time_out(&mut machine, &store);
    assert_eq!(none(&store), "too late: the last apply was not confirmed in time, and was undone");
    fail(&mut machine, &store);
    assert_eq!(none(&store), "no apply waits for its confirmation");
}

#[test]
fn what_waits_or_was_cut_off_is_told() {
    let (_folder, store) = store();
    let mut machine = machine();
    assert_eq!(pending(&store, 0).unwrap(), None);
    let options = Options { confirm: Some(&|_| Ok(100)), ..Options::default() };
    run(&mut machine, &store, &spec("a"), &options).unwrap();
    let note = |now| pending(&store, now).unwrap().unwrap();
    assert_eq!(note(40), "apply 1 waits for its confirmation and is undone in 60 s: `selvedge confirm` keeps it");
    assert!(note(100).starts_with("apply 1 was not confirmed in time"), "{}", note(100));
    confirm(&store).unwrap();
    assert_eq!(pending(&store, 100).unwrap(), None);
}

#[test]
fn going_back_does_not_cut_the_branch_either_unless_the_timer_or_the_boot_does_it() {
    let (_folder, store) = store();
    let mut machine = machine();
    let before = machine.clone();
    let protected = [Protected { link: ib0(), carries: "this SSH connection from 10.0.0.9".into() }];
    let options = Options { confirm: Some(&|_| Ok(100)), ..Options::default() };
    // A protected link that was there before, in another mode.
    run(&mut machine, &store, &wanted(IpoibMode::Datagram, 2044, "10.0.0.1/16", "a"), &Options::default()).unwrap();
    let first = machine.clone();
    run(&mut machine, &store, &spec("b"), &options).unwrap();
    let after = machine.clone();
    for refused in [
        undo_last(&mut machine, &store, Some(&protected)).unwrap_err(),
        settle(&mut machine, &store, 100, &protected).unwrap_err(),
    ] {
        let said = refused.to_string();
        assert!(matches!(refused, UndoError::CutsOwnBranch { .. }), "{said}");
        assert!(said.contains("ib0 carries this SSH connection") && said.contains("rollback --allow-cut"), "{said}");
        assert_eq!(machine, after);
    }
    assert_eq!(settle(&mut machine, &store, 99, &protected).unwrap(), Recovered::Awaiting(100));
    // The timer has nobody to ask.
    let undone = Recovered::Undone { cause: NOT_IN_TIME, rollback: DONE };
    assert_eq!(recover(&mut machine, &store, When::Running, 100).unwrap(), undone);
    assert_eq!(machine, first);
    // Unloading the module takes the link along, whatever is left on it.
    machine.links.get_mut(&ib0()).unwrap().addresses.clear();
    let refused = undo_last(&mut machine, &store, Some(&protected)).unwrap_err().to_string();
    assert!(refused.contains("ib0 carries"), "{refused}");
    assert_eq!(undo(&mut machine, &store).unwrap(), DONE);
    assert_eq!(machine, before);
}

#[test]
fn nothing_is_made_where_nothing_is_done() {
    let (folder, store) = store();
    let mut machine = machine();
    assert!(store.lock().unwrap().is_none() && store.lock_in_turn().unwrap().is_none());
    assert!(!store.is_busy().unwrap());
    recover(&mut machine, &store, When::Boot, 0).unwrap();
    undo(&mut machine, &store).unwrap_err();
    confirm(&store).unwrap_err();
    assert_eq!(store.owned().unwrap(), Owned::default());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn one_process_at_a_time_changes_a_machine() {
    let (_folder, store) = store();
    let lock = store.lock_first().unwrap();
    assert!(store.is_busy().unwrap());
    assert!(matches!(store.lock(), Err(StoreError::Busy(_))));
    drop(lock);
    assert!(!store.is_busy().unwrap());
    run(&mut machine(), &store, &spec("a"), &Options::default()).unwrap();
    assert!(matches!(store.lock_first(), Err(StoreError::Overtaken)), "another one was first");
    assert!(store.lock().unwrap().is_some());
}

#[test]
fn a_file_that_is_no_journal_of_ours_has_no_say() {
    let (folder, store) = store();
    let mut machine = machine();
    run(&mut machine, &store, &spec("a"), &Options::default()).unwrap();
    let journal = |name: &str| folder.path().join("selvedge/journal").join(name);
    for foreign in ["18446744073709551615.done", "9.open", "+0000009.done", "00000009.done.bak", "notes"] {
        std::fs::write(journal(foreign), "{}\n").unwrap();
    }
    run(&mut machine, &store, &spec("b"), &Options::default()).unwrap();
    assert_eq!(store.last().unwrap().unwrap().number(), Some(2));
    std::fs::rename(journal("00000002.done"), journal("99999999.done")).unwrap();
    let full = run(&mut machine, &store, &spec("c"), &Options::default()).unwrap_err().to_string();
    assert!(full.contains("99999999.done has the last number") && full.ends_with("nothing was changed"), "{full}");
}

#[test]
fn many_applies_leave_few_journals() {
    let (folder, store) = store();
    let mut machine = machine();
    for round in 0..30 {
        run(
            &mut machine,
            &store,
            &wanted(IpoibMode::Datagram, 2044, "10.0.0.1/16", &round.to_string()),
            &Options::default(),
        )
        .unwrap();
        store.prune().unwrap();
    }
    let count = |name: &str| std::fs::read_dir(folder.path().join("selvedge").join(name)).unwrap().count();
    assert_eq!(count("journal"), 20);
    assert!(count("blobs") <= 21);
    assert_eq!(store.last().unwrap().unwrap().transaction.phase, Phase::Committed);
}

#[test]
fn a_journal_of_a_newer_version_says_so() {
    let (folder, store) = store();
    run(&mut machine(), &store, &quickstart(), &Options::default()).unwrap();
    let path = folder.path().join("selvedge/journal/00000001.done");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"format\":1", "\"format\":2,\"new\":{}", 1)).unwrap();
    let error = store.last().unwrap_err().to_string();
    assert!(error.contains("in journal format 2") && error.contains("move the file away"), "{error}");
    std::fs::write(&path, b"\xff\n").unwrap();
    assert!(store.last().unwrap_err().to_string().contains("line 1 is not a journal record"));
}

#[test]
fn a_journal_that_never_began_leaves_nothing() {
    struct Full(Box<dyn Log>);
    impl Log for Full {
        fn keep(&mut self, blobs: &Blobs) -> std::io::Result<()> {
            self.0.keep(blobs)
        }
        fn append(&mut self, _: &Record) -> std::io::Result<()> {
            Err(std::io::ErrorKind::StorageFull.into())
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
    let (folder, store) = store();
    let mut machine = machine();
    let before = machine.clone();
    let mut open = || -> std::io::Result<Box<dyn Log>> { Ok(Box::new(Full(store.begin()?))) };
    let mut desire = |_: &mut SimMachine| Ok(quickstart());
    let mut watch = |_: &Change| ControlFlow::Continue(());
    let error =
        apply(&mut machine, &mut desire, &Owned::default(), &Options::default(), &mut open, &mut watch).unwrap_err();
    assert!(error.to_string().ends_with("nothing was changed"), "{error}");
    assert_eq!(machine, before);
    assert_eq!(std::fs::read_dir(folder.path().join("selvedge/journal")).unwrap().count(), 0);
}

#[test]
fn going_back_does_not_leave_the_fabric_without_a_manager_unless_asked_to() {
    let (_folder, store) = store();
    let mut machine = machine();
    let before = machine.clone();
    let mut desired = quickstart();
    let unit = Object::Unit { name: "selvedge-opensm-compute.service".parse().unwrap() };
    let device = "mlx5_0".parse().unwrap();
    desired.want(unit, State::Running, "the primary").condition =
        Some(Condition::NoForeignMaster { device, port: 1, managers: vec![], guids: vec![] });
    run(&mut machine, &store, &desired, &Options::default()).unwrap();
    let after = machine.clone();
    machine.alone = true;
    let refused = undo_last(&mut machine, &store, Some(&[])).unwrap_err();
    let said = refused.to_string();
    assert!(matches!(refused, UndoError::LeavesTheFabric(_)), "{said}");
    assert!(said.contains("no other subnet manager answers") && said.contains("rollback --allow-cut"), "{said}");
    assert_eq!(machine, after);
    machine.alone = false;
    assert_eq!(undo_last(&mut machine, &store, Some(&[])).unwrap(), DONE);
    assert_eq!(machine, before);
    run(&mut machine, &store, &desired, &Options::default()).unwrap();
    machine.alone = true;
    assert_eq!(undo_last(&mut machine, &store, None).unwrap(), DONE);
    assert_eq!(machine, before);
}
