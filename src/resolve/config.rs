//! Which program keeps the network configuration of the host.

use super::fault::ResolveFault;
use crate::facts::ConfigEvidence;
use crate::intent::{Origin, Sourced};
use crate::spec::ConfigChoice;

/// The programs that files are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeper {
    Netplan,
    Networkd,
}

/// The keeper that the spec names, or the one at work on the host.
pub(super) fn keeper(choice: &Sourced<ConfigChoice>, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
    let origin = &choice.origin;
    let not_yet = |system| Err(ResolveFault::NotYet { origin: origin.clone(), system, seen: seen(evidence) });
    match choice.value {
        ConfigChoice::Netplan => netplan(origin, evidence),
        ConfigChoice::Networkd => networkd(origin, evidence),
        ConfigChoice::NetworkManager => not_yet("NetworkManager"),
        ConfigChoice::Ifcfg => not_yet("ifcfg files"),
        ConfigChoice::IfcfgSuse => not_yet("the ifcfg files of SUSE"),
        ConfigChoice::Auto if evidence.netplan.is_some() && evidence.netplan_files => netplan(origin, evidence),
        ConfigChoice::Auto if evidence.networkd => Ok(Keeper::Networkd),
        ConfigChoice::Auto if evidence.network_manager => not_yet("NetworkManager"),
        ConfigChoice::Auto => Err(ResolveFault::NoConfigSystem { origin: origin.clone(), seen: seen(evidence) }),
    }
}

/// netplan starts networkd itself for what it renders; with NetworkManager at work alone, that would make two.
fn netplan(origin: &Origin, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
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

fn networkd(origin: &Origin, evidence: &ConfigEvidence) -> Result<Keeper, ResolveFault> {
    if evidence.networkd {
        return Ok(Keeper::Networkd);
    }
    let way = "`systemctl enable --now systemd-networkd`, after a look at who keeps the other links";
    Err(ResolveFault::NotHere { origin: origin.clone(), system: "systemd-networkd", seen: seen(evidence), way })
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
