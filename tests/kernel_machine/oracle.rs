//! What `ip` says, and shorthands for a test's changes.

use std::collections::BTreeSet;
use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use selvedge::machine::real::RealMachine;
use selvedge::machine::{Machine, MachineError};
use selvedge::state::{Blobs, Change, Object, Reason, State};
use serde_json::Value;

/// Moves this thread into a network namespace of its own.
pub(crate) fn own_network() {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
}

/// Runs a program and returns what it printed.
pub(crate) fn run(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `ip`.
pub(crate) fn ip(arguments: &str) -> String {
    run("ip", arguments)
}

/// What `ip` says of a link, addresses included.
pub(crate) fn link(name: &str) -> Value {
    let text = ip(&format!("-d -j address show dev {name}"));
    let parsed: Vec<Value> = serde_json::from_str(&text).unwrap();
    parsed.into_iter().find(|link| link["ifname"] == name).unwrap()
}

/// The addresses of a link as `ip` lists them, sorted, without the kernel's own.
pub(crate) fn addresses(name: &str) -> Vec<String> {
    let link = link(name);
    let infos = link["addr_info"].as_array().unwrap();
    let text = |info: &Value| format!("{}/{}", info["local"].as_str().unwrap(), info["prefixlen"]);
    let mut found: Vec<String> = infos.iter().map(text).filter(|text| !text.starts_with("fe80")).collect();
    found.sort();
    found
}

/// Whether `ip` says that a link is up.
pub(crate) fn is_up(name: &str) -> bool {
    link(name)["flags"].as_array().unwrap().iter().any(|flag| flag == "UP")
}

/// Makes a change.
pub(crate) fn perform(machine: &mut RealMachine, object: &Object, after: State) -> Result<(), MachineError> {
    let change = Change {
        object: object.clone(),
        before: State::Absent,
        after,
        reason: Reason("the test asks for it".into()),
        disturbs: BTreeSet::new(),
        condition: None,
    };
    machine.perform(&change, &Blobs::default())
}

/// Looks at one object.
pub(crate) fn observe(machine: &mut RealMachine, object: &Object) -> State {
    machine.observe(std::slice::from_ref(object)).unwrap().states.get(object)
}

pub(crate) fn address(link: &str, address: &str) -> Object {
    Object::Address { link: link.parse().unwrap(), address: address.parse().unwrap() }
}

pub(crate) fn mtu(link: &str) -> Object {
    Object::LinkMtu { link: link.parse().unwrap() }
}

pub(crate) fn up(link: &str) -> Object {
    Object::LinkUp { link: link.parse().unwrap() }
}

pub(crate) fn mode(link: &str) -> Object {
    Object::LinkMode { link: link.parse().unwrap() }
}
