//! Fabrics with managers: what `status` says, and what `sminfo` says.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use selvedge::sm::config::files;
use selvedge::sm::election::FailoverTiming;
use selvedge::spec::FabricMtu;

use crate::fabric::{Fabric, wait};
use crate::keys::{content, intent};
use crate::probe::{ask, ask_as, ask_text};

/// Starts opensm on a host with what we render for its place in the spec.
pub(crate) fn start(fabric: &mut Fabric, host: u8, place: usize, mtu: FabricMtu) {
    start_with(fabric, host, place, mtu, "");
}

fn start_with(fabric: &mut Fabric, host: u8, place: usize, mtu: FabricMtu, more: &str) {
    let files = files(&intent(host, place, mtu), "/usr/sbin/opensm").unwrap();
    let config = content(&files, "/compute.conf") + more;
    fabric.manage(host, &config, &content(&files, "/compute.partitions.conf"));
}

/// node01 master, node02 standby, node03 looks on.
fn managed() -> Fabric {
    let mut fabric = Fabric::start(3);
    start(&mut fabric, 1, 0, FabricMtu::B2048);
    fabric.wait_for(3, 1, "SMINFO_MASTER");
    start(&mut fabric, 2, 1, FabricMtu::B2048);
    fabric.wait_for(3, 2, "SMINFO_STANDBY");
    wait("node03 to be active", Duration::from_secs(10), || ask(&fabric, 3).json["asked_from"]["state"] == "active");
    fabric
}

pub(crate) fn primary_and_standby_are_seen_as_sminfo_sees_them() {
    let fabric = managed();
    let table = ["primary node01 14 master", "standby node02 13 standby"];
    // From a third host, and from the managers' own, by GUID and by name.
    for (host, how) in [(3, "json"), (3, "by-name"), (1, "json"), (2, "by-name")] {
        let said = ask_as(&fabric, host, how);
        assert_eq!(said.managers(), table, "from node{host:02} {how}");
        assert_eq!((said.exit_code, said.problems().len()), (0, 0), "from node{host:02}: {}", said.json);
        assert_eq!(said.json["looked_at"]["complete"], true);
        assert_eq!((&said.json["looked_at"]["ports"], &said.json["looked_at"]["switches"]), (&4.into(), &1.into()));
        for manager in said.json["managers"].as_array().unwrap() {
            assert!(manager["act_count_moved_by"].as_u64().unwrap() > 0, "{manager}");
        }
    }
    assert_eq!(fabric.sminfo(3, 1), Some((14, "SMINFO_MASTER".to_owned())));
    assert_eq!(fabric.sminfo(3, 2), Some((13, "SMINFO_STANDBY".to_owned())));
    let text = ask_text(&fabric, 3);
    assert!(text.contains("node01   primary  0x0002c90000a10001"), "{text}");
    println!("{text}");
}

pub(crate) fn the_broadcast_group_has_the_mtu_of_the_fabric() {
    for (mtu, code) in [(FabricMtu::B2048, "0x84"), (FabricMtu::B4096, "0x85")] {
        let mut fabric = Fabric::start(2);
        start(&mut fabric, 1, 0, mtu);
        fabric.wait_for(2, 1, "SMINFO_MASTER");
        let line = || {
            let output = fabric.run(2, "saquery", &["-g"]);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let group = text.split("MCMemberRecord").find(|g| g.contains("ff12:401b:ffff::ffff:ffff"))?.to_owned();
            group.lines().find_map(|l| l.trim().strip_prefix("Mtu")).map(|l| l.trim_start_matches('.').to_owned())
        };
        wait("the broadcast group", Duration::from_secs(10), || line().is_some());
        assert_eq!(line().as_deref(), Some(code));
        assert!(!fabric.log(1).contains("PARSE"), "{}", fabric.log(1));
    }
}

/// One manager alone: with two, a sweep now and then waits for ever under ibsim,
/// which drops the answers to opensm's traps.
pub(crate) fn the_log_survives_rotation_signals() {
    let mut fabric = Fabric::start(2);
    start(&mut fabric, 1, 0, FabricMtu::B2048);
    let sweeps = |fabric: &Fabric| fabric.log(1).matches("SUBNET UP").count();
    // Each line at once, though standard output is no terminal.
    wait("the first sweep", Duration::from_secs(10), || sweeps(&fabric) == 1);
    // The distributions' logrotate rules signal every opensm of a host.
    fabric.signal(1, "-USR1");
    // What ExecReload sends: a heavy sweep.
    fabric.signal(1, "-HUP");
    wait("a sweep after the signals", Duration::from_secs(20), || sweeps(&fabric) > 1);
    fabric.wait_for(2, 1, "SMINFO_MASTER");
}

/// The primary's return is not tried here. With ibsim 0.10 and opensm 3.3.23
/// every second return hangs in the handover: the new master waits for a
/// transaction that never ends, and does not sweep. The simulator says that it
/// drops the answer to the trap that a returning manager sends; a kernel would
/// end the transaction by its timeout.
pub(crate) fn a_killed_primary_is_replaced_in_time() {
    let mut fabric = managed();
    let (soonest, latest) = FailoverTiming::default().takeover();
    let killed = Instant::now();
    fabric.kill(1);
    let between = ask(&fabric, 3);
    assert_eq!((between.exit_code, &between.json["verdict"]), (3, &"no-master".into()), "{}", between.json);
    fabric.wait_for(3, 2, "SMINFO_MASTER");
    let took = killed.elapsed();
    println!("takeover after {:.2} s; configured {soonest:?} to {latest:?}", took.as_secs_f64());
    // A poll was under way when the master died; one more second for a busy machine.
    assert!(took + Duration::from_secs(1) >= soonest && took <= latest + Duration::from_secs(1), "{took:?}");
    let mut after = ask(&fabric, 3);
    wait("node03 to be told of the new master", Duration::from_secs(10), || {
        after = ask(&fabric, 3);
        !after.problems().contains(&"stale-master-lid")
    });
    assert_eq!(after.exit_code, 2, "{}", after.json);
    assert!(after.managers().contains(&"standby node02 13 master".to_owned()), "{:?}", after.managers());
    assert_eq!(after.json["findings"][0]["object"], "node01");
}

pub(crate) fn no_master_is_found_by_name() {
    let fabric = Fabric::start(3);
    let said = ask_as(&fabric, 3, "by-name");
    assert_eq!(said.exit_code, 3);
    assert_eq!(said.json["verdict"], "no-master");
    assert_eq!(said.problems(), ["no-master", "manager-missing", "manager-missing"]);
    assert_eq!(said.managers(), ["primary node01 null not running", "standby node02 null not running"]);
    assert!(said.json["findings"][0]["next"].as_str().unwrap().starts_with("on node01: `systemctl start"));
}

pub(crate) fn two_masters_are_found_by_name() {
    let mut fabric = Fabric::start(3);
    start(&mut fabric, 1, 0, FabricMtu::B2048);
    fabric.wait_for(3, 1, "SMINFO_MASTER");
    start_with(&mut fabric, 2, 1, FabricMtu::B2048, "sm_key 0x00000000000005ec\n");
    fabric.wait_for(3, 2, "SMINFO_MASTER");
    let said = ask(&fabric, 3);
    assert_eq!((said.exit_code, &said.json["verdict"]), (3, &"two-masters".into()), "{}", said.json);
    let message = said.json["findings"][0]["message"].as_str().unwrap();
    assert!(message.contains("node01") && message.contains("node02"), "{message}");
    let next = said.json["findings"][0]["next"].as_str().unwrap();
    assert!(next.contains("sm_key"), "{next}");
    assert!(!said.json.to_string().contains("5ec"), "a key in the report");
}

pub(crate) fn a_manager_outside_the_spec_is_found_by_name() {
    let mut fabric = managed();
    start(&mut fabric, 3, 1, FabricMtu::B2048);
    fabric.wait_for(1, 3, "SMINFO_STANDBY");
    let said = ask(&fabric, 1);
    assert_eq!((said.exit_code, &said.json["verdict"]), (2, &"managed".into()), "{}", said.json);
    assert_eq!(said.problems(), ["unknown-manager", "equal-priorities"]);
    assert!(said.json["findings"][0]["message"].as_str().unwrap().contains("node03"));
    assert_eq!(said.managers()[2], "unknown node03 mlx5_0 13 standby");
}

/// Why the unit restarts always, and not on failure alone.
pub(crate) fn a_wrong_guid_ends_opensm_with_status_0() {
    let fabric = Fabric::start(2);
    let files = files(&intent(9, 0, FabricMtu::B2048), "/usr/sbin/opensm").unwrap();
    std::fs::write(fabric.path().join("opensm.conf"), content(&files, "/compute.conf")).unwrap();
    let mut child = fabric
        .command(1, "opensm")
        .args(["-F", "opensm.conf"])
        .env("OSM_TMP_DIR", fabric.path())
        .env("OSM_CACHE_DIR", fabric.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..100 {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return;
        }
        sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("opensm runs on with a GUID that is not there");
}
