use super::*;
use crate::sm::election::Priority;
use crate::sm::mad::{NodeDescription, NodeType, PhysicalState, PortState};
use crate::sm::seen::{Coverage, LocalPort, Reading};

fn describe(text: &str) -> NodeDescription {
    let mut block = [0; 64];
    block[..text.len()].copy_from_slice(text.as_bytes());
    NodeDescription::decode(&block)
}

/// A fabric of hosts, each with what its manager says; the first one asks.
fn fabric(hosts: &[(&str, Says)]) -> Seen {
    let port = |(n, (host, says)): (u8, &(&str, Says))| SeenPort {
        guid: Guid(0x100 + u64::from(n)),
        node_type: NodeType::Ca,
        description: describe(&format!("{host} mlx5_0")),
        lid: n.into(),
        master_sm_lid: 1,
        path: vec![1, n],
        says: *says,
    };
    let local = LocalPort {
        guid: Guid(0x101),
        description: describe(&format!("{} mlx5_0", hosts[0].0)),
        lid: 1,
        master_sm_lid: 1,
        state: PortState::Active,
        physical_state: PhysicalState::LinkUp,
    };
    Seen { local, ports: (1..).zip(hosts).map(port).collect(), coverage: Coverage::default() }
}

fn says(state: SmState) -> Says {
    Says::Manager(Reading { state, priority: Priority::new(0).unwrap(), act_count: 7, moved_by: Some(1) })
}

#[test]
fn no_manager_is_started_beside_a_foreign_master() {
    let condition = Condition::NoForeignMaster {
        device: "mlx5_0".parse().unwrap(),
        port: 1,
        managers: vec!["node01".parse().unwrap(), "node02".parse().unwrap()],
        guids: vec![Guid(0x103)],
    };
    let master = says(SmState::Master);
    let may = |hosts: &[(&str, Says)]| judge(&condition, &fabric(hosts));
    assert_eq!(may(&[("node01", Says::Nothing), ("node02", Says::Nothing)]), Ok(()));
    assert_eq!(may(&[("node01", Says::Nothing), ("node02", master)]), Ok(()));
    assert_eq!(may(&[("node01", master), ("node02", Says::Nothing)]), Ok(()));
    // A foreign standby gives way to a master; a foreign master does not.
    assert_eq!(may(&[("node01", Says::Nothing), ("storage9", says(SmState::Standby))]), Ok(()));
    let refused = may(&[("node01", Says::Nothing), ("storage9", master)]).unwrap_err();
    assert!(refused.contains("storage9") && refused.contains("LID 2"), "{refused}");
    assert!(may(&[("node01", master), ("storage9", master)]).is_err());
    // A host of the spec whose node description is the driver's own, known by its GUID.
    assert_eq!(may(&[("node01", Says::Nothing), ("node02", Says::Nothing), ("MT4123", master)]), Ok(()));
}

#[test]
fn no_manager_is_stopped_unless_another_is_healthy() {
    let condition = Condition::AnotherManager { device: "mlx5_0".parse().unwrap(), port: 1 };
    let may = |other: Says| judge(&condition, &fabric(&[("node01", says(SmState::Master)), ("node02", other)]));
    assert_eq!(may(says(SmState::Standby)), Ok(()));
    assert_eq!(may(says(SmState::Master)), Ok(()));
    for other in [Says::Nothing, Says::Silence, says(SmState::NotActive), says(SmState::Discovering)] {
        assert!(may(other).is_err(), "{other:?}");
    }
}
