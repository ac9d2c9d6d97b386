//! A POSIX shell sources each ifcfg file, as initscripts does and as the readers
//! of NetworkManager and wicked imitate; augeas reads it with its own grammar.
//! Both find the same variables, and those are the live objects'.
//!
//! NetworkManager's own reader is not in Debian. Built of its source (1.42.4,
//! `meson setup -Difcfg_rh=true`, with `nmtst_connection_from_file` called on a
//! file), it had of the cases `rhel8-*` what their keyfiles would say.

use std::collections::BTreeMap;

use selvedge::render::layout::IFCFG;
use selvedge::render::shell::Shell;

use selvedge::tag::Tag;

use crate::Consumer;
use crate::programs::run;
use crate::tree::{Link, Tree};

type Variables = BTreeMap<String, String>;

pub(crate) const RED_HAT: Consumer = Consumer {
    name: "a shell and augeas (Red Hat)",
    needs: &["dash", "augtool"],
    folder: "/etc/sysconfig/network-scripts/",
    judge: |tree| judge(tree, RED_HAT.folder, red_hat),
    mutants: &[
        ("a misspelt key", "CONNECTED_MODE=", "CONECTED_MODE="),
        ("another mode", "CONNECTED_MODE=no", "CONNECTED_MODE=yes"),
        ("another MTU", "MTU=2044", "MTU=2045"),
        ("an address without its prefix", "PREFIX=16", "#PREFIX=16"),
        ("another type", "TYPE=InfiniBand", "TYPE=Ethernet"),
        ("a link that waits for a hand", "ONBOOT=yes", "ONBOOT=no"),
        ("a value without its quotes", "NAME='selvedge ib0'", "NAME=selvedge ib0"),
        ("a command", "ONBOOT=yes", "ONBOOT=$(echo yes)"),
        ("a UUID that is none", "UUID=", "UUID=x"),
    ],
};

pub(crate) const SUSE: Consumer = Consumer {
    name: "a shell and augeas (SUSE)",
    needs: &["dash", "augtool"],
    folder: "/etc/sysconfig/network/",
    judge: |tree| judge(tree, SUSE.folder, suse),
    mutants: &[
        ("a misspelt key", "IPOIB_MODE=", "IPOIP_MODE="),
        ("another mode", "IPOIB_MODE=connected", "IPOIB_MODE=datagram"),
        ("another MTU", "MTU=65520", "MTU=2044"),
        ("an address without its prefix", "IPADDR=10.1.0.3/16", "IPADDR=10.1.0.3"),
        ("a wait for the fabric", "LINK_REQUIRED=no", "LINK_REQUIRED=yes"),
        ("a command", "BOOTPROTO=static", "BOOTPROTO=`echo static`"),
    ],
};

fn judge(tree: &Tree, folder: &str, meant: fn(&str, &Link) -> Variables) -> Result<(), String> {
    let (_root, root) = tree.written();
    let root = root.to_str().ok_or("the folder's name is no text")?;
    for (name, link) in tree.links() {
        let path = format!("{folder}ifcfg-{name}");
        let mut sourced = sourced(&format!("{root}{path}"))?;
        let by_augeas = by_augeas(root, &path)?;
        if sourced != by_augeas {
            return Err(format!("a shell has {sourced:#?} of {path}, augeas {by_augeas:#?}"));
        }
        let uuid = sourced.remove("UUID");
        let is_uuid = |uuid: &String| uuid.len() == 36 && uuid.split('-').count() == 5;
        if !uuid.as_ref().is_none_or(is_uuid) {
            return Err(format!("{path}: UUID={uuid:?}"));
        }
        let meant = meant(name, link);
        if sourced != meant {
            return Err(format!("a shell has {sourced:#?} of {path}, meant was {meant:#?}"));
        }
    }
    Ok(())
}

/// All variables that a shell has after sourcing a file and did not have before.
fn sourced(path: &str) -> Result<Variables, String> {
    let script = "set -ae; . \"$1\"; exec env -0";
    let (ok, out, said) = run("env", &["-i", "PATH=/usr/bin:/bin", "dash", "-c", script, "sh", path])?;
    if !ok || !said.is_empty() {
        return Err(format!("a shell: {said}"));
    }
    let variables = out.split('\0').filter_map(|one| one.split_once('='));
    let ours = variables.filter(|(key, _)| !["PATH", "PWD", "OLDPWD", "_", "SHLVL"].contains(key));
    Ok(ours.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

/// The same from augeas, whose values keep their quotes.
fn by_augeas(root: &str, path: &str) -> Result<Variables, String> {
    let transform = format!("Shellvars incl {path}");
    let tree = format!("/files{path}");
    let (ok, out, said) = run("augtool", &["-r", root, "--noautoload", "-t", &transform, "print", &tree])?;
    if !ok || out.trim().is_empty() {
        return Err(format!("augeas cannot read {path}: {said}"));
    }
    let lines = out.lines().filter_map(|line| line.strip_prefix(&tree)?.strip_prefix('/')?.split_once(" = "));
    let variables = lines.filter(|(key, _)| !key.starts_with('#'));
    let bare = |text: &str| text.trim_matches('"').trim_matches('\'').to_owned();
    Ok(variables.map(|(key, value)| (key.to_owned(), bare(value))).collect())
}

fn one(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

fn red_hat(name: &str, link: &Link) -> Variables {
    let mut meant = Variables::from([
        one("DEVICE", name),
        one("NAME", &format!("selvedge {name}")),
        one(
            "TYPE",
            match (link.infiniband, &link.on) {
                (true, _) => "InfiniBand",
                (false, None) => "Ethernet",
                (false, Some(_)) => "Vlan",
            },
        ),
        one("ONBOOT", "yes"),
        one("BOOTPROTO", "none"),
        one("MTU", &link.mtu.to_string()),
        one("DEFROUTE", "no"),
    ]);
    meant.extend(link.mode.as_ref().map(|mode| one("CONNECTED_MODE", if mode == "connected" { "yes" } else { "no" })));
    if let Some((parent, tag)) = &link.on {
        meant.extend(match tag {
            Tag::Pkey(pkey) => [one("PKEY", "yes"), one("PKEY_ID", &pkey.to_string())],
            Tag::Vlan(number) => [one("VLAN", "yes"), one("VLAN_ID", &number.to_string())],
        });
        meant.extend([one("PHYSDEV", parent)]);
    }
    let v6 = link.addresses.iter().find(|address| address.contains(':'));
    match v6 {
        Some(address) => meant.extend([
            one("IPV6INIT", "yes"),
            one("IPV6_AUTOCONF", "no"),
            one("IPV6_DEFROUTE", "no"),
            one("IPV6ADDR", address),
        ]),
        None => meant.extend([one("IPV6INIT", "no"), one("IPV6_DISABLED", "yes")]),
    }
    let v4 = link.addresses.iter().filter(|address| !address.contains(':')).filter_map(|one| one.split_once('/'));
    meant.extend(v4.flat_map(|(address, prefix)| [one("IPADDR", address), one("PREFIX", prefix)]));
    meant
}

fn suse(_: &str, link: &Link) -> Variables {
    let mut meant = Variables::from([
        one("STARTMODE", "hotplug"),
        one("LINK_REQUIRED", "no"),
        one("BOOTPROTO", "static"),
        one("MTU", &link.mtu.to_string()),
    ]);
    if let Some(mode) = &link.mode {
        meant.extend([one("IPOIB", "yes"), one("IPOIB_MODE", mode)]);
    }
    if let Some((parent, tag)) = &link.on {
        meant.extend(match tag {
            Tag::Pkey(pkey) => [one("IPOIB_PKEY", &pkey.to_string()), one("IPOIB_DEVICE", parent)],
            Tag::Vlan(number) => [one("VLAN_ID", &number.to_string()), one("ETHERDEVICE", parent)],
        });
    }
    let suffix = |index| if index == 0 { String::new() } else { format!("_{index}") };
    let addresses = link.addresses.iter().enumerate();
    meant.extend(addresses.map(|(index, address)| one(&format!("IPADDR{}", suffix(index)), address)));
    meant
}

/// What a shell could act on comes out of it as it went in, and nothing was run.
pub(crate) fn hostile_values_are_literal() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let touched = folder.path().join("touched");
    let touch = format!("touch {}", touched.display());
    let hostile = [
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("a; {touch}"),
        format!("\"; {touch}; \""),
        format!("a\" && {touch} #"),
    ];
    let odd =
        ["$HOME", "${x:?}", "\\", "a\\", "%i", "{{x}}", "../x", "*", "~", "#x", "a #b", "!x", "a=b", "\"", "|", "é"];
    let values: Vec<String> = hostile.into_iter().chain(odd.map(str::to_owned)).collect();
    let mut shell = Shell::default();
    for (index, value) in values.iter().enumerate() {
        shell.push(&format!("V{index}"), value, value).map_err(|error| error.to_string())?;
    }
    let text = shell.render(&IFCFG, &values).map_err(|error| error.to_string())?;
    let path = folder.path().join("ifcfg-x");
    std::fs::write(&path, text).map_err(|error| error.to_string())?;
    let sourced = sourced(path.to_str().ok_or("no path")?)?;
    let meant = values.iter().enumerate().map(|(index, value)| (format!("V{index}"), value.clone())).collect();
    match touched.exists() {
        false if sourced == meant => Ok(()),
        ran => Err(format!("{sourced:#?}, a command ran: {ran}")),
    }
}
