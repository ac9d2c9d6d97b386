//! Every example is a valid spec.

use selvedge::spec::{self, FabricMtu, ModeChoice, MtuChoice};

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
