//! A port's ifcfg file of Red Hat, for NetworkManager's ifcfg-rh reader and for
//! initscripts alike.
//!
//! Keys that only one of the two knows do no harm to the other: initscripts
//! has no `UUID` and no `IPV6_DISABLED`. `ARPCHECK=no` is never written: the
//! `ifup-ib` of rdma-core takes it for an address that is in use.

use ipnet::IpNet;

use super::layout::IFCFG;
use super::shell::Shell;
use super::{File, LinkConfig, RenderError, keyfile};
use crate::name::IfName;
use crate::rdma::{IpoibMode, Transport};
use crate::state::FilePath;
use crate::tag::Tag;

/// Where the files are. The folder is full of others' files too.
pub const FOLDER: &str = "/etc/sysconfig/network-scripts/";

/// How the name of a file ends that one of the readers, of SUSE too, takes for a left-over and not for configuration.
pub const IGNORED: [&str; 11] =
    ["~", ".augnew", ".augtmp", ".bak", ".old", ".orig", ".rej", ".rpmnew", ".rpmorig", ".rpmsave", ".scpmbackup"];

/// What `ifup-ib` of initscripts cuts the MTU of datagram mode down to, bytes.
pub const INITSCRIPTS_DATAGRAM_MTU: u32 = 2044;

/// The link that an ifcfg file is for, by its path: also where it is somebody else's file.
#[must_use]
pub fn link_of(path: &str) -> Option<&str> {
    path.strip_prefix(FOLDER)?.strip_prefix("ifcfg-")
}

/// The file of one link.
///
/// # Errors
/// When a value cannot be written, which no valid name or address can bring about.
pub fn file(link: &LinkConfig, cluster: &str, header: &[String]) -> Result<File, RenderError> {
    Ok(File {
        path: path(FOLDER, &link.name.value)?,
        content: variables(link, cluster)?.render(&IFCFG, header)?,
        // As the distribution's own are: there is no secret in it.
        mode: 0o644,
    })
}

/// The path of a link's file, by a name that its readers do not pass over.
pub(super) fn path(folder: &str, link: &IfName) -> Result<FilePath, RenderError> {
    if IGNORED.iter().any(|end| link.as_str().ends_with(end)) {
        let rule = "a file whose name ends so is not read";
        return Err(RenderError::Value { value: link.to_string(), what: "the name of an ifcfg file".to_owned(), rule });
    }
    Ok(format!("{folder}ifcfg-{link}").parse()?)
}

fn variables(link: &LinkConfig, cluster: &str) -> Result<Shell, RenderError> {
    let name = link.name.value.as_str();
    let kind = match (link.transport, &link.on) {
        (Transport::Infiniband, _) => "InfiniBand",
        (Transport::Roce, None) => "Ethernet",
        (Transport::Roce, Some(_)) => "Vlan",
    };
    let mut shell = Shell::default();
    shell
        .push("DEVICE", name, &link.name.why)?
        .push("NAME", &keyfile::id(name), "")?
        .push("UUID", &keyfile::uuid(cluster, name), "")?
        .push("TYPE", kind, "")?
        .push("ONBOOT", "yes", "")?
        .push("BOOTPROTO", "none", "")?;
    if let Some(on) = &link.on {
        // The full members' key, in hexadecimal: the others' make another name, and digits alone are decimal.
        match on.tag.value {
            Tag::Pkey(pkey) => shell.push("PKEY", "yes", "")?.push("PKEY_ID", &pkey.to_string(), &on.tag.why)?,
            Tag::Vlan(number) => shell.push("VLAN", "yes", "")?.push("VLAN_ID", &number.to_string(), &on.tag.why)?,
        }
        .push("PHYSDEV", on.parent.as_str(), "")?;
    }
    if let Some(mode) = &link.mode {
        let word = match mode.value {
            IpoibMode::Connected => "yes",
            IpoibMode::Datagram => "no",
        };
        shell.push("CONNECTED_MODE", word, &mode.why)?;
    }
    shell.push("MTU", &link.mtu.value.to_string(), &link.mtu.why)?;
    let v4 = link.addresses.iter().filter(|address| matches!(address.value, IpNet::V4(_)));
    for (index, address) in v4.enumerate() {
        let suffix = if index == 0 { String::new() } else { index.to_string() };
        shell.push(&format!("IPADDR{suffix}"), &address.value.addr().to_string(), &address.why)?.push(
            &format!("PREFIX{suffix}"),
            &address.value.prefix_len().to_string(),
            "",
        )?;
    }
    shell.push("DEFROUTE", "no", "")?;
    v6(&mut shell, link)?;
    Ok(shell)
}

fn v6(shell: &mut Shell, link: &LinkConfig) -> Result<(), RenderError> {
    let addresses: Vec<_> = link.addresses.iter().filter(|one| matches!(one.value, IpNet::V6(_))).collect();
    let Some((first, more)) = addresses.split_first() else {
        shell.push("IPV6INIT", "no", "")?.push("IPV6_DISABLED", "yes", "")?;
        return Ok(());
    };
    shell.push("IPV6INIT", "yes", "")?.push("IPV6_AUTOCONF", "no", "")?.push("IPV6_DEFROUTE", "no", "")?.push(
        "IPV6ADDR",
        &first.value.to_string(),
        &first.why,
    )?;
    if !more.is_empty() {
        let texts: Vec<String> = more.iter().map(|address| address.value.to_string()).collect();
        let whys: Vec<&str> = more.iter().map(|address| address.why.as_str()).collect();
        shell.push("IPV6ADDR_SECONDARIES", &texts.join(" "), &whys.join(", "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::keyfile::tests::link;

    #[test]
    fn addresses_are_counted_in_their_family() {
        let file = file(&link("why"), "c", &[]).unwrap();
        for line in
            ["IPADDR=10.0.0.1", "PREFIX=16", "IPADDR1=10.1.0.1", "PREFIX1=16", "IPV6ADDR=fd00::1/64", "IPV6INIT=yes"]
        {
            assert_eq!(file.content.lines().filter(|one| *one == line).count(), 1, "{line}\n{}", file.content);
        }
        assert_eq!(link_of(file.path.as_str()), Some("ib0"));
        assert_eq!(link_of("/etc/sysconfig/network-scripts/ifup-ib"), None);
    }

    #[test]
    fn more_addresses_of_version_6_are_one_quoted_word() {
        let mut link = link("why");
        link.addresses.push(super::super::Chosen { value: "fd00::2/64".parse().unwrap(), why: "w".into() });
        link.addresses.push(super::super::Chosen { value: "fd00::3/64".parse().unwrap(), why: "w".into() });
        let text = file(&link, "c", &[]).unwrap().content;
        assert!(text.contains("\nIPV6ADDR_SECONDARIES='fd00::2/64 fd00::3/64'\n"), "{text}");
    }

    #[test]
    fn a_file_that_nothing_would_read_is_refused() {
        let mut link = link("why");
        for (name, read) in [("ib0.bak", false), ("ib0.old", false), ("ib0.8001", true), ("rail-0", true)] {
            link.name.value = name.parse().unwrap();
            assert_eq!(file(&link, "c", &[]).is_ok(), read, "{name}");
        }
    }

    #[test]
    fn words_from_a_spec_stay_in_their_comment() {
        for hostile in ["a\nIPADDR=1.1.1.1", "a\rB=1", "a\0"] {
            assert!(file(&link(hostile), "c", &[]).is_err(), "{hostile:?}");
            assert!(file(&link("why"), "c", &[hostile.to_owned()]).is_err(), "{hostile:?}");
        }
        for harmless in ["\"", "'", "%i", "{{x}}", "$(x)", "`x`", "../x", "a=b", "\\"] {
            let text = file(&link(harmless), "c", &[]).unwrap().content;
            assert!(text.contains(&format!("# {harmless}\n")), "{harmless}");
        }
    }
}
