//! The real systemd-networkd reads its files, and sets MTU and addresses.
//!
//! It runs in namespaces of its own, on veth links of the right names: the
//! match by type is changed to theirs, all else is as it was written.

use serde_json::Value;

use crate::Consumer;
use crate::programs::in_sandbox;
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
shift
mount --bind "$folder" /etc/systemd/network
mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
chown -R systemd-network:systemd-network /run/systemd/netif
for link in "$@"; do ip link add "$link" type veth peer name "peer$((++n))"; done
SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console timeout 20 /lib/systemd/systemd-networkd >&2 &
for _ in $(seq 30); do
    sleep 0.1
    [ "$(ip -o addr show scope global | wc -l)" -lt "$#" ] || break
done
sleep 0.3
ip -j addr
kill %1
wait || true
"#;

fn judge(tree: &Tree) -> Result<(), String> {
    let tree = tree.edited(FOLDER, "Type=infiniband", "Type=ether")?;
    let (_root, path) = tree.written();
    let folder = path.join(FOLDER.trim_start_matches('/'));
    let mut arguments = vec![folder.to_str().unwrap()];
    arguments.extend(tree.links().keys().map(String::as_str));
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
        let found = seen.as_array().into_iter().flatten().find(|one| one["ifname"] == name.as_str()).unwrap();
        let addresses: Vec<String> = found["addr_info"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|address| format!("{}/{}", address["local"].as_str().unwrap_or_default(), address["prefixlen"]))
            .collect();
        if found["mtu"] != link.mtu || addresses != link.addresses {
            return Err(format!("{name} has MTU {} and {addresses:?}, meant was {link:?}", found["mtu"]));
        }
    }
    Ok(())
}
