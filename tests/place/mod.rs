//! Where a test that needs the lab's kernel or a node of it runs.
//!
//! One variable rules: with `SELVEDGE_LAB=1` all that the lab can run is run
//! and fails when it can't; without it such tests are left out by name. A
//! harness on the host starts its own binary again inside the lab, where
//! `SELVEDGE_LAB_GUEST` says so.
#![expect(clippy::panic, reason = "a test's helpers fail by panicking")]

use std::process::{Command, ExitCode};

/// Whether this process is inside a guest of the lab.
pub(crate) fn is_guest() -> bool {
    std::env::var_os("SELVEDGE_LAB_GUEST").is_some()
}

/// Whether the lab's tests must run.
pub(crate) fn must_run() -> bool {
    std::env::var_os("SELVEDGE_LAB").is_some_and(|value| value == "1")
}

/// `tests/lab/lab` with these arguments; true when it succeeded.
pub(crate) fn lab(arguments: &[&str]) -> bool {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lab/lab");
    let status = Command::new(path).args(arguments).status();
    status.unwrap_or_else(|error| panic!("cannot run {path}: {error}")).success()
}

/// Runs this test binary with these arguments on the lab's kernel.
pub(crate) fn on_kernel(arguments: &[&str]) -> bool {
    let me = me();
    lab(&[&["kernel-run", "--timeout", "900", &me], arguments].concat())
}

/// The path of this test binary.
pub(crate) fn me() -> String {
    let me = std::env::current_exe().unwrap_or_else(|error| panic!("this binary has no path: {error}"));
    me.display().to_string()
}

/// The exit code of a test harness.
pub(crate) fn code(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::from(101) }
}
