//! What a session says of earlier applies, and what it leaves behind, on an image.

use std::collections::BTreeSet;
use std::path::Path;

use super::earlier;
use super::session::{Session, SessionError, SpecText, WhichApply};
use crate::apply::Rollback;
use crate::apply::journal::{FORMAT, Record};
use crate::apply::store::Store;
use crate::state::{Change, Digest, Object, Owned, Reason, State, States};

/// A host without ports on an image that has no selvedge to recover with: it cannot be done.
fn apply(root: &Path) -> SessionError {
    let quickstart = include_str!("../../examples/quickstart.toml");
    let (before, ports) = quickstart.split_once("[[nodes.ports]]").unwrap();
    let (_, after) = ports.split_once("[verify]").unwrap();
    let (before, managers) = before.split_once("[fabrics.compute.subnet-manager]").unwrap();
    let (_, networks) = managers.split_once("[networks").unwrap();
    let text = format!("{before}[networks{networks}[verify]{after}");
    let spec = SpecText { name: "spec".into(), text };
    let host = "node01".parse().unwrap();
    Session::image(root, None).unwrap().apply(&spec, &host, None, &mut |_| {}).unwrap_err()
}

/// A journal whose writer was killed.
fn cut_off(root: &Path) -> Store {
    let store = Store::new(root.join("var/lib/selvedge"));
    let begin = Record::Begin {
        format: FORMAT,
        selvedge: "0".into(),
        before: States::default(),
        owned: Owned::default(),
        missing: [].into(),
    };
    store.begin().unwrap().append(&begin).unwrap();
    store
}

#[test]
fn an_apply_that_fails_before_its_first_change_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let error = apply(root.path());
    assert!(matches!(error, SessionError::Apply(_)), "{error}");
    assert!(!root.path().join("var").exists());
}

#[test]
fn an_apply_that_undid_another_and_then_fails_says_both() {
    let root = tempfile::tempdir().unwrap();
    cut_off(root.path());
    let error = apply(root.path()).to_string();
    assert!(
        error.starts_with("an earlier apply was cut off before it was complete and was undone first; then: "),
        "{error}"
    );
    assert!(!apply(root.path()).to_string().contains("undone first"), "only once");
}

#[test]
fn a_plan_tells_what_was_cut_off_and_what_is_under_way() {
    let root = tempfile::tempdir().unwrap();
    let store = cut_off(root.path());
    let notes = || earlier::notes(&store, 0).unwrap();
    assert!(matches!(&notes()[..], [note] if note.starts_with("apply 1 was cut off")), "{:?}", notes());
    let lock = store.lock().unwrap();
    assert!(matches!(&notes()[..], [note] if note.starts_with("another selvedge is changing this node now")));
    drop(lock);
}

#[test]
fn a_rollback_says_which_apply_it_undid() {
    let root = tempfile::tempdir().unwrap();
    let store = cut_off(root.path());
    let journal = store.last().unwrap().unwrap().path;
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_796_149_958);
    std::fs::File::options().append(true).open(journal).unwrap().set_modified(then).unwrap();
    let (which, rollback) = Session::image(root.path(), None).unwrap().roll_back(true).unwrap();
    assert_eq!(which, Some(WhichApply { number: 1, at: 1_796_149_958 }));
    assert_eq!(rollback.saved(), []);
}

/// An image that was taken of a running node: what ran there is neither seen nor changed.
#[test]
fn an_apply_of_a_running_node_is_undone_in_its_image_as_far_as_that_is_files() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("etc")).unwrap();
    std::fs::write(root.path().join("etc/made"), "by selvedge").unwrap();
    let store = Store::new(root.path().join("var/lib/selvedge"));
    let file = Object::File { path: "/etc/made".parse().unwrap() };
    let mtu = Object::LinkMtu { link: "ib0".parse().unwrap() };
    let made = State::File { digest: Digest::of(b"by selvedge"), mode: 0o644 };
    let before: States =
        [(file.clone(), State::Absent), (mtu.clone(), State::Mtu { bytes: 2044 })].into_iter().collect();
    let mut log = store.begin().unwrap();
    let (selvedge, owned, missing) = ("0".to_owned(), Owned::default(), [].into());
    log.append(&Record::Begin { format: FORMAT, selvedge, before, owned, missing }).unwrap();
    let changes = [(file, State::Absent, made), (mtu, State::Mtu { bytes: 2044 }, State::Mtu { bytes: 65520 })];
    for (object, before, after) in changes {
        let reason = Reason("test".into());
        let change = Change { object, before, after, reason, disturbs: BTreeSet::new(), condition: None };
        log.append(&Record::Doing { change }).unwrap();
    }
    log.append(&Record::Committed { owned: Owned::default() }).unwrap();
    drop(log);
    let (_, rollback) = Session::image(root.path(), None).unwrap().roll_back(false).unwrap();
    assert_eq!(rollback, Rollback::Done { saved: vec![] });
    assert!(!root.path().join("etc/made").exists());
}
