use super::*;
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
    assert_eq!(port.address.value, "10.0.0.16/8".parse().unwrap());
    assert_eq!(port.address.origin.to_string(), "[networks.compute] cidr = \"10.0.0.0/8\"");
    assert_eq!(port.mode.origin.to_string(), "[networks.compute] mode = \"auto\"");
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
