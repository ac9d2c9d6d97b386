//! What somebody changed after us is not lost, whoever goes back and whenever.

use super::*;
use crate::apply::journal::Saved;
use crate::state::{AddressGeneration, MAIN_TABLE, Route};

fn netplan() -> FilePath {
    "/etc/netplan/60-selvedge.yaml".parse().unwrap()
}

/// Writes a file as an administrator would, and folders as needed.
fn by_hand(machine: &mut SimMachine, path: &FilePath, text: &str, mode: u32) -> State {
    let state = State::File { digest: machine.contents.insert(text.into()), mode };
    machine.folders.extend(path.folders());
    machine.files.insert(path.clone(), state.clone());
    state
}

fn saved_by(rollback: &Rollback) -> &Saved {
    match rollback.saved() {
        [one] => one,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_that_somebody_replaced_is_kept_beside_the_one_that_comes_back() {
    for before in [None, Some("as it was")] {
        let (_folder, store) = store();
        let mut machine = machine();
        let before = before.map(|text| by_hand(&mut machine, &netplan(), text, 0o600));
        run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
        let edited = by_hand(&mut machine, &netplan(), "theirs", 0o640);
        let rollback = undo_last(&mut machine, &store, None).unwrap();
        let Saved { file, copy } = saved_by(&rollback);
        assert_eq!(*file, netplan());
        assert!(copy.as_str().starts_with("/etc/netplan/60-selvedge.yaml.selvedge-saved-"), "{copy}");
        assert_eq!(machine.files.get(copy), Some(&edited), "with its mode");
        assert_eq!(machine.files.get(file), before.as_ref());
        assert!(rollback.to_string().contains(&format!("{file} had been changed by somebody else since")));
        assert!(rollback.to_string().contains(copy.as_str()), "{rollback}");
    }
}

/// The readers of ifcfg files take all that begins so for configuration, but not what ends as a backup does.
#[test]
fn a_copy_of_an_ifcfg_file_is_named_as_a_backup() {
    let (_folder, store) = store();
    let mut machine = machine();
    let path: FilePath = "/etc/sysconfig/network/ifcfg-ib0".parse().unwrap();
    let mut desired = quickstart();
    let digest = desired.blobs.insert("DEVICE=ib0\n".into());
    desired.want(Object::File { path: path.clone() }, State::File { digest, mode: 0o644 }, "persistent");
    run(&mut machine, &store, &desired, &Options::default()).unwrap();
    by_hand(&mut machine, &path, "theirs", 0o644);
    let rollback = undo_last(&mut machine, &store, None).unwrap();
    let Saved { copy, .. } = saved_by(&rollback);
    assert!(crate::render::ifcfg::IGNORED.iter().any(|end| copy.as_str().ends_with(end)), "{copy}");
}

#[test]
fn a_link_that_somebody_put_there_is_kept_and_our_own_contents_are_not() {
    let (_folder, store) = store();
    let mut machine = machine();
    run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    let link = State::Symlink { target: "/srv/theirs.yaml".into() };
    machine.files.insert(netplan(), link.clone());
    let rollback = undo_last(&mut machine, &store, None).unwrap();
    assert_eq!(machine.files.get(&saved_by(&rollback).copy), Some(&link));
    // Another mode is no other content, and what is gone is not to be kept.
    for change in [
        |machine: &mut SimMachine| drop(by_hand(machine, &netplan(), "a", 0o644)),
        |machine: &mut SimMachine| {
            machine.files.remove(&netplan());
        },
    ] {
        run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
        change(&mut machine);
        assert_eq!(undo_last(&mut machine, &store, None).unwrap(), DONE);
    }
}

#[test]
fn a_copy_takes_no_other_copys_place() {
    let (_folder, store) = store();
    let mut machine = machine();
    for text in ["one", "two", "one"] {
        run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
        by_hand(&mut machine, &netplan(), text, 0o600);
        undo_last(&mut machine, &store, None).unwrap();
    }
    assert_eq!(machine.files.len(), 2, "{:?}", machine.files);
    // A file that merely has such a name stays, and so does the one that could not be kept.
    let copies: Vec<FilePath> = machine.files.keys().cloned().collect();
    for copy in &copies {
        by_hand(&mut machine, copy, "not a copy", 0o600);
    }
    run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    let edited = by_hand(&mut machine, &netplan(), "one", 0o600);
    let rollback = undo_last(&mut machine, &store, None).unwrap();
    assert!(matches!(rollback, Rollback::Failed { .. }), "{rollback:?}");
    assert!(rollback.to_string().contains("cannot keep what somebody else wrote as"), "{rollback}");
    assert_eq!(machine.files.get(&netplan()), Some(&edited));
}

#[test]
fn the_timer_the_boot_and_an_apply_that_fails_keep_it_too() {
    for when in [When::Running, When::Boot] {
        let (_folder, store) = store();
        let mut machine = machine();
        let options = Options { confirm: Some(&|_| Ok(100)), ..Options::default() };
        run(&mut machine, &store, &quickstart(), &options).unwrap();
        let edited = by_hand(&mut machine, &netplan(), "theirs", 0o600);
        match recover(&mut machine, &store, when, 100).unwrap() {
            Recovered::Undone { rollback, .. } => {
                assert_eq!(machine.files.get(&saved_by(&rollback).copy), Some(&edited));
            }
            other => panic!("{other:?}"),
        }
    }
    let (_folder, store) = store();
    let mut machine = machine();
    let edited = Rc::new(Cell::new(None));
    let mut desire = |machine: &mut SimMachine| {
        // The second time is after the first round.
        if machine.files.contains_key(&netplan()) {
            edited.set(Some(by_hand(machine, &netplan(), "theirs", 0o600)));
            return Err("enough".into());
        }
        Ok(quickstart())
    };
    let mut open = || store.begin();
    let mut watch = |_: &Change| ControlFlow::Continue(());
    let failed =
        apply(&mut machine, &mut desire, &Owned::default(), &Options::default(), &mut open, &mut watch).unwrap_err();
    assert_eq!(machine.files.get(&saved_by(&failed.rollback).copy), edited.take().as_ref(), "{failed}");
}

#[test]
fn a_kill_at_any_step_of_such_a_rollback_loses_nothing() {
    for step in 0.. {
        let (_folder, store) = store();
        let mut machine = machine();
        run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
        let edited = by_hand(&mut machine, &netplan(), "theirs", 0o600);
        let fate = Fate { dies_at: Some(step), ..Fate::default() };
        let undo = || undo_last(&mut Fated(&mut machine, fate), &store, None).map(drop);
        let dead = catch_unwind(AssertUnwindSafe(undo)).is_err();
        recover(&mut machine, &store, When::Running, 0).unwrap();
        let kept: Vec<_> = machine.files.values().collect();
        assert_eq!(kept, [&edited], "step {step}");
        if !dead {
            break;
        }
    }
}

#[test]
fn an_edited_file_that_leaves_the_spec_can_be_rolled_back() {
    let (_folder, store) = store();
    let mut machine = machine();
    run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    let edited = by_hand(&mut machine, &netplan(), "theirs", 0o600);
    let applied = run(&mut machine, &store, &Desired::default(), &Options::default()).unwrap();
    let removed = applied.changes.iter().find(|change| change.object == Object::File { path: netplan() }).unwrap();
    assert!(removed.reason.0.contains("edited by hand, which is kept with the journal"), "{removed}");
    assert!(machine.files.is_empty());
    undo_last(&mut machine, &store, None).unwrap();
    assert_eq!(machine.files.get(&netplan()), Some(&edited));
    // One that stays in the spec is repaired, and can be brought back as well.
    run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    assert_ne!(machine.files.get(&netplan()), Some(&edited));
    undo_last(&mut machine, &store, None).unwrap();
    assert_eq!(machine.files.get(&netplan()), Some(&edited));
}

/// A spec with one more file, in a folder of its own.
fn with_opensm() -> (Desired, FilePath) {
    let mut desired = quickstart();
    let path: FilePath = "/etc/selvedge/opensm/compute.conf".parse().unwrap();
    let digest = desired.blobs.insert("opensm".into());
    desired.want(Object::File { path: path.clone() }, State::File { digest, mode: 0o600 }, "primary");
    (desired, path)
}

#[test]
fn a_folder_goes_when_it_was_made_and_stays_when_it_was_there() {
    let (desired, conf) = with_opensm();
    for there in 0..=3 {
        for by_rollback in [true, false] {
            let (_folder, store) = store();
            let mut machine = machine();
            machine.folders.extend(conf.folders().take(there));
            let before = machine.folders.clone();
            run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
            run(&mut machine, &store, &desired, &Options::default()).unwrap();
            if by_rollback {
                undo_last(&mut machine, &store, None).unwrap();
            } else {
                run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
            }
            assert!(
                !machine.folders.contains("/etc/selvedge/opensm".parse::<FilePath>().as_ref().unwrap()) || there == 3
            );
            run(&mut machine, &store, &Desired::default(), &Options::default()).unwrap();
            assert_eq!(machine.folders, before, "{there} {by_rollback}");
        }
    }
}

#[test]
fn a_folder_with_somebody_elses_file_stays() {
    let (_folder, store) = store();
    let mut machine = machine();
    let (desired, conf) = with_opensm();
    run(&mut machine, &store, &desired, &Options::default()).unwrap();
    let theirs = "/etc/selvedge/opensm/notes".parse().unwrap();
    by_hand(&mut machine, &theirs, "theirs", 0o644);
    assert_eq!(undo_last(&mut machine, &store, None).unwrap(), DONE);
    assert_eq!(machine.folders, conf.folders().collect());
    assert_eq!(machine.files.len(), 1);
}

fn others_route() -> Route {
    Route {
        to: "10.77.0.0/16".parse().unwrap(),
        via: Some("10.0.0.9".parse().unwrap()),
        source: None,
        table: MAIN_TABLE,
        metric: 0,
        protocol: 3,
        scope: 0,
        onlink: false,
    }
}

/// What others put on the link, and that nothing of it became ours.
fn has_what_is_others(machine: &SimMachine, store: &Store) -> bool {
    let link = &machine.links[&ib0()];
    let owned = store.owned().unwrap();
    let is_others = |object: &Object| match object {
        Object::Address { address, .. } => address.to_string() == "10.9.9.9/24",
        Object::Route { .. } => true,
        _ => false,
    };
    link.routes.contains(&others_route())
        && link.addresses.contains(&"10.9.9.9/24".parse().unwrap())
        && !owned.0.keys().any(is_others)
}

#[test]
fn what_others_put_on_a_link_is_there_after_an_apply_and_after_its_rollback() {
    let (_folder, store) = store();
    let mut machine = machine();
    run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    let link = machine.links.get_mut(&ib0()).unwrap();
    link.addresses.insert("10.9.9.9/24".parse().unwrap());
    link.routes.insert(others_route());
    link.link_local = AddressGeneration::Eui64;
    let other_mtu = wanted(IpoibMode::Connected, 32000, "10.0.0.1/16", "b");
    let applied = run(&mut machine, &store, &other_mtu, &Options::default()).unwrap();
    assert!(has_what_is_others(&machine, &store), "{:?}", machine.links);
    let told = applied.changes.iter().filter(|change| change.reason.0.contains("was there before")).count();
    assert_eq!(told, 2, "{:?}", applied.changes);
    assert!(run(&mut machine, &store, &other_mtu, &Options::default()).unwrap().changes.is_empty());
    assert_eq!(machine.links[&ib0()].link_local, AddressGeneration::None);
    assert_eq!(undo_last(&mut machine, &store, None).unwrap(), DONE);
    assert!(has_what_is_others(&machine, &store), "{:?}", machine.links);
    assert_eq!(machine.links[&ib0()].link_local, AddressGeneration::Eui64);
}

#[test]
fn a_route_that_was_withdrawn_after_an_apply_does_not_come_back_with_its_rollback() {
    let (_folder, store) = store();
    let mut machine = machine();
    run(&mut machine, &store, &quickstart(), &Options::default()).unwrap();
    machine.links.get_mut(&ib0()).unwrap().routes.insert(others_route());
    run(&mut machine, &store, &wanted(IpoibMode::Connected, 32000, "10.0.0.1/16", "b"), &Options::default()).unwrap();
    machine.links.get_mut(&ib0()).unwrap().routes.clear();
    assert_eq!(undo_last(&mut machine, &store, None).unwrap(), DONE);
    assert!(machine.links[&ib0()].routes.is_empty());
}
