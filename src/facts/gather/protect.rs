//! The links that carry what must not be cut.

use std::net::IpAddr;

use super::mounts::{self, RemoteMount};
use super::network::Network;
use super::remote;
use super::session;
use super::tree::Tree;
use crate::name::IfName;
use crate::plan::Protected;

/// All protected links, each with what it carries; a link below one of them is protected with it.
pub(super) fn protected(tree: &Tree, network: &dyn Network) -> Vec<Protected> {
    let mut found = Found { network, protected: Vec::new() };
    for link in network.default_route_links() {
        found.add(&link, "the default route");
    }
    if let Some(ssh) = session::ssh_connection(tree) {
        let link = ssh.local.and_then(|local| network.holding(local)).or_else(|| network.towards(ssh.client));
        found.extend(link, &format!("this SSH connection from {}", ssh.client));
    }
    for mount in mounts::remote(&tree.text("/proc/self/mountinfo").unwrap_or_default()) {
        found.mount(tree, &mount);
    }
    for target in remote::iscsi_targets(tree) {
        found.extend(network.towards(target), &format!("an iSCSI session with {target}"));
    }
    for target in remote::nvme_targets(tree) {
        found.extend(network.towards(target), &format!("an NVMe controller at {target}"));
    }
    found.protected
}

struct Found<'a> {
    network: &'a dyn Network,
    protected: Vec<Protected>,
}

impl Found<'_> {
    fn mount(&mut self, tree: &Tree, mount: &RemoteMount) {
        let from = |server: &IpAddr| format!("{} from {server}", mount.kind);
        let servers = if mount.kind == "gpfs" { remote::gpfs_peers(tree) } else { mount.servers.clone() };
        for server in &servers {
            let carries = match mount.target.as_str() {
                "/" => format!("the root file system ({})", from(server)),
                target => format!("{target} ({})", from(server)),
            };
            self.extend(self.network.towards(*server), &carries);
        }
    }

    fn extend(&mut self, link: Option<IfName>, carries: &str) {
        if let Some(link) = link {
            self.add(&link, carries);
        }
    }

    fn add(&mut self, link: &IfName, carries: &str) {
        // What this host serves to itself.
        if link.as_str() == "lo" {
            return;
        }
        let entry = Protected { link: link.clone(), carries: carries.to_owned() };
        if self.protected.contains(&entry) {
            return;
        }
        self.protected.push(entry);
        let carries =
            if carries.contains(", by way of ") { carries.to_owned() } else { format!("{carries}, by way of {link}") };
        for below in self.network.below(link) {
            self.add(&below, &carries);
        }
    }
}
