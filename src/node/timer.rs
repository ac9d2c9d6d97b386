//! The timers that undo an apply which nobody confirms.
//!
//! systemd runs them from outside this process and its SSH session. The first
//! is set before the first change, for an apply that is killed; the second when
//! all changes hold, for one that nobody confirms. Both have names by which
//! `systemctl list-timers 'selvedge-*'` shows them, and are stopped when they
//! are not needed any more.

use std::io;
use std::time::Duration;

use crate::program::command;

/// Has `selvedge recover` undo what is open after `wait`.
///
/// # Errors
/// When systemd does not take it; the apply must then not begin.
pub(super) fn arm_for_open(selvedge: &str, wait: Duration, now: u64) -> io::Result<()> {
    arm(selvedge, wait, &format!("selvedge-undo-open-{now}-{}", std::process::id()), &[])
}

/// Has it undo the transaction `number` after `wait` unless that was confirmed, whatever the clock then says.
///
/// Its `deadline` in seconds since the epoch goes with the number, which begins anew when the journals are removed.
///
/// # Errors
/// When systemd does not take it.
pub(super) fn arm_for_unconfirmed(selvedge: &str, wait: Duration, number: u64, deadline: u64) -> io::Result<()> {
    let arguments = ["--due", &number.to_string(), "--deadline", &deadline.to_string()];
    arm(selvedge, wait, &format!("selvedge-undo-{number:08}-{deadline}"), &arguments)
}

/// Which timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Armed {
    /// Those for an apply that is killed.
    ForOpen,
    /// All.
    Any,
}

impl Armed {
    fn pattern(self) -> &'static str {
        match self {
            Self::ForOpen => "selvedge-undo-open-*.timer",
            Self::Any => "selvedge-undo-*.timer",
        }
    }
}

/// Stops timers. Only one apply can be under way or wait at a time, so those that are there are of the last.
///
/// One that could not be stopped does no harm: it finds nothing that is due.
pub(super) fn stop(armed: Armed) {
    let _ = command("systemctl").args(["stop", "--", armed.pattern()]).output();
}

fn arm(selvedge: &str, wait: Duration, unit: &str, arguments: &[&str]) -> io::Result<()> {
    let output = command("systemd-run")
        .arg(format!("--unit={unit}"))
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
