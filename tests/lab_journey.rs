//! The main job on two nodes of the lab, from an unconfigured host to a verified
//! network and back, with iproute2, sysfs, systemd and infiniband-diags as judges.
//!
//! `SELVEDGE_LAB=1 cargo test --test lab_journey`. Each trial is one claim and
//! says itself from which state it starts; what it changes by hand it repairs.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail by panicking")]

#[path = "lab_journey/drifted.rs"]
mod drifted;
#[path = "lab_journey/enhanced.rs"]
mod enhanced;
#[path = "lab_journey/found.rs"]
mod found;
mod lab_support;
#[path = "lab_journey/limits.rs"]
mod limits;
#[path = "lab_journey/parted.rs"]
mod parted;
#[path = "lab_journey/reached.rs"]
mod reached;
#[path = "lab_journey/removed.rs"]
mod removed;
#[path = "lab_journey/there.rs"]
mod there;

use std::process::ExitCode;
use std::sync::Mutex;

use lab_support::{Output, here, ok, selvedge, trial, until};
use serde_json::Value;

const NODES: [&str; 2] = ["node01", "node02"];
const UNIT: &str = "selvedge-opensm-compute.service";

type Claim = (&'static str, fn());

fn main() -> ExitCode {
    // A claim that fails leaves the nodes as it had them: the next one starts anew.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        stage(Stage::Anything);
        told(panic);
    }));
    let claims = [
        there::CLAIMS,
        drifted::CLAIMS,
        reached::CLAIMS,
        found::CLAIMS,
        removed::CLAIMS,
        limits::CLAIMS,
        there::REBOOTS,
        enhanced::CLAIMS,
        parted::CLAIMS,
    ];
    lab_support::run(claims.concat().into_iter().map(|(name, test)| trial(name, test)).collect())
}

/// What the nodes are now.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Anything,
    Unconfigured,
    Applied,
    Parted,
}

static STAGE: Mutex<Stage> = Mutex::new(Stage::Anything);

fn stage(now: Stage) -> Stage {
    std::mem::replace(&mut STAGE.lock().unwrap(), now)
}

/// Both nodes as after their first boot.
fn unconfigured() {
    if stage(Stage::Anything) != Stage::Unconfigured {
        lab_support::up(&NODES);
        lab_support::fresh(&NODES);
    }
    stage(Stage::Unconfigured);
}

/// Both nodes as examples/lab.toml has them.
fn applied() {
    // For who writes these tests: the nodes are as an earlier run left them.
    let left = std::env::var_os("SELVEDGE_LAB_APPLIED").is_some();
    if *STAGE.lock().unwrap() != Stage::Applied && !left {
        unconfigured();
        stage(Stage::Anything);
        apply_both(&lab_spec());
    }
    stage(Stage::Applied);
}

/// Both side by side, as a rollout does.
fn apply_both(spec: &str) {
    std::thread::scope(|threads| {
        for node in NODES {
            threads.spawn(|| on("apply", spec, node).exits(0));
        }
    });
}

fn lab_spec() -> String {
    here("examples/lab.toml")
}

/// plan, apply or drift of a node.
#[track_caller]
fn on(command: &str, spec: &str, node: &str) -> Output {
    selvedge(&[command, spec, "--node", node])
}

#[track_caller]
fn in_sync(spec: &str, node: &str) {
    on("drift", spec, node).exits(0).says(&format!("{node}: in sync, nothing differs"));
}

/// The objects of a report's changes, each in a few words, sorted.
fn objects(report: &Value) -> Vec<String> {
    let changes = report["changes"].as_array().unwrap();
    let words = |object: &Value| {
        let mut words = vec![object["kind"].as_str().unwrap().to_owned()];
        let keys = ["path", "system", "name", "guid", "link", "address"];
        words.extend(keys.iter().filter_map(|key| object[key].as_str()).map(str::to_owned));
        words.join(" ")
    };
    let mut objects: Vec<String> = changes.iter().map(|change| words(&change["object"])).collect();
    objects.sort();
    objects
}

/// Panics unless ib0 of a node is as the lab's spec says, by the kernel's and iproute2's word.
#[track_caller]
fn ib0_is(node: &str, mode: &str, mtu: u64) {
    let said = ok(node, "cat /sys/class/net/ib0/mode; ip -d -j link show ib0; ip -j -4 addr show ib0");
    let lines: Vec<&str> = said.lines().collect();
    let [sysfs_mode, link, addresses] = lines[..] else { panic!("{said}") };
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap()[0].clone();
    let (link, addresses) = (json(link), json(addresses)["addr_info"].clone());
    assert_eq!(sysfs_mode, mode);
    assert_eq!(link["mtu"].as_u64(), Some(mtu), "{link}");
    assert_eq!(link["linkinfo"]["info_kind"], "ipoib", "{link}");
    assert_eq!(link["linkinfo"]["info_data"]["mode"], mode, "{link}");
    assert!(link["flags"].as_array().unwrap().contains(&Value::from("UP")), "{link}");
    let number = node.trim_start_matches("node").parse::<u8>().unwrap();
    let is_ours = |address: &&Value| address["local"] == format!("10.0.0.{number}") && address["prefixlen"] == 16;
    assert!(addresses.as_array().unwrap().iter().any(|address| is_ours(&address)), "{addresses}");
}

/// The fabric settles by itself, at the pace of an emulation.
fn until_active(node: &str) {
    until(&format!("port of {node} active"), 60, || {
        ok(node, "cat /sys/class/infiniband/mlx5_0/ports/1/state") == "4: ACTIVE"
    });
}

/// Holds a text against its golden file; `SELVEDGE_BLESS=1` writes it anew.
#[track_caller]
fn golden(name: &str, text: &str) {
    let path = here(&format!("tests/lab/golden/{name}.txt"));
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(wanted == text, "{path} is now\n{text}\nand was\n{wanted}");
}
