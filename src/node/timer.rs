//! The timer that undoes an apply which nobody confirms.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Lets systemd run `selvedge recover` after `wait`, from outside this process and its SSH session.
///
/// # Errors
/// When systemd does not take it; the apply must then not begin.
pub(super) fn arm(selvedge: &str, wait: Duration) -> io::Result<()> {
    // The journal's deadline is in whole seconds: one more makes sure that it has passed.
    let seconds = wait.as_secs() + 1;
    let output = Command::new("systemd-run")
        .arg(format!("--on-active={seconds}s"))
        .args(["--timer-property=AccuracySec=100ms", "--collect", "--quiet"])
        .arg("--description=Undo a selvedge apply that was not confirmed")
        .args(["--", selvedge, "recover"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot run systemd-run to arm the timer: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("systemd-run could not arm the timer ({}): {}", output.status, stderr.trim())))
}
