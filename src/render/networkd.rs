//! The `.network` file of an interface for systemd-networkd, and the `.netdev` file that makes a child.
//!
//! networkd cannot set the IPoIB mode of a parent link (252 and 257 know no
//! `[IPoIB]` section in `.network`, whatever the man page says): the udev rule
//! does, for children too.

use super::ini::{self, Ini, Section};
use super::layout::INI;
use super::{File, LinkConfig, On, RenderError};
use crate::name::IfName;
use crate::rdma::Transport;
use crate::tag::Tag;

/// The name of a link's file.
#[must_use]
pub fn file_name(link: &IfName) -> String {
    format!("10-selvedge-{link}.network")
}

/// The files of one link: what makes it, if it is a child, and what configures it.
///
/// # Errors
/// When a value cannot be written, which no valid name or address can bring about.
pub fn files(link: &LinkConfig, header: &[String]) -> Result<Vec<File>, RenderError> {
    let name = &link.name.value;
    let file = |path: String, ini: &Ini| {
        Ok::<_, RenderError>(File { path: path.parse()?, content: ini::render(&INI, header, ini)?, mode: 0o644 })
    };
    let mut files = Vec::new();
    if let Some(on) = &link.on {
        files.push(file(format!("{FOLDER}10-selvedge-{name}.netdev"), &device(link, on)?)?);
    }
    files.push(file(format!("{FOLDER}{}", file_name(name)), &document(link)?)?);
    Ok(files)
}

/// What is added to a link's file of somebody else, called `of`, so that networkd knows of the link's children.
///
/// # Errors
/// As [`files`].
pub fn drop_in(link: &LinkConfig, of: &str, header: &[String]) -> Result<Option<File>, RenderError> {
    if link.children.is_empty() {
        return Ok(None);
    }
    let mut ini = Ini::default();
    children(ini.section("Network"), link)?;
    let path = format!("{FOLDER}{of}.d/selvedge.conf").parse()?;
    Ok(Some(File { path, content: ini::render(&INI, header, &ini)?, mode: 0o644 }))
}

const FOLDER: &str = "/etc/systemd/network/";

/// `.netdev`: networkd makes the link when it sees the parent, at boot that is.
fn device(link: &LinkConfig, on: &On) -> Result<Ini, RenderError> {
    let kind = match on.tag.value {
        Tag::Pkey(_) => "ipoib",
        Tag::Vlan(_) => "vlan",
    };
    let mut ini = Ini::default();
    let device =
        ini.section("NetDev").push("Name", link.name.value.as_str(), &link.name.why)?.push("Kind", kind, "")?;
    match on.tag.value {
        Tag::Pkey(pkey) => {
            let why = "Else networkd makes up a port GUID for it, which no fabric knows: it never gets carrier.";
            device.push("MACAddress", "none", why)?;
            // Without its mode: the kernel can make the link, fail to take a lock again, and unmake it (`ipoib_set_mode`
            // gives EBUSY). The udev rule sets that of a link that is there.
            ini.section("IPoIB").push("PartitionKey", &pkey.to_string(), &on.tag.why)?;
        }
        Tag::Vlan(number) => {
            ini.section("VLAN").push("Id", &number.to_string(), &on.tag.why)?;
        }
    }
    Ok(ini)
}

/// Never on a parent of the other kind: `IPoIB=` on one that is not InfiniBand aborts networkd.
fn children(network: &mut Section, link: &LinkConfig) -> Result<(), RenderError> {
    for (name, tag) in &link.children {
        let key = match (tag, link.transport) {
            (Tag::Pkey(_), Transport::Infiniband) => "IPoIB",
            (Tag::Vlan(_), Transport::Roce) => "VLAN",
            _ => continue,
        };
        network.push(key, name.as_str(), "")?;
    }
    Ok(())
}

fn document(link: &LinkConfig) -> Result<Ini, RenderError> {
    let mut ini = Ini::default();
    // The 20-byte hardware address holds a queue pair number that changes, so it can't be matched.
    // The type keeps an Ethernet link that took the name from getting these addresses.
    // What a VLAN's type is called depends on whether udev has seen it.
    let kind = match (link.transport, &link.on) {
        (Transport::Infiniband, _) => Some("infiniband"),
        (Transport::Roce, None) => Some("ether"),
        (Transport::Roce, Some(_)) => None,
    };
    let matching = ini.section("Match").push("Name", link.name.value.as_str(), &link.name.why)?;
    if let Some(kind) = kind {
        matching.push("Type", kind, "")?;
    }
    ini.section("Link").push("MTUBytes", &link.mtu.value.to_string(), &link.mtu.why)?.push(
        "RequiredForOnline",
        "no",
        "Boot never waits on the fabric: it may have no subnet manager yet.",
    )?;
    let network = ini.section("Network");
    children(network, link)?;
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
