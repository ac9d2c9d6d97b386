//! Which program keeps the network configuration of the host.

use super::fault::ResolveFault;
use crate::facts::ConfigEvidence;
use crate::intent::{Origin, Sourced};
use crate::name::IfName;
use crate::render::{netplan, networkd};
use crate::spec::ConfigChoice;

/// The programs that files are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeper {
    Netplan,
    Networkd,
    NetworkManager,
}

impl Keeper {
    /// What its users call it.
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Netplan => "netplan",
            Self::Networkd => "systemd-networkd",
            Self::NetworkManager => "NetworkManager",
        }
    }

    /// The name of the file that networkd configures the link by, if it is networkd that does.
    pub(super) fn networkd_file_name(self, link: &IfName) -> Option<String> {
        match self {
            Self::Netplan => Some(netplan::networkd_file_name(link)),
            Self::Networkd => Some(networkd::file_name(link)),
            Self::NetworkManager => None,
        }
    }
}

/// The keeper that the spec names, or the one at work on the host.
pub(super) fn keeper(choice: &Sourced<ConfigChoice>, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
    let origin = &choice.origin;
    let not_yet = |system| Err(ResolveFault::NotYet { origin: origin.clone(), system, seen: seen(evidence) });
    match choice.value {
        ConfigChoice::Netplan => through_netplan(origin, evidence),
        ConfigChoice::Networkd => by_networkd(origin, evidence),
        ConfigChoice::NetworkManager => by_network_manager(origin, evidence),
        ConfigChoice::Ifcfg => not_yet("ifcfg files"),
        ConfigChoice::IfcfgSuse => not_yet("the ifcfg files of SUSE"),
        ConfigChoice::Auto if evidence.netplan.is_some() && evidence.netplan_files => through_netplan(origin, evidence),
        ConfigChoice::Auto if evidence.networkd => Ok(Keeper::Networkd),
        ConfigChoice::Auto if evidence.network_manager => Ok(Keeper::NetworkManager),
        ConfigChoice::Auto => Err(ResolveFault::NoConfigSystem { origin: origin.clone(), seen: seen(evidence) }),
    }
}

/// netplan starts networkd itself for what it renders; with NetworkManager at work alone, that would make two.
fn through_netplan(origin: &Origin, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
    if evidence.netplan.is_none() {
        let way = "install the package netplan.io, or name another `config` in [[nodes]]";
        return Err(ResolveFault::NotHere { origin: origin.clone(), system: "netplan", seen: seen(evidence), way });
    }
    if evidence.network_manager && !evidence.networkd {
        let system = "netplan with NetworkManager behind it";
        return Err(ResolveFault::NotYet { origin: origin.clone(), system, seen: seen(evidence) });
    }
    Ok(Keeper::Netplan)
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

fn seen(evidence: &ConfigEvidence) -> String {
    let ConfigEvidence { netplan, netplan_files, networkd, network_manager } = evidence;
    let program = match netplan {
        Some(path) => format!("netplan is {path}"),
        None => "netplan is not installed".to_owned(),
    };
    let files = if *netplan_files { "it has files" } else { "it has no files" };
    let unit = |name: &str, is: bool| {
        format!("{name} {}", if is { "is running or enabled" } else { "is neither running nor enabled" })
    };
    format!("{program}, {files}; {}; {}", unit("systemd-networkd", *networkd), unit("NetworkManager", *network_manager))
}
