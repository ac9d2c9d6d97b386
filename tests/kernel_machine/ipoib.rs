//! IPoIB on a simulated HCA.

use std::time::{Duration, Instant};

use selvedge::machine::real::RealMachine;
use selvedge::machine::{Machine, MachineError};
use selvedge::rdma::{Guid, IpoibMode};
use selvedge::state::{Object, State};

use crate::Test;
use crate::oracle::{ip, is_up, link, mode, mtu, observe, perform, run, up};

pub(crate) const TESTS: &[Test] = &[
    ("modes_and_their_mtu_are_set", modes_and_their_mtu_are_set),
    ("a_child_is_not_its_port", a_child_is_not_its_port),
    ("an_interface_is_renamed_up_or_down", an_interface_is_renamed_up_or_down),
    ("an_interface_that_comes_late_is_awaited", an_interface_that_comes_late_is_awaited),
    ("enhanced_ipoib_is_refused_as_what_it_is", enhanced_ipoib_is_refused_as_what_it_is),
];

pub(crate) const GUID: Guid = Guid(0x0002_c903_0000_0001);

const CONNECTED: State = State::Mode { mode: IpoibMode::Connected };
const DATAGRAM: State = State::Mode { mode: IpoibMode::Datagram };

/// A simulated HCA, gone when dropped.
pub(crate) struct Hca;

impl Hca {
    pub(crate) fn plug_in(parameters: &str) -> Self {
        for needed in ["rdmavt", "ib_umad", "ib_ipoib"] {
            run("modprobe", needed);
        }
        run("modprobe", &format!("simhca guid={GUID} {parameters}"));
        Self
    }
}

impl Drop for Hca {
    fn drop(&mut self) {
        run("rmmod", "simhca");
    }
}

fn port() -> Object {
    Object::Interface { guid: GUID }
}

fn named(name: &str) -> State {
    State::Named { name: name.parse().unwrap() }
}

fn modes_and_their_mtu_are_set() {
    let _hca = Hca::plug_in("");
    let mut machine = RealMachine::live();
    assert_eq!(observe(&mut machine, &port()), named("ib0"));
    perform(&mut machine, &mode("ib0"), CONNECTED).unwrap();
    assert_eq!(link("ib0")["linkinfo"]["info_data"]["mode"], "connected");
    assert_eq!(std::fs::read_to_string("/sys/class/net/ib0/mode").unwrap(), "connected\n");
    assert_eq!(observe(&mut machine, &mode("ib0")), CONNECTED);
    perform(&mut machine, &mtu("ib0"), State::Mtu { bytes: 65_520 }).unwrap();
    assert_eq!(link("ib0")["mtu"], 65_520);
    perform(&mut machine, &mode("ib0"), DATAGRAM).unwrap();
    assert_eq!(link("ib0")["linkinfo"]["info_data"]["mode"], "datagram");
    let error = perform(&mut machine, &mtu("ib0"), State::Mtu { bytes: 65_520 }).unwrap_err();
    assert!(error.to_string().contains("Invalid argument"), "{error}");
    let seen = machine.observe(&[mode("ib0")]).unwrap().states;
    assert_eq!(seen.get(&mode("ib0")), DATAGRAM);
    assert_eq!(
        seen.get(&mtu("ib0")),
        State::Mtu { bytes: u32::try_from(link("ib0")["mtu"].as_u64().unwrap()).unwrap() }
    );
}

fn a_child_is_not_its_port() {
    let _hca = Hca::plug_in("");
    ip("link add link ib0 name ib0.8001 type ipoib pkey 0x8001");
    let mut machine = RealMachine::live();
    assert_eq!(observe(&mut machine, &port()), named("ib0"));
    perform(&mut machine, &mode("ib0.8001"), CONNECTED).unwrap();
    assert_eq!(link("ib0.8001")["linkinfo"]["info_data"]["mode"], "connected");
    assert_eq!(link("ib0")["linkinfo"]["info_data"]["mode"], "datagram");
    let facts = selvedge::facts::gather(std::path::Path::new("/")).unwrap();
    let device = facts.devices.iter().find(|device| device.name.as_str().starts_with("mlx5_")).unwrap();
    assert_eq!(device.ports[0].guid, GUID);
    let netdev = device.ports[0].netdev.as_ref().unwrap();
    assert_eq!((netdev.name.as_str(), netdev.connected_capable), ("ib0", Some(true)));
}

fn an_interface_is_renamed_up_or_down() {
    let _hca = Hca::plug_in("");
    let mut machine = RealMachine::live();
    perform(&mut machine, &port(), named("ibs0")).unwrap();
    assert_eq!(observe(&mut machine, &port()), named("ibs0"));
    perform(&mut machine, &up("ibs0"), State::Up).unwrap();
    perform(&mut machine, &port(), named("ib0")).unwrap();
    assert!(is_up("ib0"));
    perform(&mut machine, &port(), named("ib0")).unwrap();
    let error = perform(&mut machine, &port(), named("lo")).unwrap_err();
    assert!(error.to_string().contains("File exists"), "{error}");
    assert!(is_up("ib0"), "a rename that failed leaves the link as it was");
}

fn an_interface_that_comes_late_is_awaited() {
    let waiting = std::thread::spawn(|| {
        let begun = Instant::now();
        let ended = perform(&mut RealMachine::live(), &Object::Interface { guid: GUID }, named("ibs0"));
        (ended, begun.elapsed())
    });
    std::thread::sleep(Duration::from_secs(2));
    let _hca = Hca::plug_in("");
    let (ended, waited) = waiting.join().unwrap();
    ended.unwrap();
    assert!(waited >= Duration::from_secs(2));
    assert_eq!(link("ibs0")["link_type"], "infiniband");
}

fn enhanced_ipoib_is_refused_as_what_it_is() {
    let _hca = Hca::plug_in("enhanced=1");
    let mut machine = RealMachine::live();
    let error = perform(&mut machine, &mode("ib0"), CONNECTED).unwrap_err();
    assert!(matches!(error, MachineError::NoConnectedMode { .. }), "{error}");
    assert_eq!(observe(&mut machine, &mode("ib0")), DATAGRAM);
}
