//! What a look at a node that is as it should be costs.

use std::process::Command;

use selvedge::machine::Machine;
use selvedge::machine::real::RealMachine;
use selvedge::state::Object;

use crate::ipoib::{GUID, Hca};
use crate::oracle::{address, mode, mtu, up};
use crate::{OBSERVE_ONLY, Test};

pub(crate) const TESTS: &[Test] = &[("a_look_is_cheap", a_look_is_cheap)];

/// System calls of a whole process that starts, looks at one IPoIB port and three files, and ends.
const MOST: usize = 250;

const FILES: [&str; 3] = ["/etc/passwd", "/etc/hosts", "/etc/no-such-file"];

fn scope() -> Vec<Object> {
    let mut scope = vec![Object::Interface { guid: GUID }, mode("ib0"), mtu("ib0"), up("ib0")];
    scope.push(address("ib0", "10.0.0.1/16"));
    scope.extend(FILES.iter().map(|path| Object::File { path: path.parse().unwrap() }));
    scope
}

/// The child: one look, no more.
pub(crate) fn observe_only(_: &str) {
    let observed = RealMachine::live().observe(&scope()).unwrap();
    assert!(observed.states.0.len() >= scope().len());
}

fn a_look_is_cheap() {
    let _hca = Hca::plug_in("");
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let traced = Command::new("strace")
        .args(["-f", "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .env(OBSERVE_ONLY, "1")
        .status()
        .unwrap();
    assert!(traced.success());
    let trace = std::fs::read_to_string(trace).unwrap();
    let calls = |name: &str| trace.lines().filter(|line| line.contains(&format!(" {name}("))).count();
    let all = trace.lines().count();
    println!("a look: {all} system calls, {} of them sendto, {} recvfrom", calls("sendto"), calls("recvfrom"));
    assert_eq!((calls("execve"), calls("clone") + calls("clone3") + calls("vfork")), (1, 0), "no child, no thread");
    assert_eq!(calls("sendto"), 4, "one dump of links, one of addresses, one of each kind of route");
    assert!(all <= MOST, "{all} system calls:\n{trace}");
}
