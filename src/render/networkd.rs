//! A port's `.network` file for systemd-networkd.
//!
//! networkd cannot set the IPoIB mode of a parent link (252 and 257 know no
//! `[IPoIB]` section in `.network`, whatever the man page says): the udev rule
//! does. `IPoIB=` on a parent is never written: on one that is not InfiniBand
//! networkd aborts.

use super::ini::{self, Ini};
use super::layout::INI;
use super::{File, LinkConfig, RenderError};
use crate::name::IfName;
use crate::rdma::Transport;

/// The name of a link's file.
#[must_use]
pub fn file_name(link: &IfName) -> String {
    format!("10-selvedge-{link}.network")
}

/// The file of one link.
///
/// # Errors
/// When a value cannot be written, which no valid name or address can bring about.
pub fn file(link: &LinkConfig, header: &[String]) -> Result<File, RenderError> {
    let path = format!("/etc/systemd/network/{}", file_name(&link.name.value)).parse()?;
    let content = ini::render(&INI, header, &document(link)?)?;
    Ok(File { path, content, mode: 0o644 })
}

fn document(link: &LinkConfig) -> Result<Ini, RenderError> {
    let mut ini = Ini::default();
    // The 20-byte hardware address holds a queue pair number that changes, so it can't be matched.
    // The type keeps an Ethernet link that took the name from getting these addresses.
    let kind = match link.transport {
        Transport::Infiniband => "infiniband",
        Transport::Roce => "ether",
    };
    ini.section("Match").push("Name", link.name.value.as_str(), &link.name.why)?.push("Type", kind, "")?;
    ini.section("Link").push("MTUBytes", &link.mtu.value.to_string(), &link.mtu.why)?.push(
        "RequiredForOnline",
        "no",
        "Boot never waits on the fabric: it may have no subnet manager yet.",
    )?;
    let network = ini.section("Network");
    for address in &link.addresses {
        network.push("Address", &address.value.to_string(), &address.why)?;
    }
    let local = if link.has_ipv6() { "ipv6" } else { "no" };
    network.push("LinkLocalAddressing", local, "")?.push("IPv6AcceptRA", "no", "")?.push(
        "ConfigureWithoutCarrier",
        "yes",
        "Addresses are there before the subnet manager, and stay when it goes.",
    )?;
    Ok(ini)
}
