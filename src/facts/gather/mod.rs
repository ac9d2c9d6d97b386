//! Gathers the facts of the host that this program runs on.
//!
//! Sysfs, procfs and configuration come in, read below a root folder so that
//! tests can lay out a host of their own; [`Facts`] go out. Routes are asked of
//! the kernel, on a live host only. Nothing is changed, no program is run and no
//! service is asked.

mod config;
mod devices;
mod mounts;
mod netdevs;
mod network;
mod protect;
mod remote;
mod session;
#[cfg(test)]
mod tests;
mod tree;

use std::path::Path;

use thiserror::Error;

use self::network::{LiveNetwork, Network};
use self::tree::Tree;
use super::Facts;
use crate::machine::MachineError;
use crate::name::HostName;

/// Why there are no facts.
#[derive(Debug, Error)]
pub enum FactsError {
    /// The kernel does not answer.
    #[error("cannot tell which links carry what must not be cut: {0}")]
    Network(#[from] MachineError),
}

/// Gathers the facts of the host, or of the tree, whose root folder is `root`.
///
/// Links are protected on a live host (`/`) only: a tree has no routes.
///
/// # Errors
/// When the kernel does not tell its routes.
pub fn gather(root: &Path) -> Result<Facts, FactsError> {
    let tree = Tree::new(root);
    let network = if root == Path::new("/") { Some(LiveNetwork::open()?) } else { None };
    gather_from(&tree, network.as_ref().map(|network| -> &dyn Network { network }))
}

/// Looks into the image of a host whose root folder is `root`: its name, programs and configuration. What only running
/// hardware can say is not there.
#[must_use]
pub fn look_into(root: &Path) -> Facts {
    without_network(&Tree::at_rest(root))
}

/// Of `facts` that another host, or an earlier boot, gave: what holds for the image at `root` as well.
///
/// Its HCAs do. Addresses are its own, and a file that networkd chose is only where the image has it too.
#[must_use]
pub fn hardware_for(root: &Path, facts: Facts) -> Facts {
    let tree = Tree::at_rest(root);
    let mut facts = facts;
    let ports = facts.devices.iter_mut().flat_map(|device| &mut device.ports);
    for netdev in ports.filter_map(|port| port.netdev.as_mut()) {
        netdev.addresses.clear();
        netdev.networkd_file = netdev.networkd_file.take().filter(|file| tree.has(file.as_str()));
    }
    facts
}

fn gather_from(tree: &Tree, network: Option<&dyn Network>) -> Result<Facts, FactsError> {
    let mut devices = devices::devices(tree);
    if let Some(network) = network {
        let netdevs = devices.iter_mut().flat_map(|device| &mut device.ports).filter_map(|port| port.netdev.as_mut());
        netdevs.for_each(|netdev| netdev.addresses = network.of(&netdev.name));
    }
    let protected = network.map_or_else(Vec::new, |network| protect::protected(tree, network));
    Ok(Facts { devices, protected, ..without_network(tree) })
}

fn without_network(tree: &Tree) -> Facts {
    Facts {
        version: super::VERSION,
        hostname: host_name(tree),
        kernel: kernel_release(tree),
        devices: Vec::new(),
        config: config::evidence(tree),
        programs: config::programs(tree),
        protected: Vec::new(),
    }
}

/// As the kernel has it; in an image, as it will be after boot.
fn host_name(tree: &Tree) -> Option<HostName> {
    tree.word("/proc/sys/kernel/hostname").or_else(|| tree.word("/etc/hostname"))?.parse().ok()
}

/// As the kernel has it; in an image, the last of those installed.
fn kernel_release(tree: &Tree) -> String {
    tree.word("/proc/sys/kernel/osrelease").or_else(|| tree.names("/lib/modules").pop()).unwrap_or_default()
}
