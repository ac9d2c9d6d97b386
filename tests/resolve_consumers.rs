//! The files of the golden cases before the programs that read them: netplan,
//! networkd, NetworkManager, a shell and augeas, udev, modprobe and systemd judge them, and say
//! what they made of them. A misspelt key or a wrong value must be caught, and tests show that it
//! is.
//!
//! Where a program is missing its tests are left out by name; with
//! SELVEDGE_LAB=1 they fail.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "resolve/case.rs"]
mod case;
#[path = "resolve/consumers/dropin.rs"]
mod dropin;
#[path = "resolve/consumers/ifcfg.rs"]
mod ifcfg;
#[path = "resolve/consumers/keyfile.rs"]
mod keyfile;
#[path = "resolve/consumers/modprobe.rs"]
mod modprobe;
#[path = "resolve/consumers/netplan.rs"]
mod netplan;
#[path = "resolve/consumers/networkd.rs"]
mod networkd;
#[path = "resolve/consumers/programs.rs"]
mod programs;
#[path = "resolve/consumers/sysctl.rs"]
mod sysctl;
#[path = "resolve/consumers/systemd.rs"]
mod systemd;
#[path = "resolve/consumers/tree.rs"]
mod tree;
#[path = "resolve/consumers/udev.rs"]
mod udev;

use std::fs;
use std::path::PathBuf;

use libtest_mimic::{Arguments, Trial};
use tree::Tree;

/// A program that reads files of ours.
struct Consumer {
    name: &'static str,
    /// What has to be there to ask it.
    needs: &'static [&'static str],
    /// The folder whose files it reads.
    folder: &'static str,
    /// What it makes of a case's files.
    judge: fn(&Tree) -> Result<(), String>,
    /// Edits of a file, each of which must be caught: what, text, other text.
    mutants: &'static [(&'static str, &'static str, &'static str)],
}

const CONSUMERS: [&Consumer; 10] = [
    &netplan::CONSUMER,
    &networkd::CONSUMER,
    &keyfile::CONSUMER,
    &ifcfg::RED_HAT,
    &ifcfg::SUSE,
    &udev::CONSUMER,
    &modprobe::CONSUMER,
    &sysctl::CONSUMER,
    &systemd::CONSUMER,
    &dropin::CONSUMER,
];

fn main() {
    let must = std::env::var_os("SELVEDGE_LAB").is_some_and(|value| value == "1");
    let mut trials = Vec::new();
    for consumer in CONSUMERS {
        let missing = programs::missing(consumer.needs);
        if !missing.is_empty() && !must {
            eprintln!(
                "{}: left out, for want of {}: its tests are marked as ignored",
                consumer.name,
                missing.join(", ")
            );
        }
        for trial in trials_of(consumer) {
            trials.push(match missing.as_slice() {
                [] => trial,
                _ if !must => trial.with_ignored_flag(true),
                missing => {
                    let why = format!("SELVEDGE_LAB=1, and there is no {}", missing.join(", "));
                    Trial::test(trial.name().to_owned(), move || Err(why.into()))
                }
            });
        }
    }
    if programs::missing(&["dash"]).is_empty() {
        let name = "a shell takes hostile values literally".to_owned();
        trials.push(Trial::test(name, || Ok(ifcfg::hostile_values_are_literal()?)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn trials_of(consumer: &'static Consumer) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut trees = Vec::new();
    for case in cases() {
        let Some(tree) = Tree::of_case(&case).filter(|tree| tree.has(consumer.folder)) else { continue };
        let name = format!("{} reads {}", consumer.name, case.file_name().unwrap().to_string_lossy());
        trees.push(tree.clone());
        trials.push(Trial::test(name, move || Ok((consumer.judge)(&tree)?)));
    }
    for &(what, text, other) in consumer.mutants {
        // The first case that has the text.
        let edited = trees.iter().map(|tree| tree.edited(consumer.folder, text, other)).find(Result::is_ok);
        trials.push(Trial::test(format!("{} catches {what}", consumer.name), move || {
            let tree = edited.ok_or(format!("no case has a file with `{text}`"))??;
            match (consumer.judge)(&tree) {
                Ok(()) => Err(format!("`{other}` for `{text}` went unseen").into()),
                Err(_) => Ok(()),
            }
        }));
    }
    trials
}

fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir("tests/cases").unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}
