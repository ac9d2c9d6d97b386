//! opensm and systemd as judges of the files.

use std::fs;
use std::process::Command;

use selvedge::render::File;
use selvedge::sm::config::{ManagerIntent, document, files};
use selvedge::sm::election::{FailoverTiming, Priority};
use selvedge::spec::FabricMtu;

use crate::fabric::guid;

/// What node `host` is to run, by its place in the spec.
pub(crate) fn intent(host: u8, place: usize, mtu: FabricMtu) -> ManagerIntent {
    ManagerIntent {
        fabric: "compute".parse().unwrap(),
        guid: guid(host),
        priority: Priority::of_place(place).unwrap(),
        mtu,
        partitions: Vec::new(),
        timing: FailoverTiming::default(),
    }
}

/// The file whose path ends so.
pub(crate) fn content(files: &[File], end: &str) -> String {
    files.iter().find(|f| f.path.as_str().ends_with(end)).unwrap().content.clone()
}

/// Entries that the installed opensm does not read back as they were written,
/// after its own dump of all its options.
fn not_read_back(text: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("opensm.conf"), text).unwrap();
    let output = Command::new("opensm").args(["-F", "opensm.conf", "-c", "dump"]).current_dir(&dir).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let dump = fs::read_to_string(dir.path().join("dump")).unwrap_or_else(|e| panic!("{e}: {said}"));
    let dumped = |key: &str| {
        dump.lines().find_map(|l| l.split_once(' ').filter(|(k, _)| *k == key).map(|(_, v)| v.trim().to_owned()))
    };
    let entries = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut wrong: Vec<String> = entries
        .map(|line| line.split_once(' ').unwrap())
        .filter(|(key, value)| dumped(key).as_deref() != Some(*value))
        .map(|(key, value)| format!("{key} {value}: opensm has {:?}", dumped(key)))
        .collect();
    wrong.extend(said.lines().filter(|l| l.contains("Unrecognized")).map(str::to_owned));
    wrong
}

pub(crate) fn every_rendered_key_and_value_is_opensms_own() {
    for (place, mtu) in [(0, FabricMtu::B2048), (13, FabricMtu::B4096)] {
        let files = files(&intent(1, place, mtu), "/usr/sbin/opensm").unwrap();
        assert_eq!(not_read_back(&content(&files, "/compute.conf")), [""; 0]);
    }
    let slow = FailoverTiming { polling_timeout_ms: 60_000, polling_retries: 10 };
    let intent = ManagerIntent { timing: slow, ..intent(1, 0, FabricMtu::B2048) };
    assert_eq!(not_read_back(&content(&files(&intent, "/usr/sbin/opensm").unwrap(), "/compute.conf")), [""; 0]);
}

pub(crate) fn a_misspelt_key_is_caught() {
    let mut document = document(&intent(1, 0, FabricMtu::B2048)).unwrap();
    document.push("polling_retry_numbr", "3", "").unwrap();
    let text: String = document.entries().map(|(key, value)| format!("{key} {value}\n")).collect();
    let wrong = not_read_back(&text);
    assert!(wrong.iter().all(|w| w.contains("polling_retry_numbr")) && !wrong.is_empty(), "{wrong:?}");
}

pub(crate) fn systemd_takes_the_unit() {
    let files = files(&intent(1, 0, FabricMtu::B2048), "/usr/sbin/opensm").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("selvedge-opensm-compute.service");
    fs::write(&path, content(&files, ".service")).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg("--man=no").arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Other units of the host may have faults of their own.
    let ours: Vec<&str> = said.lines().filter(|l| l.contains("selvedge-opensm")).collect();
    assert_eq!(ours, [""; 0]);
    assert!(output.status.success(), "{said}");
}
