//! Runs a program with a list of arguments, never through a shell.
//!
//! A program and its arguments come in; its standard output goes out, or how it
//! ended and what it wrote to standard error. One that does not end is killed:
//! an apply that hangs is a node nobody can change any more.

use std::process::Output;
use std::time::Duration;

use tokio::process::Command;

use crate::machine::MachineError;

/// How long a program may take. A driver that initializes a slow card, or a systemd that reads thousands of units,
/// takes tens of seconds.
const DEADLINE: Duration = Duration::from_secs(180);

/// Runs `program` to its end.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<String, MachineError> {
    run_within(DEADLINE, program, arguments)
}

fn run_within(deadline: Duration, program: &str, arguments: &[&str]) -> Result<String, MachineError> {
    let shown = || std::iter::once(program).chain(arguments.iter().copied()).collect::<Vec<_>>().join(" ");
    let failed = |status: String, stderr: String| MachineError::Program { program: shown(), status, stderr };
    let output = output(deadline, program, arguments).map_err(|error| match error.kind() {
        std::io::ErrorKind::TimedOut => {
            failed(format!("killed after {} s", deadline.as_secs()), "it did not end".to_owned())
        }
        _ => failed("not run".to_owned(), error.to_string()),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let stderr = if stderr.is_empty() { "it wrote no message".to_owned() } else { stderr };
    Err(failed(output.status.to_string(), stderr))
}

fn output(deadline: Duration, program: &str, arguments: &[&str]) -> std::io::Result<Output> {
    let mut command = Command::from(crate::program::command(program));
    command.args(arguments).kill_on_drop(true);
    // A Ctrl-C at the terminal is for us to act on, not for a modprobe that is half done.
    command.process_group(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { tokio::time::timeout(deadline, command.output()).await? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_how_it_ended() {
        assert_eq!(run("echo", &["a b"]).unwrap(), "a b\n");
        let said = |result: Result<String, MachineError>| result.unwrap_err().to_string();
        assert!(said(run("ls", &["/no/such/place"])).contains("No such file"));
        assert!(said(run("/no/such/program", &[])).contains("not run"));
        let hung = said(run_within(Duration::from_millis(50), "sleep", &["60"]));
        assert!(hung.contains("killed after 0 s") && hung.contains("sleep 60"), "{hung}");
    }
}
