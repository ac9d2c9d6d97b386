//! What a session says of earlier applies, and what it leaves behind, on an image.

use std::path::Path;

use super::earlier;
use super::session::{Session, SessionError, SpecText};
use crate::apply::journal::{FORMAT, Record};
use crate::apply::store::Store;
use crate::state::{Owned, States};

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
