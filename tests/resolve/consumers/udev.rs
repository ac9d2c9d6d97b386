//! udev reads the rules, and says what it would do to an interface.
//!
//! `udevadm test` runs on veth links: the match by type is changed to theirs,
//! and the address to one of six bytes. What stays is the whole rule.

use crate::Consumer;
use crate::programs::in_sandbox;
use crate::tree::Tree;

const FOLDER: &str = "/etc/udev/rules.d/";

pub(crate) const CONSUMER: Consumer = Consumer {
    name: "udev",
    needs: &["root", "unshare", "ip", "udevadm"],
    folder: FOLDER,
    judge,
    mutants: &[
        ("a misspelt key", "RUN+=", "RNU+="),
        ("a match that compares nothing", "NAME=\"", "NAME==\""),
        ("a jump to nowhere", "LABEL=\"selvedge_end\"", "LABEL=\"selvedge_ned\""),
        ("another mode", "mode ", "mode un"),
        ("a rule for P_Key children", "ATTR{name_assign_type}==\"3\", GOTO", "ATTR{name_assign_type}==\"5\", GOTO"),
        ("another interface", "if$env{IFINDEX}", "if$env{IFINDEXES}"),
    ],
};

/// A link that a user named (3), as a P_Key child is, and one that was renamed (4), as a parent can be.
const SCRIPT: &str = r#"
mount --bind "$1" /etc/udev/rules.d
test_link() { udevadm test --action=add "/sys/class/net/$1" 2>&1 | grep -v '^Reading rules' | grep -E '/70-selvedge|^run:.*ipoib|^ID_RENAMING|NAME ' || true; }
ip link add child0 address "$2" type veth peer name peer0
echo "child:"
test_link child0
ip link set child0 name parent0
echo "index: $(cat /sys/class/net/parent0/ifindex)"
echo "parent:"
test_link parent0
"#;

fn judge(tree: &Tree) -> Result<(), String> {
    let tree = tree.edited(FOLDER, "ATTR{type}!=\"32\"", "ATTR{type}!=\"1\"")?;
    for (guid, name, mode) in rules(&tree) {
        // The last three bytes of the GUID, behind three that make a local address.
        let short = |glob: &str| format!("*:{}", glob.split(':').skip(6).collect::<Vec<_>>().join(":"));
        let tree = tree.edited(FOLDER, &guid, &short(&guid))?;
        let (_root, path) = tree.written();
        let folder = path.join(FOLDER.trim_start_matches('/'));
        let address = short(&guid).replace("*:", "02:00:00:");
        let (ok, said, log) = in_sandbox(SCRIPT, &[folder.to_str().unwrap(), &address])?;
        if !ok {
            return Err(format!("the sandbox failed: {log}"));
        }
        judge_links(&said, name.as_deref(), mode.as_deref())?;
    }
    Ok(())
}

fn judge_links(said: &str, name: Option<&str>, mode: Option<&str>) -> Result<(), String> {
    let (child, parent) = said.split_once("index: ").ok_or(said)?;
    let (index, parent) = parent.split_once("\nparent:").ok_or(said)?;
    let about_rules = |line: &&str| line.contains("/70-selvedge");
    if said.lines().any(|line| line.contains("/70-selvedge") && !line.contains(" NAME '") && !line.contains(" RUN '")) {
        return Err(format!("udev complains: {said}"));
    }
    if child.lines().any(|line| about_rules(&line)) {
        return Err(format!("a child is taken for its parent: {child}"));
    }
    let named = |name: &str| parent.lines().any(|line| about_rules(&line) && line.ends_with(&format!("NAME '{name}'")));
    if !name.is_none_or(named) {
        return Err(format!("no name {name:?}: {parent}"));
    }
    let run = |mode: &str| format!("run: '/usr/sbin/ip link set dev if{index} type ipoib mode {mode}'");
    if !mode.is_none_or(|mode| parent.lines().any(|line| line == run(mode))) {
        return Err(format!("no mode {mode:?} for if{index}: {parent}"));
    }
    Ok(())
}

type Rule = (String, Option<String>, Option<String>);

/// Address glob, name and mode of each port, from the links that are meant and the addresses in the file.
fn rules(tree: &Tree) -> Vec<Rule> {
    let text: String = tree.under(FOLDER).map(|(_, text)| text).collect();
    let mut globs: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("ATTR{address}")) {
        let glob = line.split('"').nth(1).unwrap().to_owned();
        if !globs.contains(&glob) {
            globs.push(glob);
        }
    }
    let links = tree.own_links().filter(|(_, link)| link.infiniband);
    let named = text.contains("NAME=");
    globs
        .into_iter()
        .zip(links)
        .map(|(glob, (name, link))| (glob, named.then(|| name.clone()), link.mode.clone()))
        .collect()
}
