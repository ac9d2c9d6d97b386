//! What an apply promises when everything goes wrong, held on whole nodes: all
//! of it holds afterwards, or none of it.
//!
//! Nothing in the product knows of these tests: strace kills it, refuses its
//! system calls or slows it, the lab cuts the power, signals are sent. Where a
//! node ends up is judged by its files, `ip`, `lsmod` and systemd.
#![expect(clippy::panic, reason = "a test fails by panicking")]

mod branch;
mod confirm;
mod cut;
mod disk;
mod hands;
mod inject;
#[path = "../lab_support/mod.rs"]
mod lab_support;
mod signals;

use std::process::ExitCode;

use lab_support::{fresh, here, lab, ok, run, spec, ssh, trial, up};

/// The node that most of it happens on.
const NODE: &str = "node01";

/// Only the last trial needs the second node.
fn main() -> ExitCode {
    run(vec![
        trial("a_killed_apply_ends_as_before_or_as_after", inject::kills),
        trial("a_refused_system_call_is_reported_and_undone", inject::errors),
        trial("a_rollback_that_fails_says_so_and_can_be_repeated", inject::a_torn_rollback),
        trial("a_full_or_read_only_disk_leaves_nothing_half_done", disk::full_and_read_only),
        trial("a_damaged_journal_says_what_to_do", disk::damaged_journals),
        trial("signals_stop_an_apply_whole_and_a_lost_terminal_does_not", signals::on_the_node),
        trial("a_lost_controller_does_not_stop_an_apply", signals::lost_controller),
        trial("rollback_brings_a_hand_made_state_back", confirm::rollback_by_hand),
        trial("what_somebody_changed_after_an_apply_survives_its_rollback", hands::edited_after),
        trial("an_unconfirmed_apply_is_undone_by_the_node", confirm::timer),
        trial("a_reboot_before_the_confirmation_undoes_and_after_it_does_not", confirm::reboots),
        trial("a_power_cut_is_undone_before_the_network_comes_up", cut::power),
        trial("the_branch_one_sits_on_is_not_cut", branch::over_ib0),
    ])
}

/// A node as after its first boot, with selvedge, the specs and the shell's functions there.
fn prepared(node: &str) {
    up(&[node]);
    fresh(&[node]);
    lab(&["put", node, &here("tests/lab_safety/node.sh"), "/root/node.sh"]);
    lab(&["put", node, &here("examples/lab.toml"), "/root/lab.toml"]);
    lab(&["put", node, &light(), "/root/light.toml"]);
    ok(node, "sync");
}

/// The lab's spec with its subnet managers elsewhere: files, reloads and a link, without the seconds of opensm.
fn light() -> String {
    spec(
        "light",
        &[
            ("primary = \"node01\"\nstandby = [\"node02\"]", "primary = \"node02\"\nstandby = [\"node03\"]"),
            ("node[01-02]", "node[01-03]"),
        ],
    )
}

/// Runs a script with the functions of node.sh; what it prints.
#[track_caller]
fn sh(script: &str) -> String {
    ok(NODE, &format!(". /root/node.sh\n{script}"))
}

#[track_caller]
fn snapshot() -> String {
    sh("snapshot")
}

/// Fails with the lines that differ.
#[track_caller]
fn assert_same(what: &str, expected: &str, found: &str) {
    if expected == found {
        return;
    }
    let only_in = |a: &str, b: &str, sign: char| {
        let missing = a.lines().filter(|line| !b.lines().any(|other| other == *line));
        missing.map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    panic!("{what}:\n{}{}", only_in(expected, found, '-'), only_in(found, expected, '+'));
}

/// A command on the node with the exit code and the text that it must have.
#[track_caller]
fn expect(script: &str, code: i32, text: &str) {
    ssh(NODE, &format!(". /root/node.sh\n{script}")).exits(code).says(text);
}
