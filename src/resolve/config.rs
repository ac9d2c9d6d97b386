//! Which program keeps the network configuration of the host.

use super::fault::ResolveFault;
use crate::facts::{ConfigEvidence, IfcfgEvidence};
use crate::intent::{Origin, Sourced};
use crate::name::IfName;
use crate::render::netplan::{self, Renderer};
use crate::render::networkd;
use crate::spec::ConfigChoice;

/// The programs that files are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeper {
    Netplan(Renderer),
    Networkd,
    NetworkManager,
    Ifcfg(IfcfgReader),
    Wicked,
}

/// The readers of Red Hat's ifcfg files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfcfgReader {
    NetworkManager,
    Initscripts,
}

impl Keeper {
    /// What its users call it.
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Netplan(Renderer::Networkd) => "netplan",
            Self::Netplan(Renderer::NetworkManager) => "netplan with NetworkManager behind it",
            Self::Networkd => "systemd-networkd",
            Self::NetworkManager => "NetworkManager",
            Self::Ifcfg(IfcfgReader::NetworkManager) => "NetworkManager by ifcfg files",
            Self::Ifcfg(IfcfgReader::Initscripts) => "initscripts",
            Self::Wicked => "wicked",
        }
    }

    /// The name of the file that networkd configures the link by, if it is networkd that does.
    pub(super) fn networkd_file_name(self, link: &IfName) -> Option<String> {
        match self {
            Self::Netplan(Renderer::Networkd) => Some(netplan::networkd_file_name(link)),
            Self::Networkd => Some(networkd::file_name(link)),
            Self::Netplan(Renderer::NetworkManager) | Self::NetworkManager | Self::Ifcfg(_) | Self::Wicked => None,
        }
    }
}

/// The keeper that the spec names, or the one at work on the host.
pub(super) fn keeper(choice: &Sourced<ConfigChoice>, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
    let origin = &choice.origin;
    let network_manager = evidence.network_manager.then_some(Keeper::NetworkManager);
    let nothing = || ResolveFault::NoConfigSystem { origin: origin.clone(), seen: seen(evidence) };
    match choice.value {
        ConfigChoice::Netplan => through_netplan(origin, evidence),
        ConfigChoice::Networkd => by_networkd(origin, evidence),
        ConfigChoice::NetworkManager => by_network_manager(origin, evidence),
        ConfigChoice::Ifcfg => by_ifcfg(origin, evidence),
        ConfigChoice::IfcfgSuse => by_wicked(origin, evidence),
        ConfigChoice::Auto if evidence.netplan.is_some() && evidence.netplan_files => through_netplan(origin, evidence),
        ConfigChoice::Auto if evidence.networkd => Ok(Keeper::Networkd),
        ConfigChoice::Auto if evidence.wicked => Ok(Keeper::Wicked),
        // RHEL 8 keeps its links in ifcfg files; RHEL 9 reads them too, and keeps its own in keyfiles.
        ConfigChoice::Auto if evidence.ifcfg.files && !evidence.ifcfg.keyfiles => {
            ifcfg_reader(evidence).map(Keeper::Ifcfg).or(network_manager).ok_or_else(nothing)
        }
        ConfigChoice::Auto => network_manager.or_else(|| ifcfg_reader(evidence).map(Keeper::Ifcfg)).ok_or_else(nothing),
    }
}

/// netplan starts networkd itself for what it renders; with NetworkManager at work alone, that would make two, and
/// NetworkManager is named as the renderer.
fn through_netplan(origin: &Origin, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
    if evidence.netplan.is_none() {
        let way = "install the package netplan.io, or name another `config` in [[nodes]]";
        return Err(ResolveFault::NotHere { origin: origin.clone(), system: "netplan", seen: seen(evidence), way });
    }
    let alone = evidence.network_manager && !evidence.networkd;
    Ok(Keeper::Netplan(if alone { Renderer::NetworkManager } else { Renderer::Networkd }))
}

fn by_networkd(origin: &Origin, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
    if evidence.networkd {
        return Ok(Keeper::Networkd);
    }
    let way = "`systemctl enable --now systemd-networkd`, after a look at who keeps the other links";
    Err(ResolveFault::NotHere { origin: origin.clone(), system: "systemd-networkd", seen: seen(evidence), way })
}

fn by_network_manager(origin: &Origin, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
    if evidence.network_manager {
        return Ok(Keeper::NetworkManager);
    }
    let way = "`systemctl enable --now NetworkManager`, after a look at who keeps the other links";
    Err(ResolveFault::NotHere { origin: origin.clone(), system: "NetworkManager", seen: seen(evidence), way })
}

/// Where both are at work, NetworkManager has the files and `ifup` asks it.
fn ifcfg_reader(evidence: &ConfigEvidence) -> Option<IfcfgReader> {
    if evidence.network_manager && evidence.ifcfg.plugin {
        return Some(IfcfgReader::NetworkManager);
    }
    evidence.ifcfg.initscripts.then_some(IfcfgReader::Initscripts)
}

fn by_ifcfg(origin: &Origin, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
    ifcfg_reader(evidence).map(Keeper::Ifcfg).ok_or_else(|| {
        let way = if evidence.network_manager {
            "set `config = \"networkmanager\"`: this NetworkManager has no plugin for ifcfg files (RHEL 10, and all but Red Hat's)"
        } else {
            "`systemctl enable --now NetworkManager`, or the package network-scripts and `systemctl enable network`"
        };
        ResolveFault::NotHere { origin: origin.clone(), system: "a reader of ifcfg files", seen: seen(evidence), way }
    })
}

fn by_wicked(origin: &Origin, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
    if evidence.wicked {
        return Ok(Keeper::Wicked);
    }
    let way =
        "`systemctl enable wicked`, after a look at who keeps the other links; SLES 16 has NetworkManager instead";
    Err(ResolveFault::NotHere { origin: origin.clone(), system: "wicked", seen: seen(evidence), way })
}

fn seen(evidence: &ConfigEvidence) -> String {
    let ConfigEvidence { netplan, netplan_files, networkd, network_manager, ifcfg, wicked } = evidence;
    let IfcfgEvidence { plugin, initscripts, files: _, keyfiles: _ } = ifcfg;
    let program = match netplan {
        Some(path) => format!("netplan is {path}"),
        None => "netplan is not installed".to_owned(),
    };
    let files = if *netplan_files { "it has files" } else { "it has no files" };
    let unit = |name: &str, is: bool| {
        format!("{name} {}", if is { "is running or enabled" } else { "is neither running nor enabled" })
    };
    let mut seen = vec![
        format!("{program}, {files}"),
        unit("systemd-networkd", *networkd),
        unit("NetworkManager", *network_manager),
    ];
    if *network_manager && *plugin {
        seen.push("it reads ifcfg files".to_owned());
    }
    if *initscripts {
        seen.push("initscripts' network service is enabled".to_owned());
    }
    seen.push(unit("wicked", *wicked));
    seen.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(words: &str) -> ConfigEvidence {
        let has = |word: &str| words.split(' ').any(|one| one == word);
        ConfigEvidence {
            netplan: has("netplan").then(|| "/usr/sbin/netplan".parse().unwrap()),
            netplan_files: has("netplan"),
            networkd: has("networkd"),
            network_manager: has("nm"),
            ifcfg: IfcfgEvidence {
                plugin: has("plugin"),
                initscripts: has("initscripts"),
                files: has("ifcfg"),
                keyfiles: has("keyfiles"),
            },
            wicked: has("wicked"),
        }
    }

    #[test]
    fn auto_takes_what_the_host_uses() {
        let origin = Origin { table: "[[nodes]]".into(), entry: "config = \"auto\"".into() };
        let auto = Sourced { value: ConfigChoice::Auto, origin };
        for (host, words, expected) in [
            ("Ubuntu server", "netplan networkd", Some(Keeper::Netplan(Renderer::Networkd))),
            ("Ubuntu desktop", "netplan nm", Some(Keeper::Netplan(Renderer::NetworkManager))),
            ("RHEL 7", "nm plugin initscripts ifcfg", Some(Keeper::Ifcfg(IfcfgReader::NetworkManager))),
            ("RHEL 7 without NetworkManager", "initscripts ifcfg", Some(Keeper::Ifcfg(IfcfgReader::Initscripts))),
            ("the same before its first file", "initscripts", Some(Keeper::Ifcfg(IfcfgReader::Initscripts))),
            ("RHEL 8", "nm plugin ifcfg", Some(Keeper::Ifcfg(IfcfgReader::NetworkManager))),
            ("RHEL 8 gone over to keyfiles", "nm plugin ifcfg keyfiles", Some(Keeper::NetworkManager)),
            ("RHEL 9", "nm plugin keyfiles", Some(Keeper::NetworkManager)),
            ("RHEL 9 before its first file", "nm plugin", Some(Keeper::NetworkManager)),
            ("RHEL 10 with left-overs", "nm ifcfg", Some(Keeper::NetworkManager)),
            ("SLES 15", "wicked", Some(Keeper::Wicked)),
            ("files that nothing reads", "ifcfg", None),
        ] {
            assert_eq!(keeper(&auto, &evidence(words)).ok(), expected, "{host}");
        }
    }
}
