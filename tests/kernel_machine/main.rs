//! The real machine against a real kernel, with iproute2 as the independent judge.
//!
//! Runs as root on the lab's kernel (`tests/lab/lab kernel-run BINARY`), never
//! on the host that builds. Without `SELVEDGE_LAB=1` each test is left out by
//! name; with it each must run or fails.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail by panicking")]

mod dummy;
mod files;
mod host;
mod ipoib;
mod oracle;
mod syscalls;

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
    let in_lab = std::env::var_os("SELVEDGE_LAB").is_some_and(|value| value == "1");
    let tests = [dummy::TESTS, files::TESTS, host::TESTS, ipoib::TESTS, syscalls::TESTS].concat();
    let trials = tests.into_iter().map(|test| trial(test, in_lab)).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial((name, test): Test, in_lab: bool) -> Trial {
    // A thread of its own: a namespace that a test enters ends with it.
    let run = move || {
        let ended = std::thread::spawn(test).join();
        ended.map_err(|_| Failed::from("see the panic above"))
    };
    let trial = Trial::test(name, run);
    if in_lab { trial } else { trial.with_kind("left out: needs SELVEDGE_LAB=1").with_ignored_flag(true) }
}
