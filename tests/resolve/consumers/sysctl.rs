//! systemd-sysctl applies the settings, as at boot and as udev has it do when a link appears later.

use crate::Consumer;
use crate::programs::in_sandbox;
use crate::tree::Tree;

const FOLDER: &str = "/etc/sysctl.d/";

pub(crate) const CONSUMER: Consumer = Consumer {
    name: "systemd-sysctl",
    needs: &["root", "unshare", "ip", "/lib/systemd/systemd-sysctl"],
    folder: FOLDER,
    judge,
    mutants: &[
        ("a misspelt setting", "arp_ignore", "arp_ignroe"),
        ("a value of the wrong kind", "arp_announce = 2", "arp_announce = best"),
        (
            "dots for the slashes where a link has one",
            "net/ipv4/conf/rail.1/arp_ignore",
            "net.ipv4.conf.rail.1.arp_ignore",
        ),
    ],
};

/// The links come after the boot's run, each with the command of 99-systemd.rules. The neighbour tables' thresholds
/// are not to be seen in a network namespace: that they are read is in the log.
const SCRIPT: &str = r#"
file=$1
shift
export SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console
/lib/systemd/systemd-sysctl "$file"
for link in "$@"; do
    ip link add "$link" type veth peer name "peer$((++n))"
    SYSTEMD_LOG_LEVEL=err /lib/systemd/systemd-sysctl --prefix="/net/ipv4/conf/$link" --prefix="/net/ipv4/neigh/$link" "$file"
    for setting in arp_ignore arp_announce; do
        echo "net/ipv4/conf/$link/$setting = $(cat "/proc/sys/net/ipv4/conf/$link/$setting")"
    done
done
"#;

fn judge(tree: &Tree) -> Result<(), String> {
    let (_root, path) = tree.written();
    for (file, text) in tree.under(FOLDER) {
        let written = path.join(file.trim_start_matches('/'));
        let mut arguments = vec![written.to_str().unwrap()];
        arguments.extend(tree.links().keys().map(String::as_str));
        let (ok, set, log) = in_sandbox(SCRIPT, &arguments)?;
        if !ok {
            return Err(format!("systemd-sysctl: {log}"));
        }
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (key, value) = line.split_once(" = ").ok_or_else(|| format!("no setting: {line}"))?;
            let read = format!("Setting '/proc/sys/{key}' to '{value}'");
            let is_set = if key.contains("/conf/") { set.lines().any(|set| set == line) } else { log.contains(&read) };
            if !is_set {
                return Err(format!("`{line}` is not set: {set}{log}"));
            }
        }
    }
    Ok(())
}
