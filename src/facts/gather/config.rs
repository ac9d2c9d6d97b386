//! Which system keeps the network configuration, and which programs are at hand.

use super::tree::Tree;
use crate::facts::{ConfigEvidence, Programs};
use crate::state::FilePath;

/// Where programs are looked for: never the caller's PATH, since what is found ends up in unit files.
const PROGRAM_FOLDERS: [&str; 6] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

/// Where netplan reads its files, in the order that netplan(5) gives.
const NETPLAN_FOLDERS: [&str; 3] = ["/etc/netplan", "/run/netplan", "/usr/lib/netplan"];

/// Where a unit is enabled: by the administrator, and by netplan until the next boot.
const UNIT_FOLDERS: [&str; 2] = ["/etc/systemd/system", "/run/systemd/system"];

/// Where a service's processes are: cgroup version 2, and version 1.
const SLICES: [&str; 2] = ["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice"];

/// The evidence in `tree`.
pub(super) fn evidence(tree: &Tree) -> ConfigEvidence {
    let in_use = |unit: &str| runs(tree, unit) || is_enabled(tree, unit);
    ConfigEvidence {
        netplan: find(tree, "netplan"),
        netplan_files: NETPLAN_FOLDERS.iter().any(|folder| has_yaml(tree, folder)),
        networkd: in_use("systemd-networkd.service"),
        network_manager: in_use("NetworkManager.service"),
    }
}

/// The programs in `tree`.
pub(super) fn programs(tree: &Tree) -> Programs {
    let this = if tree.is_live() { std::env::current_exe().ok() } else { None };
    let this = this.and_then(|path| path.to_str()?.parse().ok());
    Programs { selvedge: this.or_else(|| find(tree, "selvedge")), ip: find(tree, "ip"), opensm: find(tree, "opensm") }
}

fn find(tree: &Tree, program: &str) -> Option<FilePath> {
    let places = PROGRAM_FOLDERS.iter().map(|folder| format!("{folder}/{program}"));
    places.into_iter().find(|path| tree.is_program(path))?.parse().ok()
}

fn has_yaml(tree: &Tree, folder: &str) -> bool {
    tree.names(folder).iter().any(|name| name.ends_with(".yaml"))
}

fn runs(tree: &Tree, unit: &str) -> bool {
    SLICES.iter().any(|slice| {
        let populated = tree.text(&format!("{slice}/{unit}/cgroup.events"));
        let processes = || tree.word(&format!("{slice}/{unit}/cgroup.procs"));
        populated.is_some_and(|events| events.lines().any(|line| line == "populated 1")) || processes().is_some()
    })
}

fn is_enabled(tree: &Tree, unit: &str) -> bool {
    let masked =
        UNIT_FOLDERS.iter().any(|folder| tree.link_name(&format!("{folder}/{unit}")).as_deref() == Some("null"));
    let wanted_in = |folder: &str| {
        let wants = tree.names(folder).into_iter().filter(|name| name.ends_with(".wants"));
        wants.into_iter().any(|wants| tree.has(&format!("{folder}/{wants}/{unit}")))
    };
    !masked && UNIT_FOLDERS.iter().any(|folder| wanted_in(folder))
}
