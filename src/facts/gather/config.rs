//! Which system keeps the network configuration, and which programs are at hand.

use super::tree::Tree;
use crate::facts::{ConfigEvidence, IfcfgEvidence, Programs};
use crate::render::{HEADER, ifcfg, keyfile};
use crate::state::FilePath;

/// Where programs are looked for: never the caller's PATH, since what is found ends up in unit files.
const PROGRAM_FOLDERS: [&str; 6] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

/// Where netplan reads its files, in the order that netplan(5) gives.
const NETPLAN_FOLDERS: [&str; 3] = ["/etc/netplan", "/run/netplan", "/usr/lib/netplan"];

/// Where a unit is enabled: by the administrator, and by netplan until the next boot.
const UNIT_FOLDERS: [&str; 2] = ["/etc/systemd/system", "/run/systemd/system"];

/// Where a service's processes are: cgroup version 2, and version 1.
const SLICES: [&str; 2] = ["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice"];

/// Where NetworkManager has its plugins, each in a folder named by the version.
const PLUGIN_FOLDERS: [&str; 2] = ["/usr/lib64/NetworkManager", "/usr/lib/NetworkManager"];

/// The plugin that reads ifcfg files: up to RHEL 9, and not in Debian.
const IFCFG_PLUGIN: &str = "libnm-settings-plugin-ifcfg-rh.so";

/// Where a service of System V is enabled for the runlevels that have a network.
const RUNLEVELS: [&str; 2] = ["/etc/rc.d/rc3.d", "/etc/rc.d/rc5.d"];

/// The evidence in `tree`.
pub(super) fn evidence(tree: &Tree) -> ConfigEvidence {
    let in_use = |unit: &str| runs(tree, unit) || is_enabled(tree, unit);
    ConfigEvidence {
        netplan: find(tree, "netplan"),
        netplan_files: NETPLAN_FOLDERS.iter().any(|folder| has_yaml(tree, folder)),
        networkd: in_use("systemd-networkd.service"),
        network_manager: in_use("NetworkManager.service"),
        ifcfg: IfcfgEvidence {
            plugin: PLUGIN_FOLDERS.iter().any(|folder| {
                let versions = || tree.names(folder).into_iter();
                versions().any(|version| tree.has(&format!("{folder}/{version}/{IFCFG_PLUGIN}")))
            }),
            initscripts: tree.is_program(&format!("{}ifup-eth", ifcfg::FOLDER)) && starts_network(tree),
            files: has_foreign_ifcfg(tree),
            keyfiles: has_foreign_keyfile(tree),
        },
        wicked: in_use("wicked.service") || in_use("wickedd.service"),
    }
}

/// `S10network`, the order in the number.
fn starts_network(tree: &Tree) -> bool {
    let is_start = |name: &String| {
        let order = name.strip_prefix('S').and_then(|rest| rest.strip_suffix("network"));
        order.is_some_and(|order| !order.is_empty() && order.chars().all(|c| c.is_ascii_digit()))
    };
    RUNLEVELS.iter().any(|folder| tree.names(folder).iter().any(is_start))
}

/// `ifcfg-lo` is everywhere. What an editor or a package left beside a file is none.
fn has_foreign_ifcfg(tree: &Tree) -> bool {
    tree.names(ifcfg::FOLDER).iter().any(|name| {
        let path = format!("{}{name}", ifcfg::FOLDER);
        let link = ifcfg::link_of(&path).filter(|link| *link != "lo");
        let is_left = || ifcfg::IGNORED.iter().any(|end| name.ends_with(end));
        link.is_some() && !is_left() && !tree.text(&path).is_some_and(|text| text.contains(HEADER))
    })
}

fn has_foreign_keyfile(tree: &Tree) -> bool {
    let is_profile = |name: &String| name.ends_with(".nmconnection");
    let names = tree.names(keyfile::FOLDER);
    names.iter().any(|name| is_profile(name) && keyfile::link_of(&format!("{}{name}", keyfile::FOLDER)).is_none())
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
