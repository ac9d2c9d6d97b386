use super::*;
use crate::intent::Membership;
use crate::rdma::Guid;
use crate::spec::load;

fn spec(hosts: &str) -> Spec {
    let text = include_str!("../../examples/quickstart.toml").replace("node[01-02]", hosts).replace("/16", "/8");
    load("spec.toml", &text).unwrap().spec
}

fn host(name: &str) -> HostName {
    name.parse().unwrap()
}

#[test]
fn each_value_knows_its_place_in_the_spec() {
    let intent = compile(&spec("node[01-16]"), &host("node16")).unwrap();
    let port = &intent.ports[0];
    assert_eq!(port.links[0].addresses[0].address.value, "10.0.0.16/8".parse().unwrap());
    assert_eq!(port.links[0].addresses[0].address.origin.to_string(), "[networks.compute] cidr = \"10.0.0.0/8\"");
    assert_eq!(port.links[0].mode.origin.to_string(), "[networks.compute] mode = \"auto\"");
    assert_eq!(port.device.origin.to_string(), "[[nodes.ports]] device = \"mlx5_0\"");
    assert!(intent.managers.is_empty());
}

#[test]
fn managers_know_their_rank_and_each_other() {
    let intent = compile(&spec("node[01-16]"), &host("node02")).unwrap();
    let role = &intent.managers[0];
    assert_eq!((role.rank, role.managers.as_slice()), (1, [host("node01"), host("node02")].as_slice()));
    assert_eq!(role.origin.to_string(), "[fabrics.compute.subnet-manager] standby has \"node02\"");
}

#[test]
fn managers_whose_ports_have_guids_in_the_spec_are_known_by_them() {
    let group =
        "\n[[nodes]]\nhosts = \"node02\"\n[[nodes.ports]]\nguid = \"0x0002c90300000002\"\nnetwork = \"compute\"\n";
    let text = include_str!("../../examples/quickstart.toml").replace("node[01-02]", "node01") + group;
    let spec = load("spec.toml", &text).unwrap().spec;
    let fabric = "compute".parse().unwrap();
    assert_eq!(guid_on(&spec, &host("node02"), &fabric), Some(Guid(0x0002_c903_0000_0002)));
    assert_eq!(guid_on(&spec, &host("node01"), &fabric), None);
    assert_eq!(guid_on(&spec, &host("node03"), &fabric), None);
    assert_eq!(compile(&spec, &host("node01")).unwrap().managers[0].guids, [Guid(0x0002_c903_0000_0002)]);
}

/// A group whose hosts say the GUIDs of their ports, one of them with an address of its own.
fn with_exceptions() -> Spec {
    let exceptions = "\n[hosts]\nnode01.guids.ib0 = \"0x0002c90300000001\"\nnode02.guids.ib0 = \"0x0002c90300000002\"\n\
                      node02.addresses.compute = \"10.0.200.2\"\n";
    let text = include_str!("../../examples/quickstart.toml").replace("device = \"mlx5_0\"", "");
    load("spec.toml", &(text + exceptions)).unwrap().spec
}

#[test]
fn what_is_special_about_a_host_goes_before_its_group() {
    let spec = with_exceptions();
    let port = |name: &str| compile(&spec, &host(name)).unwrap().ports.remove(0);
    let (first, second) = (port("node01"), port("node02.cluster.example"));
    assert_eq!(first.device.value, DeviceSelector::Guid(Guid(0x0002_c903_0000_0001)));
    assert_eq!(first.device.origin.to_string(), "[hosts.node01] guids.ib0 = \"0x0002c90300000001\"");
    assert_eq!(first.links[0].addresses[0].address.value, "10.0.0.1/16".parse().unwrap());
    assert_eq!(second.device.value, DeviceSelector::Guid(Guid(0x0002_c903_0000_0002)));
    assert_eq!(second.links[0].addresses[0].address.value, "10.0.200.2/16".parse().unwrap());
    assert_eq!(
        second.links[0].addresses[0].address.origin.to_string(),
        "[hosts.node02] addresses.compute = \"10.0.200.2\""
    );
}

#[test]
fn a_guid_that_a_host_says_is_known_to_the_fabric() {
    let spec = with_exceptions();
    let fabric = "compute".parse().unwrap();
    assert_eq!(guid_on(&spec, &host("node02"), &fabric), Some(Guid(0x0002_c903_0000_0002)));
    assert_eq!(compile(&spec, &host("node01")).unwrap().managers[0].guids.len(), 2);
}

#[test]
fn hosts_with_addresses_of_their_own_need_no_number_and_leave_theirs_free() {
    let said = |exceptions: &str| {
        let text = include_str!("../../examples/quickstart.toml").replace("node[01-02]", "node[01-02],login,node2");
        load("spec.toml", &(text + exceptions))
            .map(|_| ())
            .map_err(|faults| faults.records().into_iter().map(|record| record.code.to_string()).collect::<Vec<_>>())
    };
    let login = "\n[hosts]\nlogin.addresses.compute = \"10.0.200.1\"\n";
    assert_eq!(said(""), Err(vec!["host-without-number".to_owned(), "number-collision".to_owned()]));
    assert_eq!(said(login), Err(vec!["number-collision".to_owned()]));
    assert_eq!(said(&format!("{login}node2.addresses.compute = \"10.0.200.2\"\n")), Ok(()));
}

#[test]
fn a_qualified_name_is_the_host_of_its_first_label() {
    let intent = compile(&spec("node[01-16]"), &host("node03.cluster.example")).unwrap();
    assert_eq!(intent.host, host("node03"));
}

#[test]
fn an_unknown_host_is_told_what_may_have_been_meant() {
    let said = |name: &str| compile(&spec("node[01-16]"), &host(name)).unwrap_err().to_string();
    assert_eq!(said("node7"), "the spec has no host `node7`: it has 16 hosts; near: node07");
    assert_eq!(said("NODE07"), "the spec has no host `NODE07`: it has 16 hosts; near: node07");
    assert_eq!(said("node017"), "the spec has no host `node017`: it has 16 hosts; near: node[01-16]");
    assert_eq!(said("storage"), "the spec has no host `storage`: it has 16 hosts");
}

#[test]
fn many_hosts_cost_no_more_than_one() {
    let spec = spec("node[01-60000]");
    let start = std::time::Instant::now();
    for _ in 0..1000 {
        compile(&spec, &host("node59999")).unwrap();
        compile(&spec, &host("node")).unwrap_err();
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn groups_whose_names_have_the_same_numbers_take_turns() {
    let quickstart = include_str!("../../examples/quickstart.toml").replace("config = \"netplan\"", "stride = 2");
    let group = "\n[[nodes]]\nhosts = \"gpu[01-02]\"\nstride = 2\noffset = 1\n\
                 [[nodes.ports]]\ndevice = \"mlx5_0\"\nnetwork = \"compute\"\n";
    let spec = load("spec.toml", &(quickstart + group)).unwrap().spec;
    let address = |name: &str| {
        compile(&spec, &host(name)).unwrap().ports[0].links[0].addresses[0].address.value.addr().to_string()
    };
    assert_eq!(["node01", "gpu01", "node02", "gpu02"].map(address), ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"]);
}

/// A port's networks: those of its own interface together, each partition and VLAN on one of its own.
#[test]
fn networks_come_together_on_their_interfaces() {
    let spec = load("spec.toml", include_str!("../../examples/partitions.toml")).unwrap().spec;
    let intent = compile(&spec, &host("gpu03")).unwrap();
    let words = |port: &PortIntent| {
        let link = |link: &LinkIntent| {
            let addresses: Vec<String> = link.addresses.iter().map(|one| one.address.value.to_string()).collect();
            let tag = link.tag.as_ref().map_or("own".to_owned(), |tag| tag.value.to_string());
            format!("{tag}: {}", addresses.join(" "))
        };
        port.links.iter().map(link).collect::<Vec<_>>()
    };
    assert_eq!(words(&intent.ports[0]), ["own: 10.0.0.3/16 fd00:0:0:1::3/64", "partition 0x8001: 10.2.0.3/16"]);
    assert_eq!(words(&intent.ports[1]), ["own: 10.1.0.3/16", "partition 0x8002: 10.3.0.3/16"]);
    // Nothing is on the port's own interface but the VLAN.
    assert_eq!(words(&intent.ports[2]), ["own: ", "VLAN 100: 10.4.0.3/16"]);
    // Of the hosts that are named, the ports in networks of the partition.
    let role = &compile(&spec, &host("sto01")).unwrap().managers[0];
    let [jobs, storage] = &role.partitions[..] else { panic!("{role:?}") };
    assert_eq!((jobs.rest, jobs.ports.len()), (Some(Membership::Full), 0));
    assert_eq!((storage.rest, storage.ports.len()), (Some(Membership::Limited), 2));
    assert!(storage.ports.iter().all(|(_, membership)| *membership == Membership::Full));
}
