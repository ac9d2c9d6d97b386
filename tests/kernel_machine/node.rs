//! Units and reloads on a whole node: systemd, networkd, netplan and udev as installed.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use selvedge::machine::Machine;
use selvedge::machine::real::RealMachine;
use selvedge::state::{Blobs, Change, ConfigSystem, Object, Reason, State};

use crate::Test;
use crate::oracle::{addresses, ip, observe, perform, run};

pub(crate) const TESTS: &[Test] = &[
    ("a_unit_is_started_and_stopped", a_unit_is_started_and_stopped),
    ("a_unit_that_fails_says_why_and_can_be_mended", a_unit_that_fails_says_why_and_can_be_mended),
    ("a_unit_that_dies_again_and_again_is_seen_and_stopped", a_unit_that_dies_again_and_again_is_seen_and_stopped),
    ("a_unit_that_is_starting_is_awaited", a_unit_that_is_starting_is_awaited),
    ("a_unit_that_is_not_there_is_stopped", a_unit_that_is_not_there_is_stopped),
    ("a_reload_restarts_a_unit_that_runs", a_reload_restarts_a_unit_that_runs),
    ("networkd_has_acted_when_its_reload_returns", networkd_has_acted_when_its_reload_returns),
    ("netplan_writes_its_files", netplan_writes_its_files),
];

const NAME: &str = "selvedge-test.service";
const PATH: &str = "/etc/systemd/system/selvedge-test.service";

fn unit() -> Object {
    Object::Unit { name: NAME.parse().unwrap() }
}

fn reload(machine: &mut RealMachine, system: ConfigSystem) {
    perform(machine, &Object::Reload { system }, State::Fresh).unwrap();
}

/// Writes the test's unit, a service of these lines, and has systemd read it.
fn service(machine: &mut RealMachine, lines: &str) {
    fs::write(PATH, format!("[Service]\n{lines}\n")).unwrap();
    reload(machine, ConfigSystem::Systemd);
}

fn active() -> String {
    let shown = run("systemctl", &format!("show --property=ActiveState --value {NAME}"));
    shown.trim().to_owned()
}

fn main_process() -> String {
    run("systemctl", &format!("show --property=MainPID --value {NAME}")).trim().to_owned()
}

/// Stops the test's unit, and forgets how it ended.
struct Cleared;

impl Drop for Cleared {
    fn drop(&mut self) {
        for verb in ["stop", "reset-failed"] {
            let _ = std::process::Command::new("systemctl").args([verb, NAME]).output();
        }
    }
}

fn a_unit_is_started_and_stopped() {
    let _cleared = Cleared;
    let mut machine = RealMachine::live();
    service(&mut machine, "ExecStart=/bin/sleep infinity");
    assert_eq!(observe(&mut machine, &unit()), State::Stopped);
    perform(&mut machine, &unit(), State::Running).unwrap();
    assert_eq!((observe(&mut machine, &unit()), active().as_str()), (State::Running, "active"));
    perform(&mut machine, &unit(), State::Running).unwrap();
    perform(&mut machine, &unit(), State::Stopped).unwrap();
    assert_eq!((observe(&mut machine, &unit()), active().as_str()), (State::Stopped, "inactive"));
    perform(&mut machine, &unit(), State::Stopped).unwrap();
}

fn a_unit_that_fails_says_why_and_can_be_mended() {
    let _cleared = Cleared;
    let mut machine = RealMachine::live();
    service(&mut machine, "Type=oneshot\nExecStart=/bin/sh -c 'echo the port is in use; exit 3'");
    let error = perform(&mut machine, &unit(), State::Running).unwrap_err().to_string();
    assert!(error.starts_with("selvedge-test.service did not start (failed, exit-code); its last words:\n"), "{error}");
    assert!(error.contains("the port is in use"), "{error}");
    assert_eq!((observe(&mut machine, &unit()), active().as_str()), (State::Failed, "failed"));
    service(&mut machine, "ExecStart=/bin/sleep infinity");
    let change = Change {
        object: unit(),
        before: State::Failed,
        after: State::Running,
        reason: Reason("mended".into()),
        disturbs: BTreeSet::new(),
        condition: None,
    };
    machine.perform(&change, &Blobs::default()).unwrap();
    assert_eq!(observe(&mut machine, &unit()), State::Running);
}

fn a_unit_that_dies_again_and_again_is_seen_and_stopped() {
    let _cleared = Cleared;
    let mut machine = RealMachine::live();
    service(&mut machine, "Restart=always\nRestartSec=5\nExecStart=/bin/false");
    let error = perform(&mut machine, &unit(), State::Running).unwrap_err().to_string();
    assert!(error.contains("does not stay up for 2 s"), "{error}");
    assert_eq!((observe(&mut machine, &unit()), active().as_str()), (State::Restarting, "activating"));
    perform(&mut machine, &unit(), State::Stopped).unwrap();
    assert_eq!((observe(&mut machine, &unit()), active().as_str()), (State::Stopped, "inactive"));
}

fn a_unit_that_is_starting_is_awaited() {
    let _cleared = Cleared;
    let mut machine = RealMachine::live();
    service(&mut machine, "Type=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sleep 3");
    run("systemctl", &format!("start --no-block {NAME}"));
    assert_eq!(active(), "activating");
    assert_eq!(observe(&mut machine, &unit()), State::Running);
}

fn a_unit_that_is_not_there_is_stopped() {
    let mut machine = RealMachine::live();
    let object = Object::Unit { name: "no-such.service".parse().unwrap() };
    assert_eq!(observe(&mut machine, &object), State::Stopped);
    let error = perform(&mut machine, &object, State::Running).unwrap_err().to_string();
    assert!(error.starts_with("systemd refused to StartUnit: ") && error.contains("not found"), "{error}");
}

fn a_reload_restarts_a_unit_that_runs() {
    let _cleared = Cleared;
    let mut machine = RealMachine::live();
    service(&mut machine, "ExecStart=/bin/sleep infinity");
    let reads = || ConfigSystem::Unit(NAME.parse().unwrap());
    reload(&mut machine, reads());
    assert_eq!(active(), "inactive", "a unit that does not run is not started");
    perform(&mut machine, &unit(), State::Running).unwrap();
    let before = main_process();
    reload(&mut machine, reads());
    assert_eq!(active(), "active");
    assert_ne!(main_process(), before);
}

fn networkd_has_acted_when_its_reload_returns() {
    assert_eq!(run("systemctl", "is-active systemd-networkd").trim(), "active");
    let mut machine = RealMachine::live();
    ip("link add d0 type dummy");
    ip("link add v0 type veth peer name v1");
    let file = |link: &str, address: &str| {
        let text = format!("[Match]\nName={link}\n[Network]\nAddress={address}\nLinkLocalAddressing=no\n");
        fs::write(format!("/etc/systemd/network/10-{link}.network"), text).unwrap();
    };
    for address in ["10.7.0.1/24", "10.7.0.2/24"] {
        file("d0", address);
        reload(&mut machine, ConfigSystem::Networkd);
        assert_eq!(addresses("d0"), [address]);
    }
    // Without carrier it is never configured.
    file("v0", "10.8.0.1/24");
    let begun = Instant::now();
    reload(&mut machine, ConfigSystem::Networkd);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    // What has been stuck all along is not waited for again; 5 s is the end of all waiting.
    let begun = Instant::now();
    reload(&mut machine, ConfigSystem::Networkd);
    let again = begun.elapsed();
    for link in ["d0", "v0"] {
        fs::remove_file(format!("/etc/systemd/network/10-{link}.network")).unwrap();
        ip(&format!("link delete {link}"));
    }
    reload(&mut machine, ConfigSystem::Networkd);
    assert!(again < Duration::from_secs(5), "{again:?}");
    println!("a link without carrier: {took:?}, again: {again:?}");
}

fn netplan_writes_its_files() {
    let mut machine = RealMachine::live();
    let path = "/etc/netplan/90-selvedge-test.yaml";
    fs::write(path, "network: {version: 2, bridges: {br7: {addresses: [10.6.0.1/24]}}}").unwrap();
    run("chmod", &format!("0600 {path}"));
    reload(&mut machine, ConfigSystem::Netplan);
    let made = fs::read_to_string("/run/systemd/network/10-netplan-br7.network");
    fs::remove_file(path).unwrap();
    assert!(made.unwrap().contains("Address=10.6.0.1/24"));
    fs::write(path, "network: {bridges: 7}").unwrap();
    let error = perform(&mut machine, &Object::Reload { system: ConfigSystem::Netplan }, State::Fresh).unwrap_err();
    fs::remove_file(path).unwrap();
    assert!(error.to_string().contains("expected mapping"), "{error}");
    reload(&mut machine, ConfigSystem::Netplan);
    reload(&mut machine, ConfigSystem::Udev);
}
