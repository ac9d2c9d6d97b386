use super::*;
use crate::rdma::Guid;
use crate::sm::election::Priority;
use crate::sm::mad::{NodeDescription, NodeType};
use crate::sm::seen::{LocalPort, Reading};

fn describe(text: &str) -> NodeDescription {
    let mut block = [0; 64];
    block[..text.len()].copy_from_slice(text.as_bytes());
    NodeDescription::decode(&block)
}

fn expected() -> Expected {
    let manager = |host: &str, guid, place| ExpectedManager {
        host: host.parse().unwrap(),
        guid,
        priority: Priority::of_place(place).unwrap(),
    };
    Expected {
        fabric: "compute".parse().unwrap(),
        managers: vec![manager("node01", Some(Guid(0x101)), 0), manager("node02.cluster", None, 1)],
    }
}

fn runs(state: SmState, priority: u8) -> Says {
    Says::Manager(Reading { state, priority: Priority::new(priority).unwrap(), act_count: 7, moved_by: Some(1) })
}

fn port(n: u8, says: Says) -> SeenPort {
    SeenPort {
        guid: Guid(0x100 + u64::from(n)),
        node_type: NodeType::Ca,
        description: describe(&format!("node0{n} mlx5_0")),
        lid: n.into(),
        master_sm_lid: 1,
        path: vec![1, n],
        says,
    }
}

fn seen(says: [Says; 4]) -> Seen {
    let ports = says.into_iter().zip(1..).map(|(says, n)| port(n, says)).collect();
    let local = LocalPort {
        guid: Guid(0x104),
        description: describe("node04 mlx5_0"),
        lid: 4,
        master_sm_lid: 1,
        state: PortState::Active,
        physical_state: PhysicalState::LinkUp,
    };
    Seen { local, ports, coverage: Coverage::default() }
}

const NONE: Says = Says::Nothing;
const MASTER: SmState = SmState::Master;
const STANDBY: SmState = SmState::Standby;

fn problems(seen: &Seen) -> Vec<(Severity, Problem, String)> {
    let findings = judge(seen, &expected());
    assert!(findings.iter().all(|f| !f.message.is_empty() && !f.next.is_empty()));
    findings.into_iter().map(|f| (f.severity, f.problem, f.object)).collect()
}

fn warning(problem: Problem, object: &str) -> (Severity, Problem, String) {
    (Severity::Warning, problem, object.to_owned())
}

fn bad(problem: Problem, object: &str) -> (Severity, Problem, String) {
    (Severity::Bad, problem, object.to_owned())
}

#[test]
fn a_fabric_as_the_spec_says_has_no_findings() {
    assert_eq!(problems(&seen([runs(MASTER, 14), runs(STANDBY, 13), NONE, NONE])), []);
}

#[test]
fn each_state_of_the_two_managers_has_its_finding() {
    let table = [
        (
            [NONE, NONE],
            vec![
                bad(Problem::NoMaster, "fabric compute"),
                warning(Problem::ManagerMissing, "node01"),
                warning(Problem::ManagerMissing, "node02.cluster"),
            ],
        ),
        (
            [Says::Silence, runs(STANDBY, 13)],
            vec![bad(Problem::NoMaster, "fabric compute"), warning(Problem::ManagerSilent, "node01")],
        ),
        ([runs(MASTER, 14), runs(MASTER, 13)], vec![bad(Problem::TwoMasters, "fabric compute")]),
        ([runs(MASTER, 14), NONE], vec![warning(Problem::ManagerMissing, "node02.cluster")]),
        ([runs(MASTER, 14), runs(SmState::Discovering, 13)], vec![warning(Problem::NotStandby, "node02.cluster")]),
        ([runs(MASTER, 14), runs(SmState::NotActive, 13)], vec![warning(Problem::NotStandby, "node02.cluster")]),
        ([runs(MASTER, 14), runs(STANDBY, 3)], vec![warning(Problem::WrongPriority, "node02.cluster")]),
        (
            [runs(STANDBY, 0), runs(MASTER, 13)],
            vec![
                bad(Problem::PrimaryNotMaster, "node01"),
                warning(Problem::WrongPriority, "node01"),
                warning(Problem::StaleMasterLid, "node02 mlx5_0 (0x0000000000000102, LID 2)"),
            ],
        ),
        (
            [runs(SmState::NotActive, 14), runs(MASTER, 13)],
            vec![
                bad(Problem::PrimaryNotMaster, "node01"),
                warning(Problem::StaleMasterLid, "node02 mlx5_0 (0x0000000000000102, LID 2)"),
            ],
        ),
        (
            [runs(STANDBY, 14), runs(MASTER, 13)],
            vec![
                warning(Problem::PrimaryNotMaster, "node01"),
                warning(Problem::StaleMasterLid, "node02 mlx5_0 (0x0000000000000102, LID 2)"),
            ],
        ),
    ];
    for ([one, two], wanted) in table {
        assert_eq!(problems(&seen([one, two, NONE, NONE])), wanted, "{one:?} {two:?}");
    }
}

#[test]
fn a_manager_outside_the_spec_is_named() {
    let object = "node03 mlx5_0 (0x0000000000000103, LID 3)";
    let standby = seen([runs(MASTER, 14), runs(STANDBY, 13), runs(STANDBY, 2), NONE]);
    assert_eq!(problems(&standby), [warning(Problem::UnknownManager, object)]);
    let second = seen([runs(MASTER, 14), runs(STANDBY, 13), runs(MASTER, 2), NONE]);
    assert_eq!(
        problems(&second),
        [bad(Problem::TwoMasters, "fabric compute"), warning(Problem::UnknownManager, object)]
    );
    assert!(judge(&second, &expected())[0].next.contains("node03"));
}

#[test]
fn a_master_outside_the_spec_is_bad_and_the_next_step_is_there() {
    let judged = |priority| {
        let mut fabric = seen([runs(STANDBY, 14), runs(STANDBY, 13), runs(MASTER, priority), NONE]);
        fabric.ports.iter_mut().for_each(|port| port.master_sm_lid = 3);
        let findings = judge(&fabric, &expected());
        assert_eq!((findings[0].severity, findings[0].problem), (Severity::Bad, Problem::ForeignMaster));
        findings
    };
    let above = judged(15);
    assert_eq!(above.len(), 1, "{above:?}");
    let next = &above[0].next;
    assert!(next.starts_with("the primary node01 with priority 14 never takes over from 15: stop"), "{next}");
    assert!(next.contains("on node03 mlx5_0") && next.contains("or add its host"), "{next}");
    assert!(judged(14)[0].next.contains("the same priority, and the lower GUID wins"));
    assert!(judged(14)[1].next.starts_with("stop what the spec does not name: node03"));
    assert!(judged(2)[0].next.starts_with("stop the subnet manager on node03"));
    // A spec without managers leaves them to others.
    let others = Expected { managers: vec![], ..expected() };
    let alone = judge(&seen([runs(MASTER, 15), NONE, NONE, NONE]), &others);
    assert_eq!(
        alone.iter().map(|f| (f.severity, f.problem)).collect::<Vec<_>>(),
        [(Severity::Warning, Problem::UnknownManager)]
    );
}

#[test]
fn equal_priorities_are_one_finding_for_each_group() {
    let all = seen([runs(MASTER, 14), runs(STANDBY, 14), runs(STANDBY, 14), NONE]);
    let equal: Vec<_> = problems(&all).into_iter().filter(|(_, p, _)| *p == Problem::EqualPriorities).collect();
    assert_eq!(equal, [warning(Problem::EqualPriorities, "node01 mlx5_0 (0x0000000000000101, LID 1)")]);
}

#[test]
fn what_was_not_looked_at_is_not_called_absent() {
    let mut half = seen([runs(MASTER, 14), NONE, NONE, NONE]);
    half.ports.remove(1);
    assert_eq!(problems(&half), [warning(Problem::PortMissing, "node02.cluster")]);
    half.coverage.cut_short = Some(CutShort::Deadline);
    assert_eq!(problems(&half), [warning(Problem::WalkIncomplete, "fabric compute")]);
    half.coverage = Coverage { silent: vec!["0,1,9".into()], ..Coverage::default() };
    assert_eq!(problems(&half), [warning(Problem::WalkIncomplete, "fabric compute")]);
}

#[test]
fn a_port_without_a_link_can_say_nothing_of_the_fabric() {
    let mut alone = seen([NONE, NONE, NONE, NONE]);
    alone.local.state = PortState::Down;
    alone.local.physical_state = PhysicalState::Polling;
    assert_eq!(problems(&alone), [bad(Problem::LocalPortDown, "0x0000000000000104")]);
}

#[test]
fn ports_that_were_told_of_another_master_are_counted() {
    let mut moved = seen([runs(MASTER, 14), runs(STANDBY, 13), NONE, NONE]);
    moved.ports[2].master_sm_lid = 2;
    let findings = judge(&moved, &expected());
    assert_eq!(findings.len(), 1);
    assert_eq!(
        findings[0].message,
        "1 of 4 ports were told of another master than node01 mlx5_0 (0x0000000000000101, LID 1), \
         for one node03 mlx5_0 (0x0000000000000103, LID 3): LID 2"
    );
}
