//! The real machine against a real kernel, with iproute2 as the independent judge.
//!
//! Runs as root in the lab, never on the host that builds: with
//! `SELVEDGE_LAB=1` this binary starts itself again on the lab's kernel for
//! what needs a kernel only, then on a node of its own for what needs systemd.
//! Each guest runs what it is the place for; without the variable all are left
//! out by name.
#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

mod dummy;
mod files;
mod host;
mod ipoib;
mod node;
mod oracle;
#[path = "../place/mod.rs"]
mod place;
mod syscalls;
mod walk;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// Set for the child process whose system calls are counted.
const OBSERVE_ONLY: &str = "SELVEDGE_TEST_OBSERVE_ONLY";

type Test = (&'static str, fn());

/// Apart from the nodes that other tests and people use.
const NODE: &str = "node09";

fn main() -> ExitCode {
    if let Some(port) = std::env::var_os(OBSERVE_ONLY) {
        syscalls::observe_only(port.to_str().unwrap());
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    if place::must_run() && !place::is_guest() && !arguments.list {
        return in_the_lab();
    }
    // The InfiniBand tests share one simulated HCA.
    arguments.test_threads = Some(1);
    let place = std::env::var("SELVEDGE_LAB").unwrap_or_default();
    let on_kernel = [dummy::TESTS, files::TESTS, host::TESTS, ipoib::TESTS, syscalls::TESTS, walk::TESTS].concat();
    let trials = [(on_kernel, "1"), (node::TESTS.to_vec(), "node")]
        .map(|(tests, needs)| tests.into_iter().map(|test| trial(test, needs, place == needs)).collect::<Vec<_>>());
    // A guest is silent about what runs in the other one.
    let trials = trials.into_iter().flatten().filter(|trial| !place::is_guest() || !trial.has_ignored_flag()).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Both places one after the other, each with the arguments that were given here.
fn in_the_lab() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let on_kernel = place::on_kernel(&arguments);
    let on_node = place::lab(&["up", NODE])
        && place::lab(&["put", NODE, &place::me(), "/root/kernel_machine"])
        && on_node(&arguments);
    let ended = place::lab(&["down", NODE]);
    place::code(on_kernel && on_node && ended)
}

fn on_node(arguments: &[&str]) -> bool {
    let quoted = arguments.iter().map(|argument| format!(" '{argument}'")).collect::<String>();
    let program = "SELVEDGE_LAB=node SELVEDGE_LAB_GUEST=1 /root/kernel_machine";
    place::lab(&["ssh", NODE, &format!("{program}{quoted} </dev/null")])
}

fn trial((name, test): Test, needs: &str, is_here: bool) -> Trial {
    // A thread of its own: a namespace that a test enters ends with it.
    let run = move || {
        let ended = std::thread::spawn(test).join();
        ended.map_err(|_| Failed::from("see the panic above"))
    };
    let trial = Trial::test(name, run);
    let kind = if needs == "node" { "on a node of the lab" } else { "on the lab's kernel" };
    if is_here { trial } else { trial.with_kind(kind).with_ignored_flag(true) }
}
