//! netplan reads its file, and what it makes of it for networkd is as meant.

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
    ],
};

fn judge(tree: &Tree) -> Result<(), String> {
    let (_root, path) = tree.written();
    let (ok, _, said) = run("netplan", &["generate", "--root-dir", path.to_str().unwrap()])?;
    if !ok || !said.trim().is_empty() {
        return Err(format!("netplan: {said}"));
    }
    for (name, link) in tree.own_links() {
        let file = path.join(format!("run/systemd/network/10-netplan-{name}.network"));
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let (made, meant) = (entries(&text), meant(name, link));
        if made != meant {
            return Err(format!("netplan made {made:#?}, meant was {meant:#?}"));
        }
    }
    Ok(())
}

/// The whole `.network` file, by section and key.
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
