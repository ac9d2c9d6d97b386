//! NetworkManager's own reader prints each profile as it understood it.
//!
//! It drops a key that it does not know without a word, so what goes in is
//! looked for in what comes out, and that is held against the live objects.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Command;

use selvedge::tag::Tag;

use crate::Consumer;
use crate::tree::{Link, Tree};

const FOLDER: &str = "/etc/NetworkManager/system-connections/";

pub(crate) const CONSUMER: Consumer = Consumer {
    name: "NetworkManager",
    needs: &["nmcli"],
    folder: FOLDER,
    judge,
    mutants: &[
        ("a misspelt key", "never-default=", "never-defualt="),
        ("a misspelt section", "[infiniband]", "[infinband]"),
        ("a misspelt mode", "transport-mode=connected", "transport-mode=conected"),
        ("another mode", "transport-mode=connected", "transport-mode=datagram"),
        ("another MTU", "mtu=65520", "mtu=2044"),
        ("a UUID that is none", "uuid=", "uuid=x"),
        ("a misspelt method", "method=manual", "method=manaul"),
        ("an address less", "address1=", "#address1="),
        ("another link", "interface-name=ib", "interface-name=eth"),
    ],
};

fn judge(tree: &Tree) -> Result<(), String> {
    let (_root, root) = tree.written();
    // Those of netplan are in its own file.
    let by_netplan = |link: &Link| tree.has("/etc/netplan/") && link.on.is_none();
    for (name, link) in tree.links().iter().filter(|(_, link)| !by_netplan(link)) {
        let path = format!("{FOLDER}selvedge-{name}.nmconnection");
        let (_, text) = tree.under(&path).next().ok_or_else(|| format!("no {path}"))?;
        let file = File::open(root.join(path.trim_start_matches('/'))).map_err(|error| error.to_string())?;
        let output = Command::new("nmcli")
            .args(["--offline", "connection", "modify", "connection.autoconnect", "yes"])
            .env("LC_ALL", "C")
            .stdin(file)
            .output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let (read, written) = (entries(&String::from_utf8_lossy(&output.stdout)), entries(text));
        if let Some((key, value)) = written.iter().find(|(key, value)| read.get(*key) != Some(value)) {
            return Err(format!("{path}: {key}={value} was read as {:?}", read.get(key)));
        }
        is_meant(name, link, &read)?;
    }
    Ok(())
}

/// What was understood is what the live objects say.
fn is_meant(name: &str, link: &Link, read: &BTreeMap<String, String>) -> Result<(), String> {
    let (kind, of_mtu) = match (link.infiniband, &link.on) {
        (true, _) => ("infiniband", "infiniband"),
        (false, None) => ("ethernet", "ethernet"),
        (false, Some(_)) => ("vlan", "ethernet"),
    };
    let value = |key: &str| read.get(key).cloned();
    let is_address = |key: &str| key.starts_with("ipv4 address") || key.starts_with("ipv6 address");
    let addresses: Vec<&String> = read.iter().filter(|(key, _)| is_address(key)).map(|(_, value)| value).collect();
    let mut expected = vec![
        ("connection interface-name", Some(name.to_owned())),
        ("connection type", Some(kind.to_owned())),
        ("connection autoconnect", None),
        ("infiniband transport-mode", link.mode.clone()),
    ];
    let [mtu, parent] = [format!("{of_mtu} mtu"), format!("{kind} parent")];
    let (key, number) = match link.on.as_ref().map(|(_, tag)| *tag) {
        Some(Tag::Vlan(number)) => ("vlan id", Some(number.to_string())),
        Some(Tag::Pkey(pkey)) => ("infiniband p-key", Some(pkey.full().to_string())),
        None => ("infiniband p-key", None),
    };
    expected.push((&mtu, Some(link.mtu.to_string())));
    expected.push((&parent, link.on.as_ref().map(|(parent, _)| parent.clone())));
    expected.push((key, number));
    if let Some((key, wanted)) = expected.iter().find(|(key, wanted)| value(key) != *wanted) {
        return Err(format!("{name}: {key} is {:?}, meant was {wanted:?}", value(key)));
    }
    if addresses.iter().eq(link.addresses.iter().collect::<Vec<_>>().iter()) {
        return Ok(());
    }
    Err(format!("{name} has {addresses:?}, meant was {link:?}"))
}

/// Values by section and key.
fn entries(text: &str) -> BTreeMap<String, String> {
    let mut section = "";
    let mut entries = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((key, value)) = line.split_once('=') {
            entries.insert(format!("{section} {key}"), value.to_owned());
        }
    }
    entries
}
