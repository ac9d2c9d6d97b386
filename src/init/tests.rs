//! What `init` makes of facts is a spec that `check` takes, and that finds on each host the ports it was made of.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;

use super::{InitError, spec_of};
use crate::compile::compile;
use crate::facts::by_host::{Answer, FactsByHost, NoAnswer};
use crate::facts::{Device, Facts, Netdev, PortFacts};
use crate::name::HostName;
use crate::plan::Protected;
use crate::rdma::{Guid, Transport};
use crate::spec::{self, Spec};

const RAILS: &str = include_str!("../../tests/cases/rails-netplan/facts.json");

fn rails() -> Facts {
    serde_json::from_str(RAILS).unwrap()
}

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

/// The text and the spec, which has no error.
fn made(found: &FactsByHost) -> (String, Spec) {
    let text = spec_of(found).unwrap();
    match spec::load("init", &text) {
        Ok(checked) => (text, checked.spec),
        Err(faults) => panic!("{:?}\n{text}", faults.faults),
    }
}

/// So many hosts like `gpu300`, each with GUIDs of its own.
fn cluster(names: &[&str], change: impl Fn(usize, &mut Facts)) -> FactsByHost {
    let host = |(index, text): (usize, &&str)| {
        let mut facts = rails();
        facts.hostname = Some(name(text));
        for port in facts.devices.iter_mut().flat_map(|device| &mut device.ports) {
            port.guid = Guid(port.guid.0 + 0x1_0000 * index as u64);
            (port.lid, port.sm_lid) = (0, 0);
        }
        change(index, &mut facts);
        (name(text), Answer::Facts(Box::new(facts)))
    };
    names.iter().enumerate().map(host).collect()
}

#[track_caller]
fn says(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}

#[test]
fn hosts_alike_are_one_block_by_device() {
    let found = cluster(&["gpu1", "gpu2", "gpu10", "gpu9"], |_, _| {});
    let (text, spec) = made(&found);
    assert_eq!(spec.nodes.len(), 1, "{text}");
    assert_eq!(spec.nodes[0].hosts.as_str(), "gpu[1-2,9-10]");
    says(
        &text,
        &[
            "speed = \"HDR\"\n",
            "speed = \"100G\"\n",
            "# links: 200 Gb/sec (4X HDR) on gpu[1-2,9-10]\n",
            "primary = \"gpu1\"\nstandby = [\"gpu2\"]\n",
            "[networks.ib-rail1]\nfabric = \"infiniband\"\ncidr = \"10.1.0.0/16\"",
            "[networks.roce]\nfabric = \"roce\"\ncidr = \"10.2.0.0/16\"",
            "# `config` is auto, what the host uses: netplan on gpu[1-2,9-10]\n",
            "device = \"mlx5_2\"\n# interface = \"ens3f0np0\"",
        ],
    );
    assert_eq!(spec::load("init", &text).unwrap().warnings.faults, []);
}

#[test]
fn hosts_that_name_their_devices_each_in_its_own_way_go_by_guid() {
    let found = cluster(&["gpu1", "gpu2", "gpu3", "gpu4"], |index, facts| {
        if index >= 2 {
            facts.devices[1].name = format!("mlx5_1{index}").parse().unwrap();
        }
    });
    let (text, spec) = made(&found);
    let lists: Vec<&str> = spec.nodes.iter().map(|group| group.hosts.as_str()).collect();
    assert_eq!(lists, ["gpu[1-2]", "gpu[3-4]"], "{text}");
    says(&text, &["device = \"mlx5_0\"\n", "interface = \"ib-rail1\"\n"]);
    says(&text, &["gpu3.guids.ib-rail1 = \"0x506b4b0300a3b2d8\"  # mlx5_12\n", "gpu4.guids.ib-rail1 = "]);
    assert!(!text.contains("guids.ib-rail0"), "{text}");
}

#[test]
fn without_guids_of_their_own_each_is_a_block() {
    let found = cluster(&["gpu1", "gpu2"], |index, facts| {
        facts.devices[1].name = format!("mlx5_1{index}").parse().unwrap();
        facts.devices[1].ports[0].guid = Guid(7);
    });
    assert_eq!(made(&found).1.nodes.len(), 2);
}

#[test]
fn names_that_give_no_number_of_their_own_are_counted() {
    let found = cluster(&["alpha", "beta", "gpu7", "gpu9"], |index, facts| {
        if index < 2 {
            facts.devices.pop();
        }
    });
    let (text, spec) = made(&found);
    says(&text, &["hosts = \"alpha,beta\"\n", "numbering = \"position\"\noffset = 9\n"]);
    let address = |host: &str| {
        compile(&spec, &name(host)).unwrap().ports[0].addresses().next().unwrap().address.value.to_string()
    };
    assert_eq!(["alpha", "beta", "gpu7"].map(address), ["10.0.0.10/16", "10.0.0.11/16", "10.0.0.7/16"]);
    let far = cluster(&["alpha", "n65534"], |index, facts| {
        if index == 0 {
            facts.devices.pop();
        }
    });
    says(&made(&far).0, &["hosts = \"n65534\"\n# CHECK: the names give no number"]);
}

#[test]
fn what_carries_the_site_is_left_alone() {
    let found = cluster(&["gpu1"], |_, facts| {
        let netdev = facts.devices[2].ports[0].netdev.as_mut().unwrap();
        netdev.addresses = vec!["10.0.7.7/24".parse().unwrap()];
        let carries = "the default\nroute".to_owned();
        facts.protected = vec![Protected { link: netdev.name.clone(), carries }];
    });
    let (text, spec) = made(&found);
    says(&text, &["# left alone: mlx5_2 port 1: its interface ens3f0np0 carries the default\\nroute, on gpu1\n"]);
    assert_eq!(spec.nodes[0].ports.len(), 2);
    assert_eq!(spec.networks["ib-rail0"].cidr.to_string(), "10.1.0.0/16", "10.0.0.0/16 has an address of the site");
    let mounted = cluster(&["gpu1"], |_, facts| {
        facts.protected = vec![Protected { link: "ib0".parse().unwrap(), carries: "/scratch (lustre)".to_owned() }];
    });
    let (text, spec) = made(&mounted);
    says(&text, &["# carries /scratch (lustre) on gpu1: a change that could disturb it needs `--confirm`\n"]);
    assert_eq!(spec.nodes[0].ports.len(), 3, "an InfiniBand port is what the spec is for");
}

#[test]
fn the_manager_that_is_there_stays() {
    let lids = |lids: [(u16, u16); 2]| {
        cluster(&["gpu1", "gpu2"], move |index, facts| {
            let port = &mut facts.devices[0].ports[0];
            (port.lid, port.sm_lid) = lids[index];
        })
    };
    says(
        &made(&lids([(1, 2), (2, 2)])).0,
        &["# CHECK: gpu2 runs the master now", "primary = \"gpu2\"\nstandby = [\"gpu1\"]"],
    );
    let (outside, spec) = made(&lids([(1, 9), (2, 9)]));
    says(&outside, &["a subnet manager answers that is on none of these hosts", "# primary = \"gpu1\"\n"]);
    assert!(spec.fabrics["infiniband"].subnet_manager.is_none());
}

#[test]
fn hosts_that_differ_in_speed_and_do_not_answer_are_named() {
    let mut found = cluster(&["gpu1", "gpu2"], |index, facts| {
        if index == 1 {
            facts.devices[0].ports[0].rate = "100 Gb/sec (2X HDR)".to_owned();
        }
    });
    found.insert(name("gpu3"), Answer::None(NoAnswer { error: "off".to_owned() }));
    let (text, _) = made(&found);
    says(&text, &["# CHECK: not in here, since there was no answer: gpu3.\n"]);
    says(&text, &["# links: 100 Gb/sec (2X HDR) on gpu2\nspeed = \"HDR\"  # CHECK: hosts differ"]);
    assert_eq!(spec_of(&FactsByHost::new()), Err(InitError::NoFacts));
    found.retain(|_, answer| matches!(answer, Answer::None(_)));
    assert_eq!(spec_of(&found), Err(InitError::NoFacts));
}

#[test]
fn a_host_that_was_asked_by_its_address_has_its_own_name() {
    let Answer::Facts(facts) = cluster(&["gpu1"], |_, _| {}).remove("gpu1").unwrap() else { panic!("facts") };
    let found = FactsByHost::from([(name("192.0.2.17"), Answer::Facts(facts))]);
    let (text, spec) = made(&found);
    says(&text, &["hosts = \"gpu1\"", "gpu1.ssh = \"192.0.2.17\""]);
    assert_eq!(spec.hosts["gpu1"].ssh, Some(name("192.0.2.17")));
    let named = cluster(&["gpu1"], |_, facts| facts.hostname = Some(name("localhost")));
    assert_eq!(made(&named).1.nodes[0].hosts.as_str(), "gpu1", "the name that it is asked by is its name");
}

/// Texts that would leave a comment or a string, if they could.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("LinkUp".to_owned()),
        Just("ACTIVE".to_owned()),
        Just("x\n[cluster]\nname = 1".to_owned()),
        Just("\"\"\"\u{1b}\u{7f}\r\u{2028}\0".to_owned()),
        ".{0,12}",
    ]
}

fn rate() -> impl Strategy<Value = String> {
    prop_oneof![
        select(
            &["200 Gb/sec (4X HDR)", "2.5 Gb/sec (1X SDR)", "100 Gb/sec (2X HDR)", "nan Gb/sec (4X)", "-1 Gb/sec (1X)"]
                [..]
        )
        .prop_map(str::to_owned),
        hostile(),
    ]
}

fn netdev() -> impl Strategy<Value = Option<Netdev>> {
    let addresses =
        select(&["10.0.0.1/8", "10.3.0.1/16", "fd00::1/64", "0.0.0.0/0"][..]).prop_map(|net| net.parse().unwrap());
    let name = select(&["ib0", "ib1", "eth0", "0", "lo", "ib-rail0"][..]).prop_map(|name| name.parse().unwrap());
    let netdev = (name, prop::collection::vec(addresses, 0..2));
    prop::option::weighted(
        0.9,
        netdev.prop_map(|(name, addresses)| Netdev { name, connected_capable: None, addresses, networkd_file: None }),
    )
}

prop_compose! {
    fn port()(
        number in prop_oneof![4 => 1..3u8, 1 => any::<u8>()],
        is_roce in any::<bool>(),
        guid in prop_oneof![Just(0), 1..6u64, any::<u64>()],
        (state, physical_state, rate) in (hostile(), hostile(), rate()),
        (lid, sm_lid) in (0..3u16, 0..3u16),
        netdev in netdev(),
    ) -> PortFacts {
        let transport = if is_roce { Transport::Roce } else { Transport::Infiniband };
        PortFacts { number, transport, guid: Guid(guid), state, physical_state, rate, lid, sm_lid, netdev }
    }
}

prop_compose! {
    fn device()(
        name in select(&["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_10", "ibp59s0", "rxe0"][..]),
        pci in prop::option::of(hostile()),
        ports in prop::collection::vec(port(), 0..3),
    ) -> Device {
        let name = name.parse().unwrap();
        Device { name, pci: pci.clone(), driver: pci.clone(), firmware: pci.clone(), board_id: pci, numa_node: None, ports }
    }
}

fn host() -> impl Strategy<Value = HostName> {
    let text = prop_oneof![
        "n[0-9]{1,2}",
        "(gpu|rack1-n)0?[0-3]",
        "[a-c](\\.s[12])?",
        Just("n65534".to_owned()),
        Just("n65535".to_owned()),
        Just("n99999999999999999999".to_owned()),
        Just("192.0.2.7".to_owned()),
    ];
    text.prop_map(|text| text.parse().unwrap())
}

prop_compose! {
    fn facts()(
        hostname in prop::option::of(host()),
        kernel in hostile(),
        devices in prop::collection::vec(device(), 0..5),
        carries in prop::option::weighted(0.3, hostile()),
        networkd in any::<bool>(),
    ) -> Facts {
        let config = crate::facts::ConfigEvidence { networkd, ..Default::default() };
        let protected = carries.into_iter().map(|carries| Protected { link: "eth0".parse().unwrap(), carries });
        let protected = protected.collect();
        Facts { version: 1, hostname, kernel, devices, config, programs: Default::default(), protected }
    }
}

fn answer() -> impl Strategy<Value = Answer> {
    let silent = hostile().prop_map(|error| Answer::None(NoAnswer { error }));
    prop_oneof![8 => facts().prop_map(|facts| Answer::Facts(Box::new(facts))), 1 => silent]
}

/// Many hosts of few kinds: what real clusters are.
fn found() -> impl Strategy<Value = FactsByHost> {
    let mixed = prop::collection::btree_map(host(), answer(), 1..12);
    let kinds = (prop::collection::vec(facts(), 1..4), prop::collection::btree_map(host(), any::<(u8, u32)>(), 1..40));
    let alike = kinds.prop_map(|(kinds, hosts)| {
        let of_kind = |(host, (kind, guid)): (HostName, (u8, u32))| {
            let mut facts = kinds[usize::from(kind) % kinds.len()].clone();
            facts.hostname = Some(host.clone());
            for port in facts.devices.iter_mut().flat_map(|device| &mut device.ports) {
                port.guid.0 ^= u64::from(guid) << 8;
            }
            (host, Answer::Facts(Box::new(facts)))
        };
        hosts.into_iter().map(of_kind).collect()
    });
    prop_oneof![mixed, alike]
}

/// The facts that a host of the spec was made of.
fn facts_of<'f>(found: &'f FactsByHost, spec: &Spec, host: &HostName) -> &'f Facts {
    let asked = spec.hosts.get(host).and_then(|exception| exception.ssh.as_ref()).unwrap_or(host);
    match &found[asked] {
        Answer::Facts(facts) => facts,
        Answer::None(_) => panic!("{host} did not answer"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn what_init_makes_of_any_facts_passes_the_check(found in found()) {
        let answered = found.values().filter(|answer| matches!(answer, Answer::Facts(_))).count();
        prop_assume!(answered > 0);
        let (text, spec) = made(&found);
        let hosts: Vec<HostName> = spec.nodes.iter().flat_map(|group| group.hosts.iter()).collect();
        prop_assert_eq!(hosts.len(), answered, "{}", text);
        for host in hosts {
            let facts = facts_of(&found, &spec, &host);
            let intent = compile(&spec, &host).unwrap();
            let mut seen = BTreeSet::new();
            for wanted in &intent.ports {
                // By GUID or by name, it is a port that the host has, on the transport that it has.
                let all = facts.devices.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
                let mut fitting = all.filter(|(device, port)| match &wanted.device.value {
                    spec::DeviceSelector::Name(name) => *name == device.name && port.number == wanted.port,
                    spec::DeviceSelector::Guid(guid) => port.guid == *guid,
                    spec::DeviceSelector::Pci(_) => false,
                });
                let (device, port) = fitting.next().unwrap_or_else(|| panic!("{host} has no {wanted:?}\n{text}"));
                prop_assert!(seen.insert((device.name.clone(), port.number)), "{} twice\n{}", device.name, text);
                let is_roce = port.transport == Transport::Roce;
                let is_protected = is_roce && port.netdev.as_ref().is_some_and(|netdev| facts.protected.iter().any(|one| one.link == netdev.name));
                prop_assert!(!is_protected || fitting.next().is_some(), "{}", text);
            }
        }
    }
}
