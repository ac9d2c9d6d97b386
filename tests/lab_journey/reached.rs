//! How nodes are reached, and what is said when they are not.

use std::fs;

use crate::lab_support::{Output, binary, ok, program, ssh_config};
use crate::{Claim, applied, lab_spec, on};

pub(crate) const CLAIMS: &[Claim] = &[
    ("sudo_on_the_node", sudo),
    ("without_root_it_says_so", without_root),
    ("no_selvedge_on_the_node", no_selvedge),
    ("no_ssh_on_the_node", no_ssh),
    ("wrong_host_key", wrong_host_key),
    ("no_libibverbs_on_the_node", no_libibverbs),
];

/// Runs a command for node01 with the lab's ssh configuration changed.
fn with_ssh(arguments: &[&str], from: &str, to: &str) -> Output {
    let config = fs::read_to_string(ssh_config()).unwrap();
    assert!(config.contains(from), "{config}");
    let changed = format!("{}/ssh_config", env!("CARGO_TARGET_TMPDIR"));
    let lines = config.lines().map(|line| if line.trim().starts_with(from) { to } else { line });
    fs::write(&changed, lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    let (binary, spec) = (binary(), lab_spec());
    let command = [binary.to_str().unwrap(), arguments[0], &spec, "--node", "node01", "--ssh-config", &changed];
    program(&[&command, &arguments[1..]].concat(), 60)
}

#[track_caller]
fn first_line(output: Output, says: &str) {
    let output = output.exits(1);
    let first = output.stderr.lines().next().unwrap_or_default();
    assert!(first.contains(says) && output.stdout.is_empty(), "{says:?} is not in the first line:\n{}", output.stderr);
}

fn sudo() {
    applied();
    with_ssh(&["drift", "--sudo"], "User root", "\tUser ops").exits(0).says("in sync");
    ok("node01", "ip link set ib0 mtu 9000");
    with_ssh(&["apply", "--sudo"], "User root", "\tUser ops").exits(0).says("1 change made");
}

fn without_root() {
    applied();
    first_line(with_ssh(&["drift"], "User root", "\tUser ops"), "this needs root, or --sudo");
}

fn no_selvedge() {
    applied();
    ok("node01", "mv /usr/local/bin/selvedge /root/selvedge");
    let [plain, sudo, elsewhere] = [
        with_ssh(&["plan"], "User root", "\tUser root"),
        with_ssh(&["plan", "--sudo"], "User root", "\tUser ops"),
        with_ssh(&["plan", "--program", "/opt/selvedge"], "User root", "\tUser root"),
    ];
    let found = with_ssh(&["facts"], "User root", "\tUser root");
    ok("node01", "mv /root/selvedge /usr/local/bin/selvedge");
    for output in [plain, sudo, elsewhere] {
        first_line(output, "node01 cannot be reached: there is no selvedge in its PATH; install it there");
    }
    assert_ne!(found.code, 0);
}

fn no_ssh() {
    applied();
    first_line(with_ssh(&["plan"], "Port ", "\tPort 1"), "nothing listens on its SSH port");
}

fn wrong_host_key() {
    applied();
    let known = format!("{}/known_hosts", env!("CARGO_TARGET_TMPDIR"));
    let key = "selvedge-lab ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n";
    fs::write(&known, key).unwrap();
    let line = format!("\tUserKnownHostsFile {known}");
    first_line(with_ssh(&["plan"], "UserKnownHostsFile", &line), "its host key is not the one that is known");
}

/// The program that installs the network must do without what is installed later.
fn no_libibverbs() {
    applied();
    let library = "/usr/lib/x86_64-linux-gnu/libibverbs.so.1";
    ok("node01", &format!("mv {library} /root/; ip link set ib0 mtu 9000"));
    let facts = ok("node01", "selvedge facts");
    let plan = on("plan", &lab_spec(), "node01");
    let apply = on("apply", &lab_spec(), "node01");
    let drift = on("drift", &lab_spec(), "node01");
    let checked = crate::selvedge(&["verify", &lab_spec(), "--only", "node"]);
    let perf = crate::selvedge(&["verify", &lab_spec(), "--only", "perf"]);
    ok("node01", &format!("mv /root/libibverbs.so.1 {library}"));
    assert!(facts.contains("mlx5_0"));
    plan.exits(2);
    apply.exits(0);
    drift.exits(0);
    checked.exits(0);
    perf.exits(3).says("node01").says("libibverbs1");
}
