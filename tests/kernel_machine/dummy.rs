//! Links and addresses on dummy and veth links.

use selvedge::machine::Machine;
use selvedge::machine::real::RealMachine;
use selvedge::state::{AddressGeneration, Object, State};
use selvedge::tag::Tag;

use crate::Test;
use crate::oracle::{address, addresses, ip, is_up, link, mode, mtu, observe, own_network, perform, run, up};

pub(crate) const TESTS: &[Test] = &[
    ("addresses_come_and_go", addresses_come_and_go),
    ("removing_a_primary_keeps_its_secondaries", removing_a_primary_keeps_its_secondaries),
    ("a_route_is_put_back_as_it_was", a_route_is_put_back_as_it_was),
    ("mtu_and_up_are_set", mtu_and_up_are_set),
    ("a_refusal_carries_the_kernels_words", a_refusal_carries_the_kernels_words),
    ("an_observation_agrees_with_ip", an_observation_agrees_with_ip),
    ("how_a_link_local_address_is_made_is_set", how_a_link_local_address_is_made_is_set),
    ("a_setting_of_a_link_is_set_and_goes_with_it", a_setting_of_a_link_is_set_and_goes_with_it),
    ("a_vlan_is_made_and_removed", a_vlan_is_made_and_removed),
    ("a_missing_link_is_absent_and_refuses", a_missing_link_is_absent_and_refuses),
];

fn dummy() -> RealMachine {
    own_network();
    ip("link add d0 type dummy");
    RealMachine::live()
}

fn a_vlan_is_made_and_removed() {
    run("modprobe", "8021q");
    let mut machine = dummy();
    let child = |number| {
        let (link, parent) = ("d0.100".parse().unwrap(), "d0".parse().unwrap());
        Object::Child { link, parent, tag: Tag::Vlan(number) }
    };
    assert_eq!(observe(&mut machine, &child(100)), State::Absent);
    for _ in 0..2 {
        perform(&mut machine, &child(100), State::Present).unwrap();
    }
    let made = link("d0.100");
    assert_eq!((&made["link"], &made["linkinfo"]["info_data"]["id"]), (&"d0".into(), &100.into()), "{made}");
    assert_eq!(observe(&mut machine, &child(100)), State::Present);
    // Another one by that name is neither there nor absent.
    assert!(matches!(observe(&mut machine, &child(101)), State::Unknown { .. }));
    for _ in 0..2 {
        perform(&mut machine, &child(100), State::Absent).unwrap();
    }
    assert_eq!(observe(&mut machine, &child(100)), State::Absent);
}

fn addresses_come_and_go() {
    let mut machine = dummy();
    for text in ["10.0.0.1/16", "10.1.0.1/31", "169.254.7.7/16", "2001:db8::1/64"] {
        let object = address("d0", text);
        assert_eq!(observe(&mut machine, &object), State::Absent);
        perform(&mut machine, &object, State::Present).unwrap();
        perform(&mut machine, &object, State::Present).unwrap();
        assert_eq!(observe(&mut machine, &object), State::Present);
        assert_eq!(addresses("d0"), [text]);
        perform(&mut machine, &object, State::Absent).unwrap();
        perform(&mut machine, &object, State::Absent).unwrap();
        assert_eq!(observe(&mut machine, &object), State::Absent);
        assert!(addresses("d0").is_empty());
    }
    perform(&mut machine, &address("d0", "10.0.0.1/16"), State::Present).unwrap();
    let info = &link("d0")["addr_info"][0];
    assert_eq!((info["broadcast"].as_str(), info["scope"].as_str()), (Some("10.0.255.255"), Some("global")));
}

fn removing_a_primary_keeps_its_secondaries() {
    let mut machine = dummy();
    for text in ["10.0.0.1/16", "10.0.0.2/16", "10.0.0.3/16", "10.9.0.1/16"] {
        perform(&mut machine, &address("d0", text), State::Present).unwrap();
    }
    // What it is kept from: the kernel alone takes the secondaries with the primary.
    ip("link add d1 type dummy");
    ip("address add 10.3.0.1/16 dev d1");
    ip("address add 10.3.0.2/16 dev d1");
    ip("address delete 10.3.0.1/16 dev d1");
    assert!(addresses("d1").is_empty());
    perform(&mut machine, &address("d0", "10.0.0.1/16"), State::Absent).unwrap();
    assert_eq!(addresses("d0"), ["10.0.0.2/16", "10.0.0.3/16", "10.9.0.1/16"]);
}

/// Routes as ip has them, in all tables but the kernel's own.
fn routes() -> Vec<String> {
    let all = |family: &str| ip(&format!("-N {family} route show table all dev d0"));
    let text = all("-4") + &all("-6");
    let mut routes: Vec<String> =
        text.lines().filter(|line| !line.contains("proto 2")).map(|line| line.trim().to_owned()).collect();
    routes.sort();
    routes
}

fn a_route_is_put_back_as_it_was() {
    let mut machine = dummy();
    ip("link set d0 up");
    ip("address add 10.0.0.1/16 dev d0");
    ip("address add 10.0.0.2/16 dev d0");
    ip("address add 2001:db8::1/64 dev d0 nodad");
    for route in [
        "10.77.0.0/16 via 10.0.0.9",
        "10.78.0.0/16 via 10.0.0.9 table 1000 metric 7 proto 186 src 10.0.0.2",
        "10.79.0.0/16 scope link",
        "192.0.2.0/24 via 203.0.113.1 onlink",
        "default via 10.0.0.254 metric 900",
        "2001:db8:7::/48 via 2001:db8::9 metric 2048",
        "default via 2001:db8::fe table 101 proto 4",
    ] {
        ip(&format!("route add {route} dev d0"));
    }
    let before = routes();
    assert_eq!(before.len(), 7, "{before:#?}");
    let seen = machine.observe(&[address("d0", "10.0.0.1/16")]).unwrap();
    let found: Vec<Object> =
        seen.states.0.keys().filter(|object| matches!(object, Object::Route { .. })).cloned().collect();
    assert_eq!(found.len(), 7, "{found:#?}");
    ip("-4 route flush table all proto 3 dev d0");
    ip("-4 route flush table all proto 186 dev d0");
    ip("-6 route flush table all proto 3 dev d0");
    ip("-6 route flush table all proto 4 dev d0");
    assert!(routes().is_empty(), "{:#?}", routes());
    for object in &found {
        perform(&mut machine, object, State::Present).unwrap();
        perform(&mut machine, object, State::Present).unwrap();
    }
    assert_eq!(routes(), before);
}

fn mtu_and_up_are_set() {
    let mut machine = dummy();
    perform(&mut machine, &mtu("d0"), State::Mtu { bytes: 4092 }).unwrap();
    assert_eq!(link("d0")["mtu"], 4092);
    assert_eq!(observe(&mut machine, &mtu("d0")), State::Mtu { bytes: 4092 });
    perform(&mut machine, &up("d0"), State::Up).unwrap();
    assert!(is_up("d0"));
    assert_eq!(observe(&mut machine, &up("d0")), State::Up);
    perform(&mut machine, &up("d0"), State::Down).unwrap();
    assert!(!is_up("d0"));
    assert_eq!(observe(&mut machine, &up("d0")), State::Down);
    assert_eq!(link("d0")["mtu"], 4092, "a change of one attribute leaves the others");
}

fn a_refusal_carries_the_kernels_words() {
    let mut machine = dummy();
    ip("link add v0 type veth peer name v1");
    let error = perform(&mut machine, &mtu("v0"), State::Mtu { bytes: 70_000 }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the kernel refused to set v0 MTU to 70000: mtu greater than device maximum: Invalid argument"
    );
}

fn an_observation_agrees_with_ip() {
    let mut machine = dummy();
    ip("link set d0 up mtu 2044");
    for text in ["10.0.0.1/16", "10.0.0.2/16", "2001:db8::1/64"] {
        ip(&format!("address add {text} dev d0"));
    }
    let seen = machine.observe(&[mtu("d0")]).unwrap().states;
    let mut expected: Vec<_> = addresses("d0").iter().map(|text| (address("d0", text), State::Present)).collect();
    expected.push((mtu("d0"), State::Mtu { bytes: 2044 }));
    expected.push((up("d0"), State::Up));
    let made = run("sysctl", "--values net.ipv6.conf.d0.addr_gen_mode");
    assert_eq!(made.trim(), "0");
    let link = "d0".parse().unwrap();
    expected.push((Object::LinkLocal { link }, State::Made { by: AddressGeneration::Eui64 }));
    assert_eq!(seen, expected.into_iter().collect());
    let names: Vec<String> = machine.links().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["d0", "lo"]);
}

fn a_missing_link_is_absent_and_refuses() {
    let mut machine = dummy();
    for object in [mtu("d9"), up("d9"), mode("d9"), address("d9", "10.0.0.1/16"), mode("d0")] {
        assert_eq!(observe(&mut machine, &object), State::Absent, "{object}");
    }
    let error = perform(&mut machine, &mtu("d9"), State::Mtu { bytes: 1500 }).unwrap_err();
    assert_eq!(error.to_string(), "the kernel refused to set d9 MTU to 1500: No such device");
    perform(&mut machine, &address("d9", "10.0.0.1/16"), State::Absent).unwrap();
}

fn how_a_link_local_address_is_made_is_set() {
    let mut machine = dummy();
    let made = || link("d0")["addr_info"].as_array().unwrap().iter().any(|info| info["scope"] == "link");
    let object = Object::LinkLocal { link: "d0".parse().unwrap() };
    let by = |by| State::Made { by };
    perform(&mut machine, &object, by(AddressGeneration::None)).unwrap();
    ip("link set d0 up mtu 2044");
    assert_eq!((observe(&mut machine, &object), made()), (by(AddressGeneration::None), false));
    perform(&mut machine, &object, by(AddressGeneration::Eui64)).unwrap();
    assert_eq!((observe(&mut machine, &object), made()), (by(AddressGeneration::Eui64), true));
    // Below what IPv6 needs there is none.
    perform(&mut machine, &mtu("d0"), State::Mtu { bytes: 1279 }).unwrap();
    assert_eq!(observe(&mut machine, &object), State::Absent);
    assert!(machine.observe(&[mtu("d0")]).is_ok());
}

fn a_setting_of_a_link_is_set_and_goes_with_it() {
    let mut machine = dummy();
    // The dot in the name is part of the link's, as of an IPoIB child.
    ip("link add d0.8001 type dummy");
    let says = || run("sysctl", "--values net/ipv4/conf/d0.8001/arp_announce").trim().to_owned();
    let value = |text: &str| State::Value { text: text.to_owned() };
    let object = Object::Sysctl { key: "net/ipv4/conf/d0.8001/arp_announce".parse().unwrap() };
    assert_eq!((observe(&mut machine, &object), says().as_str()), (value("0"), "0"));
    perform(&mut machine, &object, value("2")).unwrap();
    assert_eq!((observe(&mut machine, &object), says().as_str()), (value("2"), "2"));
    run("sysctl", "--write net/ipv4/conf/d0.8001/arp_announce=1");
    assert_eq!(observe(&mut machine, &object), value("1"));
    let error = perform(&mut machine, &object, value("many")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the kernel refused to set sysctl net/ipv4/conf/d0.8001/arp_announce to many: Invalid argument (os error 22)"
    );
    ip("link delete d0.8001");
    assert_eq!(observe(&mut machine, &object), State::Absent);
    assert!(perform(&mut machine, &object, value("2")).is_err());
}
