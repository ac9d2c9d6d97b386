//! The facts of many hosts, asked by a program in the place of ssh that runs the node's end here, and the specs that
//! `init` makes of them.
#![expect(clippy::unwrap_used, reason = "a test ends where a step of it fails")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Refuses node03, and notes the address that each call is given.
const SSH: &str = "#!/bin/sh
while [ \"$1\" != -- ]; do shift; done
echo \"$2\" >>\"${0%/*}/asked\"
if [ \"$2\" = node03 ]; then echo 'ssh: connect to host node03 port 22: No route to host' >&2; exit 255; fi
exec \"$SELVEDGE\" node
";

/// A spec whose second host has another address for ssh.
const SPEC: &str = "
version = 1
cluster.name = \"test\"
fabrics.f = { transport = \"roce\", speed = \"25G\" }
hosts.node02.ssh = \"192.0.2.2\"
[[nodes]]
hosts = \"node[01-02]\"
";

/// A folder with such an ssh.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.at("ssh"), SSH).unwrap();
        fs::set_permissions(place.at("ssh"), Permissions::from_mode(0o755)).unwrap();
        fs::write(place.at("spec.toml"), SPEC).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.args(arguments).stdin(Stdio::null()).current_dir(self.0.path());
        command.env("PATH", format!("{}:{path}", self.0.path().display()));
        command.env("SELVEDGE", env!("CARGO_BIN_EXE_selvedge")).output().unwrap()
    }

    /// The addresses that were asked, in their order.
    fn asked(&self) -> Vec<String> {
        let text = fs::read_to_string(self.at("asked")).unwrap_or_default();
        let mut asked: Vec<String> = text.lines().map(str::to_owned).collect();
        asked.sort();
        asked
    }
}

#[track_caller]
fn ends(output: &Output, code: i32, says: &str) {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    assert!(out.contains(says) || err.contains(says), "no {says:?} in\n{out}\n{err}");
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn one_host_gives_its_facts_and_several_give_them_by_host() {
    let place = Place::new();
    let here = place.run(&["facts"]);
    ends(&here, 0, "");
    for one in [&["facts", "node01"][..], &["facts", "--node", "node01"]] {
        let output = place.run(one);
        ends(&output, 0, "");
        assert_eq!(json(&output), json(&here));
    }
    let both = place.run(&["facts", "node[01-02]", "node02"]);
    ends(&both, 0, "");
    let both = json(&both);
    assert_eq!(both.as_object().unwrap().keys().collect::<Vec<_>>(), ["node01", "node02"]);
    assert_eq!(both["node02"], json(&here));
    assert_eq!(place.asked(), ["node01", "node01", "node01", "node02"], "each host once");
}

#[test]
fn a_host_that_does_not_answer_hides_none_that_does() {
    let place = Place::new();
    let output = place.run(&["facts", "node[01-40]"]);
    ends(&output, 1, "1 of 40 hosts did not answer");
    let answers = json(&output);
    assert_eq!(answers.as_object().unwrap().len(), 40);
    assert!(answers["node03"]["error"].as_str().unwrap().starts_with("node03 cannot be reached: "), "{answers}");
    assert!(answers["node04"]["kernel"].is_string());
    let text = place.run(&["facts", "node[01-03]", "--format", "text"]);
    ends(&text, 1, "node03: no answer: node03 cannot be reached");
    ends(&text, 1, "node01: kernel ");
    ends(&place.run(&["facts", "node03"]), 1, "node03 cannot be reached");
}

#[test]
fn the_spec_says_how_hosts_are_reached_and_which_there_are() {
    let place = Place::new();
    ends(&place.run(&["facts", "node02", "--spec", "spec.toml"]), 0, "");
    assert_eq!(place.asked(), ["192.0.2.2"]);
    let all = place.run(&["facts", "--spec", "spec.toml"]);
    ends(&all, 0, "");
    assert_eq!(json(&all).as_object().unwrap().len(), 2);
    assert_eq!(place.asked(), ["192.0.2.2", "192.0.2.2", "node01"]);
}

#[test]
fn hosts_are_counted_before_they_are_asked() {
    let place = Place::new();
    ends(&place.run(&["facts", "n[1-900000]", "m[1-900000]"]), 1, "the lists have 1800000 hosts; ask up to 10000");
    ends(&place.run(&["facts", "n[1-"]), 64, "this `[` is never closed");
    assert!(place.asked().is_empty());
}

#[test]
fn a_host_outside_the_spec_is_told_before_it_is_asked() {
    let place = Place::new();
    for command in ["plan", "drift", "apply", "verify", "show", "render"] {
        let near = place.run(&[command, "spec.toml", "--node", "node2"]);
        ends(&near, 1, "the spec has no host `node2`: it has 2 hosts; near: node02");
    }
    assert!(place.asked().is_empty());
}

#[test]
fn init_fills_a_spec_from_this_host_other_hosts_or_facts() {
    let place = Place::new();
    ends(&place.run(&["init", "here.toml", "--from-host"]), 0, "here.toml: written");
    ends(&place.run(&["check", "here.toml"]), 0, "here.toml: valid");
    ends(&place.run(&["init", "--node", "node[01-02]"]), 0, "# From the facts of 2 hosts: node[01-02].");
    let facts = place.run(&["facts", "node[01-02]"]);
    fs::write(place.at("facts.json"), &facts.stdout).unwrap();
    let from_facts = place.run(&["init", "--from-facts", "facts.json"]);
    ends(&from_facts, 0, "");
    assert_eq!(from_facts.stdout, place.run(&["init", "--node", "node01,node02"]).stdout);
    ends(&place.run(&["init", "--from-host", "--from-facts", "facts.json"]), 64, "cannot be used with");
    ends(&place.run(&["init", "--from-facts", "spec.toml"]), 1, "spec.toml: it is not what `selvedge facts` prints");
}

#[test]
fn init_names_who_did_not_answer_and_overwrites_only_when_told() {
    let place = Place::new();
    let partly = place.run(&["init", "new.toml", "--node", "node[01-03]"]);
    ends(&partly, 1, "node03: no answer: node03 cannot be reached");
    let text = fs::read_to_string(place.at("new.toml")).unwrap();
    assert!(text.contains("# CHECK: not in here, since there was no answer: node03.\n"), "{text}");
    ends(&place.run(&["init", "none.toml", "--node", "node03"]), 1, "there are no facts of any host");
    assert!(!place.at("none.toml").exists());
    let asked = place.asked().len();
    ends(&place.run(&["init", "new.toml", "--node", "node01"]), 1, "never overwritten without --force");
    assert_eq!(place.asked().len(), asked, "told before a host is asked");
    assert_eq!(fs::read_to_string(place.at("new.toml")).unwrap(), text);
    ends(&place.run(&["init", "new.toml", "--force", "--node", "node01"]), 0, "new.toml: written");
    let text = fs::read_to_string(place.at("new.toml")).unwrap();
    assert!(text.starts_with("# From the facts of 1 host: node01.\n"), "{text}");
}

/// Real HCAs, as the golden cases have them: the spec is rendered for the host whose facts it was made of.
#[test]
fn what_init_writes_can_be_rendered() {
    let place = Place::new();
    for case in ["rails-netplan", "rails-networkd", "quickstart-node01", "rhel9-keyfile"] {
        let facts = format!("{}/tests/cases/{case}/facts.json", env!("CARGO_MANIFEST_DIR"));
        ends(&place.run(&["init", "spec.toml", "--force", "--from-facts", &facts]), 0, "");
        let host: Value = serde_json::from_str(&fs::read_to_string(&facts).unwrap()).unwrap();
        let host = host["hostname"].as_str().unwrap();
        ends(&place.run(&["render", "spec.toml", "--node", host, "--facts", &facts]), 0, "# ==> /etc/");
    }
}
