//! netplan's file, for its renderers networkd and NetworkManager.
//!
//! `infiniband-mode` is what NetworkManager goes by: with networkd netplan
//! writes it where nothing reads it, and the udev rule sets the mode.
//! `ignore-carrier` and `optional` mean nothing to netplan's NetworkManager
//! renderer, which needs the setting of `keyfile::device_file`. The renderer is named for each link, so that the site's own choice
//! for its other links stays.

use serde::Serialize;

use super::layout::NETPLAN;
use super::yaml::{self, Value};
use super::{File, LinkConfig, RenderError, one_line};
use crate::name::IfName;

#[derive(Serialize)]
struct Data<'a> {
    header: &'a [String],
    links: &'a [Ethernet],
}

/// The programs that netplan can hand a link to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the program of that name")]
pub enum Renderer {
    Networkd,
    NetworkManager,
}

/// One entry of `ethernets`.
#[derive(Serialize)]
struct Ethernet {
    id: String,
    why: String,
    entries: Vec<Entry>,
}

/// A key with its value as YAML.
#[derive(Serialize)]
struct Entry {
    key: &'static str,
    value: String,
    why: String,
}

/// Where the file is.
pub const PATH: &str = "/etc/netplan/60-selvedge.yaml";

/// The name of the file that netplan makes of a link for networkd, in /run/systemd/network.
#[must_use]
pub fn networkd_file_name(link: &IfName) -> String {
    format!("10-netplan-{link}.network")
}

/// The file for all links of a host.
///
/// # Errors
/// When a value cannot be written, or the template made something else of it.
pub fn file(links: &[&LinkConfig], renderer: Renderer, header: &[String]) -> Result<File, RenderError> {
    let links: Vec<Ethernet> = links.iter().map(|link| ethernet(link, renderer)).collect();
    for link in &links {
        one_line("a comment", &link.why)?;
        for entry in link.entries.iter().filter(|entry| !entry.why.is_empty()) {
            one_line("a comment", &entry.why)?;
        }
    }
    let content = NETPLAN.lay_out(&Data { header, links: &links })?;
    check(&links, &content)?;
    // netplan warns about a file that others may read, since some hold passwords.
    Ok(File { path: PATH.parse()?, content, mode: 0o600 })
}

fn ethernet(link: &LinkConfig, renderer: Renderer) -> Ethernet {
    let mut entries = Vec::new();
    let mut push = |key, value: String, why: &str| entries.push(Entry { key, value, why: why.to_owned() });
    let (word, set_by) = match renderer {
        Renderer::Networkd => ("networkd", "; set by 70-selvedge-ipoib.rules, which networkd cannot do"),
        Renderer::NetworkManager => ("NetworkManager", ""),
    };
    push("renderer", word.to_owned(), "");
    if let Some(mode) = &link.mode {
        let why = format!("{}{set_by}", mode.why);
        push("infiniband-mode", mode.value.to_string(), &why);
    }
    push("mtu", link.mtu.value.to_string(), &link.mtu.why);
    let addresses: Vec<String> = link.addresses.iter().map(|address| address.value.to_string()).collect();
    let whys: Vec<&str> = link.addresses.iter().map(|address| address.why.as_str()).collect();
    push("addresses", yaml::list(&addresses), &whys.join(", "));
    let local = if link.has_ipv6() { vec!["ipv6".to_owned()] } else { Vec::new() };
    push("link-local", yaml::list(&local), "");
    push("accept-ra", "false".to_owned(), "");
    push("optional", "true".to_owned(), "Boot never waits on the fabric: it may have no subnet manager yet.");
    push("ignore-carrier", "true".to_owned(), "Addresses are there before the subnet manager, and stay when it goes.");
    Ethernet { id: yaml::word(link.name.value.as_str()), why: link.name.why.clone(), entries }
}

/// The links that a file of ours is for; none when the text is not one.
#[must_use]
pub fn links_of(text: &str) -> Vec<String> {
    let made = yaml::parse(text).ok();
    match made.as_ref().and_then(|made| made.at(&["network", "ethernets"])) {
        Some(Value::Map(links)) => links.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// The link that a profile of netplan's is for, by the profile's path.
#[must_use]
pub fn link_of_profile(path: &str) -> Option<&str> {
    path.strip_prefix("/run/NetworkManager/system-connections/netplan-")?.strip_suffix(".nmconnection")
}

/// Each entry is said. Keys beside them are the template's own affair; links beside them are not.
fn check(links: &[Ethernet], text: &str) -> Result<(), RenderError> {
    let syntax = |(line, rule)| RenderError::Syntax { template: NETPLAN.name, line, rule };
    let made = yaml::parse(text).map_err(syntax)?;
    let missing = |what: String| RenderError::Meaning { template: NETPLAN.name, what };
    if made.at(&["network", "version"]) != Some(&Value::Word("2".to_owned())) {
        return Err(missing("network.version: 2".to_owned()));
    }
    let all = match made.at(&["network", "ethernets"]) {
        Some(Value::Map(map)) => map.len(),
        _ => 0,
    };
    if all != links.len() {
        return Err(missing(format!("network.ethernets of {} links", links.len())));
    }
    for link in links {
        let id = link.id.trim_matches('"');
        for entry in &link.entries {
            let meant = yaml::parse(&format!("{}: {}", entry.key, entry.value)).map_err(syntax)?;
            if made.at(&["network", "ethernets", id, entry.key]) != meant.at(&[entry.key]) {
                return Err(missing(format!("network.ethernets.{id}.{}: {}", entry.key, entry.value)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Chosen;

    fn link() -> LinkConfig {
        LinkConfig {
            name: Chosen { value: "on".parse().unwrap(), why: "n".into() },
            transport: crate::rdma::Transport::Roce,
            mode: None,
            mtu: Chosen { value: 9000, why: "m".into() },
            addresses: vec![Chosen { value: "fd00::1/64".parse().unwrap(), why: "a".into() }],
            on: None,
            children: Vec::new(),
        }
    }

    #[test]
    fn a_template_that_changes_the_meaning_is_seen() {
        let text = file(&[&link()], Renderer::Networkd, &[]).unwrap().content;
        assert!(text.contains("\n    \"on\":\n"), "{text}");
        assert_eq!(links_of(&text), ["on"]);
        let links = [ethernet(&link(), Renderer::Networkd)];
        assert!(check(&links, &text).is_ok());
        assert!(check(&links, &text.replace("mtu: 9000", "mtu: 9000\n      wakeonlan: false")).is_ok());
        for (from, to) in [
            ("mtu: 9000", "mtu: 1500"),
            ("      optional: true\n", ""),
            ("version: 2", "version: 3"),
            ("\"on\":", "on0:"),
            ("    \"on\":", "    other:\n      mtu: 1\n    \"on\":"),
            ("/64\"]", "/64\", \"fd00::2/64\"]"),
        ] {
            assert!(text.contains(from), "{from}");
            assert!(check(&links, &text.replace(from, to)).is_err(), "{to}");
        }
    }
}
