//! A port's ifcfg file of SUSE, for wicked: see ifcfg(5) and ifcfg-ipoib(5) there.
//!
//! Written by the pages; no wicked has read one of ours yet.

use super::layout::IFCFG;
use super::shell::Shell;
use super::{File, LinkConfig, RenderError, ifcfg};
use crate::tag::Tag;

/// Where the files are. The folder is full of others' files too.
pub const FOLDER: &str = "/etc/sysconfig/network/";

/// The file of one link.
///
/// # Errors
/// When a value cannot be written, which no valid name or address can bring about.
pub fn file(link: &LinkConfig, header: &[String]) -> Result<File, RenderError> {
    Ok(File {
        path: ifcfg::path(FOLDER, &link.name.value)?,
        content: variables(link)?.render(&IFCFG, header)?,
        // As the distribution's own are: there is no secret in it.
        mode: 0o644,
    })
}

fn variables(link: &LinkConfig) -> Result<Shell, RenderError> {
    let mut shell = Shell::default();
    shell
        .push("STARTMODE", "hotplug", "Boot never waits on the fabric: it may have no subnet manager yet.")?
        .push("LINK_REQUIRED", "no", "Addresses are there before the subnet manager.")?
        .push("BOOTPROTO", "static", "")?;
    if let Some(mode) = &link.mode {
        // Without it wicked goes by the file's name, and takes only ibN for InfiniBand.
        shell.push("IPOIB", "yes", &link.name.why)?.push("IPOIB_MODE", &mode.value.to_string(), &mode.why)?;
    }
    if let Some(on) = &link.on {
        match on.tag.value {
            Tag::Pkey(pkey) => shell.push("IPOIB_PKEY", &pkey.to_string(), &on.tag.why)?.push(
                "IPOIB_DEVICE",
                on.parent.as_str(),
                "",
            )?,
            Tag::Vlan(number) => {
                shell.push("VLAN_ID", &number.to_string(), &on.tag.why)?.push("ETHERDEVICE", on.parent.as_str(), "")?
            }
        };
    }
    shell.push("MTU", &link.mtu.value.to_string(), &link.mtu.why)?;
    for (index, address) in link.addresses.iter().enumerate() {
        let suffix = if index == 0 { String::new() } else { format!("_{index}") };
        shell.push(&format!("IPADDR{suffix}"), &address.value.to_string(), &address.why)?;
    }
    Ok(shell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::keyfile::tests::link;

    #[test]
    fn addresses_of_both_families_are_counted_together() {
        let text = file(&link("why"), &[]).unwrap().content;
        for line in ["IPADDR=10.0.0.1/16", "IPADDR_1=fd00::1/64", "IPADDR_2=10.1.0.1/16", "IPOIB_MODE=connected"] {
            assert_eq!(text.lines().filter(|one| *one == line).count(), 1, "{line}\n{text}");
        }
    }

    #[test]
    fn words_from_a_spec_stay_in_their_comment() {
        for hostile in ["a\nIPADDR=1.1.1.1", "a\rB=1", "a\0"] {
            assert!(file(&link(hostile), &[]).is_err(), "{hostile:?}");
            assert!(file(&link("why"), &[hostile.to_owned()]).is_err(), "{hostile:?}");
        }
        for harmless in ["\"", "'", "%i", "{{x}}", "$(x)", "`x`", "../x", "a=b", "\\"] {
            assert!(file(&link(harmless), &[]).unwrap().content.contains(&format!("# {harmless}\n")), "{harmless}");
        }
    }
}
