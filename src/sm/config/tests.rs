use super::*;
use crate::rdma::PKey;

fn intent() -> ManagerIntent {
    ManagerIntent {
        fabric: "compute".parse().unwrap(),
        guid: Guid(0x0002_c900_00a0_0001),
        priority: Priority::PRIMARY,
        mtu: FabricMtu::B4096,
        partitions: Vec::new(),
        timing: FailoverTiming::default(),
    }
}

#[test]
fn the_configuration_reads_as_it_should() {
    let files = files(&intent(), "/usr/sbin/opensm").unwrap();
    let config = &files[1];
    assert_eq!(config.path.as_str(), "/etc/selvedge/opensm/compute.conf");
    assert_eq!(
        config.content,
        "\
# Written by selvedge for the fabric compute. Change the spec, not this file.
# Whatever is not here is opensm's own default.

# The port that this manager binds to: never a guess.
guid 0x0002c90000a00001

# The highest one answering is master; no two are equal.
sm_priority 14

# A standby takes over 4.0 to 5.0 s after the master dies.
sminfo_polling_timeout 1000

polling_retry_number 3

partition_config_file /etc/selvedge/opensm/compute.partitions.conf

# To the journal, line by line.
log_file stdout

force_log_flush TRUE

log_max_size 0

# systemd keeps the process, and knows when it ends.
daemon FALSE
"
    );
}

#[test]
fn the_partitions_carry_the_fabric_mtu() {
    let content = |mtu| files(&ManagerIntent { mtu, ..intent() }, "/usr/sbin/opensm").unwrap()[0].content.clone();
    assert!(content(FabricMtu::B4096).ends_with("\nDefault=0x7fff,ipoib,mtu=5 : ALL=full, SELF=full;\n"));
    assert!(content(FabricMtu::B2048).ends_with("\nDefault=0x7fff,ipoib,mtu=4 : ALL=full, SELF=full;\n"));
    assert!(content(FabricMtu::B2048).contains("IPoIB datagrams of 2044."));
}

/// opensm takes the last word on a port, so the ports that are named come after all others.
#[test]
fn members_by_name_come_after_all_others() {
    let partitions = vec![
        PartitionRole {
            name: "jobs".parse().unwrap(),
            pkey: PKey::new(0x8001).unwrap(),
            rest: Some(Membership::Full),
            ports: Vec::new(),
        },
        PartitionRole {
            name: "storage".parse().unwrap(),
            pkey: PKey::new(2).unwrap(),
            rest: Some(Membership::Limited),
            ports: vec![(Guid(0x0002_c900_00a0_0001), Membership::Full), (Guid(3), Membership::Full)],
        },
    ];
    let content = files(&ManagerIntent { partitions, ..intent() }, "/usr/sbin/opensm").unwrap()[0].content.clone();
    let lines: Vec<&str> = content.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert_eq!(
        lines,
        [
            "Default=0x7fff,ipoib,mtu=5 : ALL=full, SELF=full;",
            "jobs=0x0001,ipoib,mtu=5 : ALL=full;",
            "storage=0x0002,ipoib,mtu=5 : ALL=limited;",
            "storage=0x0002 : 0x0002c90000a00001=full;",
            "storage=0x0002 : 0x0000000000000003=full;",
        ]
    );
}

#[test]
fn the_unit_names_its_files_its_port_and_its_rivals() {
    let files = files(&intent(), "/usr/sbin/opensm").unwrap();
    let unit = &files[2];
    assert_eq!(unit.path.as_str(), "/etc/systemd/system/selvedge-opensm-compute.service");
    for line in [
        "ExecStart=/usr/sbin/opensm -F /etc/selvedge/opensm/compute.conf -P /etc/selvedge/opensm/compute.partitions.conf",
        "Conflicts=opensm.service opensm@0x0002c90000a00001.service opensmd.service",
        "Restart=always",
        "StartLimitIntervalSec=0",
        "LimitMEMLOCK=infinity",
        "WantedBy=multi-user.target",
    ] {
        assert!(unit.content.lines().any(|l| l == line), "{line}");
    }
    let directives = unit.content.lines().filter(|l| !l.starts_with('#'));
    assert!(directives.into_iter().all(|l| !l.contains("network-online")));
}

#[test]
fn what_has_no_port_or_no_program_is_refused() {
    let no_guid = ManagerIntent { guid: Guid(0), ..intent() };
    assert!(matches!(files(&no_guid, "/usr/sbin/opensm"), Err(ConfigError::NoGuid(_))));
    for program in ["opensm", "", "/", "/usr/sbin/opensm -R file", "/a\nExecStop=/b", "/a%n", "/a$b"] {
        assert!(matches!(files(&intent(), program), Err(ConfigError::Program(_))), "{program:?}");
    }
    let timing = FailoverTiming { polling_timeout_ms: 5, polling_retries: 3 };
    assert!(matches!(document(&ManagerIntent { timing, ..intent() }), Err(ConfigError::Timing { .. })));
}

#[test]
fn a_changed_file_restarts_the_unit_that_reads_it() {
    use crate::state::{ConfigSystem, opensm_unit};
    let files = files(&intent(), "/usr/sbin/opensm").unwrap();
    let unit = opensm_unit("compute").unwrap();
    assert_eq!(files[2].path.as_str(), format!("/etc/systemd/system/{unit}"));
    for file in &files[..2] {
        assert_eq!(ConfigSystem::reading(&file.path), Some(ConfigSystem::Unit(unit.clone())), "{}", file.path);
    }
}
