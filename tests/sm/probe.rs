//! `selvedge sm status` as a process of its own: this test's binary, run again
//! on a host of the simulated fabric. The simulator's library works by preload.

use std::process::Output;

use selvedge::name::{HostName, Label};
use selvedge::sm::report::StatusReport;
use selvedge::sm::seen::Expected;
use selvedge::sm::status::Patience;
use selvedge::sm::umad::status;
use selvedge::spec::SubnetManager;

use crate::fabric::{Fabric, guid};

const PROBE: &str = "SELVEDGE_TEST_SM_PROBE";

/// The managers of the tests' spec: node01, and node02 as its standby.
fn expected(by_guid: bool) -> Expected {
    let host = |n: u8| -> HostName { format!("node{n:02}").parse().unwrap() };
    let managers = SubnetManager { primary: host(1), standby: vec![host(2)] };
    let fabric: Label = "compute".parse().unwrap();
    let guid_of = |h: &HostName| (1..=2).find(|n| host(*n) == *h).filter(|_| by_guid).map(guid);
    Expected::of(&fabric, &managers, guid_of).unwrap()
}

/// When this process is the probe: asks, prints and ends.
pub(crate) fn run_if_probe() {
    let Some(how) = std::env::var_os(PROBE) else { return };
    let patience = Patience::default();
    let report = status(&"ibsim0".parse().unwrap(), 1, &expected(how != "by-name"), &patience);
    match report {
        Ok(report) => {
            print(&report, how == "text");
            std::process::exit(report.exit_code().into());
        }
        Err(error) => {
            eprintln!("{error:?}");
            std::process::exit(1);
        }
    }
}

fn print(report: &StatusReport, text: bool) {
    if text {
        print!("{}", report.to_text());
    } else {
        println!("{}", serde_json::to_string(report).unwrap());
    }
}

/// What the probe said.
pub(crate) struct Said {
    pub(crate) exit_code: i32,
    pub(crate) json: serde_json::Value,
}

impl Said {
    /// The problems found, in order.
    pub(crate) fn problems(&self) -> Vec<&str> {
        self.json["findings"].as_array().unwrap().iter().map(|f| f["problem"].as_str().unwrap()).collect()
    }

    /// Role, node, priority, state of each manager.
    pub(crate) fn managers(&self) -> Vec<String> {
        let word = |v: &serde_json::Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        let rows = self.json["managers"].as_array().unwrap().iter();
        rows.map(|m| ["role", "node", "priority", "state"].map(|k| word(&m[k])).join(" ")).collect()
    }
}

fn run(fabric: &Fabric, host: u8, how: &str) -> Output {
    fabric.command(host, std::env::current_exe().unwrap()).env(PROBE, how).output().unwrap()
}

/// Asks from a host.
pub(crate) fn ask(fabric: &Fabric, host: u8) -> Said {
    ask_as(fabric, host, "json")
}

/// Asks from a host, knowing the managers by name alone (`by-name`) or by GUID.
pub(crate) fn ask_as(fabric: &Fabric, host: u8, how: &str) -> Said {
    let output = run(fabric, host, how);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        panic!("{e}: {} {}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    });
    Said { exit_code: output.status.code().unwrap(), json }
}

/// The table for a person.
pub(crate) fn ask_text(fabric: &Fabric, host: u8) -> String {
    String::from_utf8(run(fabric, host, "text").stdout).unwrap()
}
