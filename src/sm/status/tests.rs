use super::*;
use crate::sm::election::Priority;
use crate::sm::mad::SmState;
use crate::sm::report::StatusReport;
use crate::sm::seen::{CutShort, ExpectedManager};
use crate::sm::simulated::Fabric;
use crate::sm::verdict::{Problem, judge};

fn patience() -> Patience {
    Patience { between: Duration::ZERO, ..Patience::default() }
}

/// Two leaves and two spines with parallel cables, `hosts` hosts on each leaf.
/// node01 asks; node01 and node02 are the managers of the spec.
fn fat_tree(hosts: u8) -> Fabric {
    let mut fabric = Fabric::default();
    let first = fabric.ca("node01 mlx5_0", 1);
    let leaves = [fabric.switch("leaf1", hosts + 4), fabric.switch("leaf2", hosts + 4)];
    let spines = [fabric.switch("spine1", 4), fabric.switch("spine2", 4)];
    for (l, leaf) in leaves.into_iter().enumerate() {
        for n in 1..=hosts {
            let number = l * usize::from(hosts) + usize::from(n);
            let host = if number == 1 { first } else { fabric.ca(&format!("node{number:02} mlx5_0"), 1) };
            fabric.link((host, 1), (leaf, n));
        }
        for (s, spine) in spines.into_iter().enumerate() {
            for cable in 0..2_u8 {
                let (s, l) = (u8::try_from(s).unwrap(), u8::try_from(l).unwrap());
                fabric.link((leaf, hosts + 1 + 2 * s + cable), (spine, 1 + 2 * l + cable));
            }
        }
    }
    fabric.manage(first, 1, SmState::Master, 14);
    fabric.manage(5, 1, SmState::Standby, 13);
    fabric.master_sm_lid = Fabric::lid(first, 1);
    fabric
}

fn expected() -> Expected {
    let manager = |host: &str, place| ExpectedManager {
        host: host.parse().unwrap(),
        guid: None,
        priority: Priority::of_place(place).unwrap(),
    };
    Expected { fabric: "compute".parse().unwrap(), managers: vec![manager("node01", 0), manager("node02", 1)] }
}

fn problems(fabric: &mut Fabric) -> Vec<Problem> {
    let seen = ask(fabric, &expected(), &patience()).unwrap();
    judge(&seen, &expected()).into_iter().map(|f| f.problem).collect()
}

#[test]
fn a_healthy_fabric_is_seen_whole_and_each_port_once() {
    let mut fabric = fat_tree(4);
    let seen = ask(&mut fabric, &expected(), &patience()).unwrap();
    assert_eq!((seen.coverage.switches, seen.ports.len()), (4, 12));
    assert!(seen.coverage.is_complete());
    assert_eq!(seen.coverage.questions, fabric.questions);
    let standby = seen.port_of(&expected().managers[1]).unwrap();
    let reading = standby.reading().unwrap();
    assert_eq!((reading.state, reading.act_count, reading.moved_by), (SmState::Standby, 2, Some(1)));
    assert_eq!(judge(&seen, &expected()), []);
}

#[test]
fn the_questions_are_linear_in_the_ports() {
    let count = |hosts| {
        let mut fabric = fat_tree(hosts);
        ask(&mut fabric, &expected(), &patience()).unwrap();
        fabric.questions
    };
    // Of each further host: its switch port's PortInfo, and three of its own.
    assert_eq!(count(60) - count(30), 2 * 30 * 4);
}

#[test]
fn lost_packets_are_asked_for_again() {
    let mut fabric = fat_tree(8);
    fabric.loses_every = Some(7);
    assert_eq!(problems(&mut fabric), []);
}

#[test]
fn dead_managers_and_dead_hosts_are_told_apart() {
    let mut fabric = fat_tree(2);
    fabric.kill(0, 1);
    assert_eq!(problems(&mut fabric), [Problem::NoMaster, Problem::ManagerMissing]);

    let mut fabric = fat_tree(2);
    fabric.kill(5, 1);
    let guid = fabric.guid(5, 1);
    fabric.deaf.insert(guid);
    assert_eq!(problems(&mut fabric), [Problem::ManagerSilent]);

    let mut fabric = fat_tree(2);
    fabric.unlink((5, 1));
    assert_eq!(problems(&mut fabric), [Problem::PortMissing]);

    let mut fabric = fat_tree(2);
    fabric.dead.insert(5);
    assert_eq!(problems(&mut fabric), [Problem::WalkIncomplete]);

    let mut fabric = fat_tree(2);
    fabric.unlink((0, 1));
    assert_eq!(problems(&mut fabric), [Problem::LocalPortDown]);
}

#[test]
fn a_manager_inside_a_switch_is_found() {
    let mut fabric = fat_tree(2);
    fabric.manage(3, 0, SmState::Master, 15);
    let seen = ask(&mut fabric, &expected(), &patience()).unwrap();
    let findings = judge(&seen, &expected());
    assert_eq!(findings[0].problem, Problem::TwoMasters);
    assert!(findings[0].next.contains("spine1"), "{}", findings[0].next);
}

#[test]
fn a_walk_ends_at_its_bounds_with_what_it_has() {
    let mut fabric = fat_tree(8);
    let seen = ask(&mut fabric, &expected(), &Patience { walk: Duration::ZERO, ..patience() }).unwrap();
    assert_eq!((seen.ports.len(), seen.coverage.cut_short), (1, Some(CutShort::Deadline)));
    let seen = ask(&mut fabric, &expected(), &Patience { most_ports: 5, ..patience() }).unwrap();
    assert_eq!((seen.ports.len(), seen.coverage.cut_short), (5, Some(CutShort::TooManyPorts)));
}

#[test]
fn the_report_reads_as_a_table_with_findings() {
    let mut fabric = fat_tree(2);
    fabric.kill(5, 1);
    let seen = ask(&mut fabric, &expected(), &patience()).unwrap();
    let report = StatusReport::new(&seen, &expected(), &judge(&seen, &expected()));
    assert_eq!(report.exit_code(), 2);
    assert_eq!(
        report.to_text(),
        "\
fabric compute, asked from node01 mlx5_0 (0x0000000000000101, LID 2, link active)

MANAGER  ROLE     PORT GUID           LID  PRIORITY  STATE        ACTIVITY
node01   primary  0x0000000000000101  2    14        master       2 (+1)
node02   standby  0x0000000000000601  22   -         not running  -
ACTIVITY: management packets that it sent (+ those while it was looked at)

warn [manager-missing]: no subnet manager runs on the standby, node02 mlx5_0 (0x0000000000000601, LID 22)
  next: on node02: `systemctl start selvedge-opensm-compute.service`, then `journalctl -u selvedge-opensm-compute.service`

managed: 4 switches and 4 host ports looked at, all of it, with 49 questions
"
    );
}

#[test]
fn the_exit_code_follows_the_verdict() {
    let code = |fabric: &mut Fabric| {
        let seen = ask(fabric, &expected(), &patience()).unwrap();
        let report = StatusReport::new(&seen, &expected(), &judge(&seen, &expected()));
        let json = serde_json::to_value(&report).unwrap();
        (report.exit_code(), json["verdict"].as_str().unwrap().to_owned())
    };
    let mut fabric = fat_tree(2);
    assert_eq!(code(&mut fabric), (0, "managed".to_owned()));
    fabric.kill(0, 1);
    fabric.manage(6, 1, SmState::Master, 15);
    assert_eq!(code(&mut fabric), (3, "foreign-master".to_owned()));
    fabric.kill(6, 1);
    fabric.manage(0, 1, SmState::Master, 14);
    fabric.manage(5, 1, SmState::Master, 13);
    assert_eq!(code(&mut fabric), (3, "two-masters".to_owned()));
    fabric.kill(0, 1);
    fabric.kill(5, 1);
    assert_eq!(code(&mut fabric), (3, "no-master".to_owned()));
    fabric.unlink((0, 1));
    assert_eq!(code(&mut fabric), (3, "unreachable".to_owned()));
}
