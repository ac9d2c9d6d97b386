//! Runs a program with a list of arguments, never through a shell.
//!
//! A program and its arguments come in; its standard output goes out, or how it
//! ended and what it wrote to standard error.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::machine::MachineError;

/// Runs `program` to its end.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<String, MachineError> {
    let shown = || std::iter::once(program).chain(arguments.iter().copied()).collect::<Vec<_>>().join(" ");
    let failed = |status: String, stderr: String| MachineError::Program { program: shown(), status, stderr };
    let mut command = Command::new(program);
    // Messages end up in our own: one language for all of them.
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
    // A Ctrl-C at the terminal is for us to act on, not for a modprobe that is half done.
    command.process_group(0);
    let output = command.output().map_err(|error| failed("not run".to_owned(), error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let stderr = if stderr.is_empty() { "it wrote no message".to_owned() } else { stderr };
    Err(failed(output.status.to_string(), stderr))
}
