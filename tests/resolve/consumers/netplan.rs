//! netplan reads its file, and what it makes of it for networkd or for NetworkManager is as meant.

use std::collections::BTreeMap;
use std::fs;

use crate::Consumer;
use crate::programs::run;
use crate::tree::{Link, Tree};

pub(crate) const CONSUMER: Consumer = Consumer {
    name: "netplan",
    needs: &["netplan"],
    folder: "/etc/netplan/",
    judge,
    mutants: &[
        ("a misspelt key", "ignore-carrier", "ignore-carier"),
        ("an unknown mode", "infiniband-mode: datagram", "infiniband-mode: conected"),
        ("another MTU", "mtu: 2044", "mtu: 2045"),
        ("an address without its prefix", "/16\"]", "\"]"),
        ("a wait for the fabric", "optional: true", "optional: false"),
        ("another renderer", "renderer: NetworkManager", "renderer: networkd"),
        (
            "another mode for NetworkManager",
            "infiniband-mode: connected\n      # [networks.compute] mtu = \"max\": the most that connected mode carries\n      mtu: 65520",
            "mtu: 65520",
        ),
    ],
};

fn judge(tree: &Tree) -> Result<(), String> {
    let (_root, path) = tree.written();
    let (ok, _, said) = run("netplan", &["generate", "--root-dir", path.to_str().unwrap()])?;
    if !ok || !said.trim().is_empty() {
        return Err(format!("netplan: {said}"));
    }
    // NetworkManager's device setting is written beside the YAML where it is to be the renderer.
    let by_networkd = !tree.has("/etc/NetworkManager/conf.d/");
    for (name, link) in tree.own_links() {
        let file = if by_networkd {
            path.join(format!("run/systemd/network/10-netplan-{name}.network"))
        } else {
            path.join(format!("run/NetworkManager/system-connections/netplan-{name}.nmconnection"))
        };
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let (made, meant) = (entries(&text), if by_networkd { meant(name, link) } else { profile(name, link) });
        if made != meant {
            return Err(format!("netplan made {made:#?}, meant was {meant:#?}"));
        }
    }
    Ok(())
}

/// The whole file, by section and key.
fn entries(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut section = "";
    let mut entries: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.split_once('=') {
            Some((key, value)) => entries.entry(format!("{section} {key}")).or_default().push(value.to_owned()),
            None => section = line,
        }
    }
    entries
}

fn meant(name: &str, link: &Link) -> BTreeMap<String, Vec<String>> {
    let one = |key: &str, value: &str| (key.to_owned(), vec![value.to_owned()]);
    let local = if link.addresses.iter().any(|address| address.contains(':')) { "ipv6" } else { "no" };
    let mut meant = BTreeMap::from([
        one("[Match] Name", name),
        one("[Link] RequiredForOnline", "no"),
        one("[Link] MTUBytes", &link.mtu.to_string()),
        one("[Network] LinkLocalAddressing", local),
        one("[Network] IPv6AcceptRA", "no"),
        one("[Network] ConfigureWithoutCarrier", "yes"),
    ]);
    if !link.addresses.is_empty() {
        meant.insert("[Network] Address".to_owned(), link.addresses.clone());
    }
    // networkd ignores this section: the udev rule sets the mode.
    meant.extend(link.mode.as_ref().map(|mode| one("[IPoIB] Mode", mode)));
    meant
}

/// The whole profile for NetworkManager, which honours the mode.
fn profile(name: &str, link: &Link) -> BTreeMap<String, Vec<String>> {
    let one = |key: &str, value: &str| (key.to_owned(), vec![value.to_owned()]);
    let kind = if link.infiniband { "infiniband" } else { "ethernet" };
    let mut profile = BTreeMap::from([
        one("[connection] id", &format!("netplan-{name}")),
        one("[connection] type", kind),
        one("[connection] interface-name", name),
        one(&format!("[{kind}] mtu"), &link.mtu.to_string()),
    ]);
    profile.extend(link.mode.as_ref().map(|mode| one("[infiniband] transport-mode", mode)));
    profile.extend((!link.infiniband).then(|| one("[ethernet] wake-on-lan", "0")));
    let (v6, v4): (Vec<&String>, Vec<&String>) = link.addresses.iter().partition(|address| address.contains(':'));
    let mut family = |name: &str, addresses: Vec<&String>, without: &str| {
        let method = if addresses.is_empty() { without } else { "manual" };
        profile.extend([one(&format!("[{name}] method"), method)]);
        profile
            .extend(addresses.iter().enumerate().map(|(at, text)| one(&format!("[{name}] address{}", at + 1), text)));
    };
    let has_v6 = !v6.is_empty();
    // netplan knows no link without IPv4 there, and `link-local` in the YAML does not change that.
    family("ipv4", v4, "link-local");
    family("ipv6", v6, "ignore");
    profile.extend(has_v6.then(|| one("[ipv6] ip6-privacy", "0")));
    profile
}
