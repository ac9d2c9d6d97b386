//! The real systemd-networkd reads its files, and sets MTU and addresses.
//!
//! It runs in namespaces of its own, on veth links of the right names: the
//! match by type is changed to theirs, and P_Key children and VLANs to macvlans, which a
//! veth link can have here. All else is as it was written, beside what netplan makes of its file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Consumer;
use crate::programs::{in_sandbox, run};
use crate::tree::Tree;

const FOLDER: &str = "/etc/systemd/network/";

pub(crate) const CONSUMER: Consumer = Consumer {
    name: "networkd",
    needs: &["root", "unshare", "ip", "/lib/systemd/systemd-networkd"],
    folder: FOLDER,
    judge,
    mutants: &[
        ("a misspelt key", "RequiredForOnline", "RequiredForOnlin"),
        ("a misspelt section", "[Network]", "[Netwrok]"),
        ("an [IPoIB] section", "[Network]", "[IPoIB]\nMode=connected\n[Network]"),
        ("a value of the wrong kind", "ConfigureWithoutCarrier=yes", "ConfigureWithoutCarrier=perhaps"),
        ("another MTU", "MTUBytes=", "MTUBytes=1"),
        ("an address that waits for carrier", "ConfigureWithoutCarrier=yes", "ConfigureWithoutCarrier=no"),
        ("a match of nothing", "Name=", "Name=x"),
    ],
};

const SCRIPT: &str = r#"
folder=$1
addresses=$2
shift 2
mount --bind "$folder" /etc/systemd/network
mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
chown -R systemd-network:systemd-network /run/systemd/netif
for link in "$@"; do ip link add "$link" type veth peer name "peer$((++n))"; done
SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console timeout 20 /lib/systemd/systemd-networkd >&2 &
for _ in $(seq 30); do
    sleep 0.1
    [ "$(ip -o addr show scope global | wc -l)" -lt "$addresses" ] || break
done
sleep 0.3
ip -j addr
kill %1
wait || true
"#;

/// A file for the links of the sandbox: a child of either kind is a macvlan, which this kernel can put on a veth link.
fn on_ethernet(path: &str, text: &str) -> String {
    let mut text = text.replace("Type=infiniband", "Type=ether");
    if !path.ends_with(".netdev") {
        return text.replace("IPoIB=", "MACVLAN=").replace("\nVLAN=", "\nMACVLAN=");
    }
    for kind in ["ipoib", "vlan"] {
        text = text.replace(&format!("Kind={kind}"), "Kind=macvlan");
    }
    let of_kind = ["[IPoIB]", "[VLAN]"].into_iter().find_map(|section| text.find(section));
    text.truncate(of_kind.unwrap_or(text.len()));
    text + "[MACVLAN]\nMode=bridge\n"
}

/// What netplan makes of its file joins the files that are there.
fn generate(root: &Path) -> Result<(), String> {
    run("netplan", &["generate", "--root-dir", root.to_str().unwrap()])?;
    let made = root.join("run/systemd/network");
    for entry in fs::read_dir(&made).map_err(|error| error.to_string())? {
        let from = entry.map_err(|error| error.to_string())?.path();
        let text = fs::read_to_string(&from).map_err(|error| error.to_string())?;
        // A section that networkd ignores, and complains of.
        let text = text.split("\n[IPoIB]\n").next().unwrap_or_default().to_owned() + "\n";
        let to = root.join(FOLDER.trim_start_matches('/')).join(from.file_name().unwrap());
        fs::write(&to, text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn judge(tree: &Tree) -> Result<(), String> {
    let tree = tree.each(FOLDER, on_ethernet);
    let (_root, path) = tree.written();
    let folder = path.join(FOLDER.trim_start_matches('/'));
    if tree.has("/etc/netplan/") {
        generate(&path)?;
    }
    let addresses = tree.links().values().map(|link| link.addresses.len()).sum::<usize>().to_string();
    let mut arguments = vec![folder.to_str().unwrap(), &addresses];
    arguments.extend(tree.own_links().map(|(name, _)| name.as_str()));
    let (ok, seen, log) = in_sandbox(SCRIPT, &arguments)?;
    if !ok {
        return Err(format!("the sandbox failed: {log}"));
    }
    let complaints: Vec<&str> = log.lines().filter(|line| line.starts_with(FOLDER)).collect();
    if !complaints.is_empty() {
        return Err(complaints.join("\n"));
    }
    let seen: Value = serde_json::from_str(&seen).map_err(|error| format!("{error}: {seen}"))?;
    for (name, link) in tree.links() {
        let found = seen.as_array().into_iter().flatten().find(|one| one["ifname"] == name.as_str());
        let found = found.ok_or_else(|| format!("networkd made no {name}: {log}"))?;
        let addresses: Vec<String> = found["addr_info"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|address| format!("{}/{}", address["local"].as_str().unwrap_or_default(), address["prefixlen"]))
            .collect();
        let sorted = |addresses: &[String]| addresses.iter().cloned().collect::<BTreeSet<_>>();
        if found["mtu"] != link.mtu || sorted(&addresses) != sorted(&link.addresses) {
            return Err(format!("{name} has MTU {} and {addresses:?}, meant was {link:?}", found["mtu"]));
        }
    }
    Ok(())
}
