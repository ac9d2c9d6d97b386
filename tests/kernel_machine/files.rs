//! Files on a full disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use selvedge::machine::Machine;
use selvedge::machine::real::RealMachine;
use selvedge::state::{Blobs, Change, Object, Reason, State};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[("a_full_disk_leaves_the_old_file", a_full_disk_leaves_the_old_file)];

/// Mounts a file system of `size` bytes that only this thread sees.
fn tiny_disk(at: &Path, size: usize) {
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).unwrap();
    let options = format!("size={size}");
    mount(Some("tmpfs"), at, Some("tmpfs"), MsFlags::empty(), Some(options.as_str())).unwrap();
}

fn write(machine: &mut RealMachine, bytes: Vec<u8>) -> Result<(), selvedge::machine::MachineError> {
    let mut blobs = Blobs::default();
    let after = State::File { digest: blobs.insert(bytes), mode: 0o600 };
    let object = Object::File { path: "/etc/netplan/60-selvedge.yaml".parse().unwrap() };
    let reason = Reason("the test asks for it".into());
    let change = Change { object, before: State::Absent, after, reason, disturbs: BTreeSet::new(), condition: None };
    machine.perform(&change, &blobs)
}

fn a_full_disk_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    tiny_disk(folder.path(), 64 << 10);
    let mut machine = RealMachine::image(folder.path()).unwrap();
    write(&mut machine, b"old".to_vec()).unwrap();
    let error = write(&mut machine, vec![b'x'; 1 << 20]).unwrap_err();
    assert!(error.to_string().contains("No space left on device"), "{error}");
    let netplan = folder.path().join("etc/netplan");
    assert_eq!(fs::read(netplan.join("60-selvedge.yaml")).unwrap(), b"old");
    let names: Vec<_> = fs::read_dir(&netplan).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["60-selvedge.yaml"], "no temporary file is left");
}
