//! The umad layer against the real opensm on a simulated fabric.
//!
//! Needs Debian's `ibsim-utils` and `opensm`. Without them the test is left out
//! by name; with SELVEDGE_LAB=1 it fails. It runs its own binary again with the
//! simulator's library preloaded.
#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use selvedge::verbs::mad::{ATTR_NODE_DESCRIPTION, ATTR_NODE_INFO, ATTR_PORT_INFO, ATTR_SM_INFO};
use selvedge::verbs::umad::{Umad, UmadError};

const PRELOAD: &str = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";
const INSIDE: &str = "SELVEDGE_TEST_INSIDE_IBSIM";
const SECOND: Duration = Duration::from_secs(1);
/// Two hosts on one switch, both ends of each cable listed.
const FABRIC: &str = r#"
Switch 8 "S-0002c90000000001"
[1] "H-0002c90000a00000"[1] width=3 speed=7 extspeed=7
[2] "H-0002c90000b00000"[1] width=3 speed=7 extspeed=7

Hca 1 "H-0002c90000a00000"
[1] "S-0002c90000000001"[1] width=3 speed=7 extspeed=7

Hca 1 "H-0002c90000b00000"
[1] "S-0002c90000000001"[2] width=3 speed=7 extspeed=7
"#;

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn in_fabric(program: &str, dir: &Path, host: &str) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(dir)
        .env("IBSIM_SOCKNAME", dir.file_name().unwrap())
        .env("SIM_HOST", host)
        .env("LD_PRELOAD", PRELOAD)
        .env("OSM_TMP_DIR", dir)
        .env("OSM_CACHE_DIR", dir)
        .stdout(Stdio::null());
    command
}

fn main() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let must = std::env::var_os("SELVEDGE_LAB").is_some_and(|value| value == "1");
    let missing = !Path::new(PRELOAD).exists() || !Path::new("/usr/sbin/opensm").exists();
    let trial = Trial::test("opensm_answers_by_lid_and_by_directed_route", || {
        opensm_answers_by_lid_and_by_directed_route();
        Ok(())
    });
    let trial = trial.with_ignored_flag(missing && !must);
    if missing {
        eprintln!("needs opensm and ibsim-utils, which are not here");
    }
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit();
}

fn opensm_answers_by_lid_and_by_directed_route() {
    assert!(Path::new(PRELOAD).exists(), "apt-get install ibsim-utils opensm");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("fabric.net"), FABRIC).unwrap();
    let _ibsim = Killed(
        Command::new("ibsim")
            .args(["-s", "-n", "fabric.net"])
            .current_dir(dir.path())
            .env("IBSIM_SOCKNAME", dir.path().file_name().unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    sleep(Duration::from_millis(300));
    let log = dir.path().join("osm.log");
    let _opensm = Killed(
        in_fabric("opensm", dir.path(), "H-0002c90000a00000")
            .arg("-f")
            .arg(&log)
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let me = std::env::current_exe().unwrap();
    let status = in_fabric(me.to_str().unwrap(), dir.path(), "H-0002c90000b00000")
        .env(INSIDE, "1")
        .stdout(Stdio::inherit())
        .status()
        .unwrap();
    assert!(status.success(), "{}", std::fs::read_to_string(log).unwrap_or_default());
}

/// Runs with the simulator preloaded, on the host that runs no manager.
fn inside() {
    let absent = Umad::open(&"mlx5_9".parse().unwrap(), 1);
    assert!(matches!(absent, Err(UmadError::NoDevice { .. })), "{absent:?}");
    let mut umad = Umad::open(&"ibsim0".parse().unwrap(), 1).unwrap();

    let deadline = Instant::now() + Duration::from_secs(20);
    let (lid, sm_lid) = loop {
        // PortInfo: LID at byte 16, the master's LID at 18, the port's state in the low half of byte 32.
        let port = umad.get_directed(&[], ATTR_PORT_INFO, 1, SECOND).unwrap();
        let word = |at: usize| u16::from_be_bytes([port.data()[at], port.data()[at + 1]]);
        if port.data()[32] & 0xf == 4 {
            break (word(16), word(18));
        }
        assert!(Instant::now() < deadline, "opensm did not bring the port up");
        sleep(Duration::from_millis(100));
    };
    assert!(lid != 0 && sm_lid != 0 && lid != sm_lid, "{lid} {sm_lid}");

    // SMInfo: GUID at 0, priority and state in byte 20; state 3 is master.
    let master = umad.get(sm_lid, ATTR_SM_INFO, 0, SECOND).unwrap();
    assert_eq!(master.data()[20] & 0xf, 3, "{:02x?}", master.data());
    let same = umad.get_directed(&[1, 1], ATTR_SM_INFO, 0, SECOND).unwrap();
    assert_eq!(same.data()[..8], master.data()[..8]);

    let switch = umad.get_directed(&[1], ATTR_NODE_INFO, 0, SECOND).unwrap();
    assert_eq!(switch.data()[2], 2, "the first hop is a switch");
    assert!(umad.get_directed(&[1, 2], ATTR_NODE_DESCRIPTION, 0, SECOND).is_ok());

    let none_here = umad.get(lid, ATTR_SM_INFO, 0, SECOND);
    println!("where no manager runs: {}", none_here.unwrap_err());
    let started = Instant::now();
    let nobody = umad.get(0x0bad, ATTR_SM_INFO, 0, Duration::from_millis(300)).unwrap_err();
    println!("where nobody is: {nobody}");
    assert!(nobody.is_timeout(), "{nobody}");
    assert!(started.elapsed() < SECOND);
    // The path after a timeout still works: a late answer isn't taken for this one.
    assert!(umad.get(sm_lid, ATTR_SM_INFO, 0, SECOND).is_ok());
}
