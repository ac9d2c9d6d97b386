//! A port's profile for NetworkManager, and the setting that has it applied without carrier.
//!
//! Only what differs from NetworkManager's default is written: its own tools
//! drop the rest, and what they print can be compared key by key.

use sha2::{Digest as _, Sha256};

use super::ini::{self, Ini};
use super::layout::INI;
use super::{File, LinkConfig, RenderError};
use crate::rdma::{IpoibMode, Transport};
use crate::tag::Tag;
use ipnet::IpNet;

/// Where the profiles are.
pub const FOLDER: &str = "/etc/NetworkManager/system-connections/";

const BEFORE: &str = "selvedge-";
const AFTER: &str = ".nmconnection";

/// The link that a profile of ours is for, by the profile's path.
#[must_use]
pub fn link_of(path: &str) -> Option<&str> {
    path.strip_prefix(FOLDER)?.strip_prefix(BEFORE)?.strip_suffix(AFTER)
}

/// The profile of one link, and the device setting that belongs to it.
///
/// # Errors
/// When a value cannot be written, which no valid name or address can bring about.
pub fn files(link: &LinkConfig, cluster: &str, header: &[String]) -> Result<[File; 2], RenderError> {
    let name = &link.name.value;
    let profile = File {
        path: format!("{FOLDER}{BEFORE}{name}{AFTER}").parse()?,
        content: ini::render(&INI, header, &profile(link, cluster)?)?,
        // NetworkManager refuses a profile that others may read.
        mode: 0o600,
    };
    Ok([device_file(link, header)?, profile])
}

/// The device setting of one link: it goes with any profile that NetworkManager has for the link.
///
/// # Errors
/// When a value cannot be written, which no valid name can bring about.
pub fn device_file(link: &LinkConfig, header: &[String]) -> Result<File, RenderError> {
    Ok(File {
        path: format!("/etc/NetworkManager/conf.d/selvedge-{}.conf", link.name.value).parse()?,
        content: ini::render(&INI, header, &device(link)?)?,
        mode: 0o644,
    })
}

/// What a profile of ours is called.
#[must_use]
pub fn id(link: &str) -> String {
    format!("selvedge {link}")
}

fn profile(link: &LinkConfig, cluster: &str) -> Result<Ini, RenderError> {
    let name = link.name.value.as_str();
    let kind = match (link.transport, &link.on) {
        (Transport::Infiniband, _) => "infiniband",
        (Transport::Roce, None) => "ethernet",
        (Transport::Roce, Some(_)) => "vlan",
    };
    let mut ini = Ini::default();
    ini.section("connection")
        .push("id", &id(name), "")?
        .push("uuid", &uuid(cluster, name), "")?
        .push("type", kind, "")?
        .push("interface-name", name, &link.name.why)?
        .push("autoconnect-priority", "100", "Before a profile of an installer's for the same link.")?;
    let section = ini.section(kind);
    if let Some(mode) = &link.mode {
        let word = match mode.value {
            IpoibMode::Connected => "connected",
            IpoibMode::Datagram => "datagram",
        };
        section.push("transport-mode", word, &mode.why)?;
    }
    if let Some(on) = &link.on {
        match on.tag.value {
            Tag::Pkey(pkey) => section.push("p-key", &pkey.full().to_string(), &on.tag.why)?,
            Tag::Vlan(number) => section.push("id", &number.to_string(), &on.tag.why)?,
        };
        section.push("parent", on.parent.as_str(), "")?;
    }
    let section = if kind == "vlan" { ini.section("ethernet") } else { section };
    section.push("mtu", &link.mtu.value.to_string(), &link.mtu.why)?;
    family(&mut ini, "ipv4", link, |address| matches!(address, IpNet::V4(_)))?;
    family(&mut ini, "ipv6", link, |address| matches!(address, IpNet::V6(_)))?;
    Ok(ini)
}

fn family(ini: &mut Ini, name: &str, link: &LinkConfig, has: fn(&IpNet) -> bool) -> Result<(), RenderError> {
    let section = ini.section(name);
    let addresses = || link.addresses.iter().filter(|address| has(&address.value));
    if addresses().next().is_none() {
        section.push("method", "disabled", "")?;
        return Ok(());
    }
    section.push("method", "manual", "")?;
    for (index, address) in addresses().enumerate() {
        section.push(&format!("address{}", index + 1), &address.value.to_string(), &address.why)?;
    }
    section.push("never-default", "true", "")?;
    Ok(())
}

/// By default NetworkManager activates nothing on a link without carrier, and takes all off one that loses it.
fn device(link: &LinkConfig) -> Result<Ini, RenderError> {
    let name = &link.name.value;
    let mut ini = Ini::default();
    ini.section(&format!("device-selvedge-{name}"))
        .push("match-device", &format!("interface-name:={name}"), "")?
        .push("ignore-carrier", "yes", "Addresses are there before the subnet manager, and stay when it goes.")?;
    Ok(ini)
}

/// The same for the same cluster and link, so that a file that is made again is the same file: RFC 9562, version 8.
pub(super) fn uuid(cluster: &str, link: &str) -> String {
    let digest = Sha256::digest(format!("selvedge\0{cluster}\0{link}"));
    let mut hex: Vec<char> =
        digest.iter().take(16).flat_map(|byte| format!("{byte:02x}").chars().collect::<Vec<_>>()).collect();
    hex[12] = '8';
    hex[16] = 'a';
    for place in [20, 16, 12, 8] {
        hex.insert(place, '-');
    }
    hex.into_iter().collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::render::Chosen;

    /// A link with addresses of both families, and a reason for everything.
    pub(in crate::render) fn link(why: &str) -> LinkConfig {
        let chosen = |value| Chosen { value, why: why.to_owned() };
        let address = |text: &str| Chosen { value: text.parse::<IpNet>().unwrap(), why: why.to_owned() };
        LinkConfig {
            name: Chosen { value: "ib0".parse().unwrap(), why: why.to_owned() },
            transport: Transport::Infiniband,
            mode: Some(Chosen { value: IpoibMode::Connected, why: why.to_owned() }),
            mtu: chosen(65520),
            addresses: ["10.0.0.1/16", "fd00::1/64", "10.1.0.1/16"].map(address).to_vec(),
            on: None,
            children: Vec::new(),
        }
    }

    #[test]
    fn addresses_are_counted_in_their_family() {
        let [device, profile] = files(&link("why"), "c", &[]).unwrap();
        for line in ["address1=10.0.0.1/16", "address2=10.1.0.1/16", "address1=fd00::1/64"] {
            assert_eq!(profile.content.lines().filter(|one| *one == line).count(), 1, "{line}");
        }
        assert_eq!((device.mode, profile.mode), (0o644, 0o600));
        assert_eq!((link_of(profile.path.as_str()), link_of(device.path.as_str())), (Some("ib0"), None));
    }

    #[test]
    fn the_uuid_is_of_cluster_and_link() {
        assert_eq!(uuid("c", "ib0"), uuid("c", "ib0"));
        assert_ne!(uuid("c", "ib0"), uuid("c", "ib1"));
        assert_ne!(uuid("c", "ib0"), uuid("ci", "b0"));
        assert_eq!(&uuid("c", "ib0")[14..15], "8");
    }

    #[test]
    fn words_from_a_spec_stay_in_their_comment() {
        for hostile in ["a\nmethod=auto", "a\r[ipv4]", "a\0"] {
            assert!(files(&link(hostile), "c", &[]).is_err(), "{hostile:?}");
            assert!(files(&link("why"), "c", &[hostile.to_owned()]).is_err(), "{hostile:?}");
        }
        for harmless in ["\"", "%i", "{{x}}", "$(x)", "../x", "[ipv4]", "a=b"] {
            let [_, profile] = files(&link(harmless), "c", &[]).unwrap();
            assert!(profile.content.contains(&format!("# {harmless}\n")), "{harmless}");
        }
    }
}
