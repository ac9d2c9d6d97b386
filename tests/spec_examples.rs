//! Every example is a valid spec.

use selvedge::spec::{self, DeviceSelector, FabricMtu, ModeChoice, MtuChoice};

#[test]
fn the_quickstart_says_what_it_says() {
    let text = include_str!("../examples/quickstart.toml");
    let checked = spec::load("quickstart.toml", text).unwrap();
    assert_eq!(checked.warnings.faults, []);
    let spec = checked.spec;
    assert_eq!(spec.cluster.name.as_str(), "quickstart");
    let fabric = &spec.fabrics["compute"];
    assert_eq!(fabric.speed.data_gbps(), 200.0);
    assert_eq!(fabric.mtu, FabricMtu::B2048);
    assert_eq!(fabric.subnet_manager.as_ref().unwrap().standby[0].as_str(), "node02");
    let network = &spec.networks["compute"];
    assert_eq!((network.mode, network.mtu), (ModeChoice::Auto, MtuChoice::Max));
    assert_eq!(spec.nodes[0].hosts.count(), 2);
    assert_eq!(spec.nodes[0].ports[0].interface.as_ref().unwrap().as_str(), "ib0");
}

#[test]
fn ranges_of_one_row_advance_together() {
    let spec = spec::load("rails.toml", include_str!("../examples/rails.toml")).unwrap().spec;
    let ports = &spec.nodes[0].ports;
    let said: Vec<String> = ports
        .iter()
        .map(|port| {
            let device = match port.device.as_ref().unwrap() {
                DeviceSelector::Name(name) => name.as_str(),
                other => panic!("{other:?}"),
            };
            let interface = port.interface.as_ref().map_or("-", |name| name.as_str());
            let networks: Vec<&str> = port.networks.iter().map(|name| name.as_str()).collect();
            format!("{device} {interface} {}", networks.join(","))
        })
        .collect();
    assert_eq!(
        said,
        [
            "mlx5_0 ib0 rail0",
            "mlx5_3 ib1 rail1",
            "mlx5_4 ib2 rail2",
            "mlx5_5 ib3 rail3",
            "mlx5_6 ib4 rail4",
            "mlx5_9 ib5 rail5",
            "mlx5_10 ib6 rail6",
            "mlx5_11 ib7 rail7",
            "mlx5_1 - storage",
        ]
    );
}

#[test]
fn a_row_of_ranges_is_what_its_rows_are() {
    let mut head =
        "version = 1\ncluster.name = \"c\"\n[fabrics.e]\ntransport = \"roce\"\nspeed = \"100G\"\n".to_owned();
    for (number, name) in ["a0", "a1", "b0", "b1"].iter().enumerate() {
        head += &format!("[networks.{name}]\nfabric = \"e\"\nvlan = {}\ncidr = \"10.{number}.0.0/16\"\n", number + 1);
    }
    head += "[[nodes]]\nhosts = \"n[1-9]\"\n";
    let row = |n: &str| format!("[[nodes.ports]]\ndevice = \"m_{n}\"\nport = 2\nnetwork = [\"a{n}\", \"b{n}\"]\n");
    let read = |rows: &str| spec::load("spec.toml", &(head.clone() + rows)).unwrap().spec;
    assert_eq!(read(&row("[0-1]")), read(&(row("0") + &row("1"))));
}
