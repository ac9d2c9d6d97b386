//! Modules, and the facts of a live host.

use std::path::Path;

use selvedge::facts::gather;
use selvedge::machine::real::RealMachine;
use selvedge::state::{Object, State};

use crate::Test;
use crate::oracle::{ip, observe, own_network, perform, run};

pub(crate) const TESTS: &[Test] = &[
    ("a_module_is_loaded_and_unloaded", a_module_is_loaded_and_unloaded),
    ("a_module_that_is_not_there_says_so", a_module_that_is_not_there_says_so),
    ("links_of_default_routes_are_protected", links_of_default_routes_are_protected),
];

fn module(name: &str) -> Object {
    Object::Module { name: name.parse().unwrap() }
}

fn a_module_is_loaded_and_unloaded() {
    let mut machine = RealMachine::live();
    let vlan = module("8021q");
    for (after, listed) in [(State::Present, true), (State::Absent, false)] {
        perform(&mut machine, &vlan, after.clone()).unwrap();
        assert_eq!(observe(&mut machine, &vlan), after);
        assert_eq!(run("lsmod", "").lines().any(|line| line.starts_with("8021q ")), listed);
    }
}

fn a_module_that_is_not_there_says_so() {
    let error = perform(&mut RealMachine::live(), &module("no_such_module"), State::Present).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("modprobe -- no_such_module") && text.contains("not found"), "{text}");
}

fn links_of_default_routes_are_protected() {
    own_network();
    let protected = || {
        let facts = gather(Path::new("/")).unwrap();
        facts.protected.iter().map(|entry| format!("{}: {}", entry.link, entry.carries)).collect::<Vec<_>>()
    };
    assert!(protected().is_empty());
    ip("link add d0 type dummy");
    ip("link add d1 type dummy");
    ip("link add bond0 type bond mode active-backup");
    ip("link set d1 master bond0");
    for link in ["d0", "d1", "bond0"] {
        ip(&format!("link set {link} up"));
    }
    ip("address add 10.0.0.1/16 dev d0");
    ip("address add 2001:db8::1/64 dev bond0 nodad");
    ip("route add 10.9.0.0/16 via 10.0.0.254 dev d0");
    ip("route add default via 10.0.0.254 dev d0 table 200");
    assert!(protected().is_empty(), "a rail's own table is no default route");
    ip("route add default via 10.0.0.254 dev d0");
    ip("route add default via 2001:db8::2 dev bond0");
    assert_eq!(
        protected(),
        ["bond0: the default route", "d1: the default route, by way of bond0", "d0: the default route"]
    );
}
