//! The real machine against a real kernel, with iproute2 as the independent judge.
//!
//! Runs as root on the lab's kernel, never on the host that builds:
//! `SELVEDGE_LAB=1` with `tests/lab/lab kernel-run BINARY` for what needs a
//! kernel only, `SELVEDGE_LAB=node` on one of the lab's nodes for what needs
//! systemd. A test whose place this is must run or fails; all others are left
//! out by name.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail by panicking")]

mod dummy;
mod files;
mod host;
mod ipoib;
mod node;
mod oracle;
mod syscalls;
mod walk;

use libtest_mimic::{Arguments, Failed, Trial};

/// Set for the child process whose system calls are counted.
const OBSERVE_ONLY: &str = "SELVEDGE_TEST_OBSERVE_ONLY";

type Test = (&'static str, fn());

fn main() {
    if let Some(port) = std::env::var_os(OBSERVE_ONLY) {
        return syscalls::observe_only(port.to_str().unwrap());
    }
    let mut arguments = Arguments::from_args();
    // The InfiniBand tests share one simulated HCA.
    arguments.test_threads = Some(1);
    let place = std::env::var("SELVEDGE_LAB").unwrap_or_default();
    let on_kernel = [dummy::TESTS, files::TESTS, host::TESTS, ipoib::TESTS, syscalls::TESTS, walk::TESTS].concat();
    let trials = [(on_kernel, "1"), (node::TESTS.to_vec(), "node")]
        .map(|(tests, needs)| tests.into_iter().map(|test| trial(test, needs, place == needs)).collect::<Vec<_>>());
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial((name, test): Test, needs: &str, is_here: bool) -> Trial {
    // A thread of its own: a namespace that a test enters ends with it.
    let run = move || {
        let ended = std::thread::spawn(test).join();
        ended.map_err(|_| Failed::from("see the panic above"))
    };
    let trial = Trial::test(name, run);
    if is_here { trial } else { trial.with_kind(format!("needs SELVEDGE_LAB={needs}")).with_ignored_flag(true) }
}
