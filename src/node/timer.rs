//! The timers that undo an apply which nobody confirms.
//!
//! systemd runs them from outside this process and its SSH session. The first
//! is set before the first change, for an apply that is killed; the second when
//! all changes hold, for one that nobody confirms.

use std::io;
use std::time::Duration;

use crate::program::command;

/// Has `selvedge recover` undo what is open after `wait`.
///
/// # Errors
/// When systemd does not take it; the apply must then not begin.
pub(super) fn arm_for_open(selvedge: &str, wait: Duration) -> io::Result<()> {
    arm(selvedge, wait, &[])
}

/// Has it undo the transaction `number` after `wait` unless that was confirmed, whatever the clock then says.
///
/// # Errors
/// When systemd does not take it.
pub(super) fn arm_for_unconfirmed(selvedge: &str, wait: Duration, number: u64) -> io::Result<()> {
    arm(selvedge, wait, &["--due", &number.to_string()])
}

fn arm(selvedge: &str, wait: Duration, arguments: &[&str]) -> io::Result<()> {
    let output = command("systemd-run")
        .arg(format!("--on-active={}s", wait.as_secs()))
        .args(["--timer-property=AccuracySec=100ms", "--collect", "--quiet"])
        .arg("--description=Undo a selvedge apply that was not confirmed")
        .args(["--", selvedge, "recover"])
        .args(arguments)
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot run systemd-run to arm the timer: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("systemd-run could not arm the timer ({}): {}", output.status, stderr.trim())))
}
