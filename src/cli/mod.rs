//! The command line: what can be given, and which part does it.
//!
//! Reports go to standard output, everything else to standard error.

mod apply;
mod args;
mod facts;
mod host;
mod hosts;
mod init;
mod inspect;
mod man;
mod manager;
mod out;
mod shown;
mod text;
mod verify;

use std::io::{IsTerminal, Write};

use clap::Parser;

use self::args::{Arguments, Command};
use crate::exit;
use crate::spec::Look;

/// What stopped a command: what to say, and the exit code.
pub(crate) struct Stop {
    message: String,
    code: u8,
}

impl Stop {
    fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: exit::FAILED }
    }

    /// The same, with what to do.
    fn with(self, next: &str) -> Self {
        Self { message: format!("{}; {next}", self.message), ..self }
    }

    /// The same, for a report that could not be written of something that is done.
    fn after(self, done: &str) -> Self {
        Self { message: format!("{done}; only the report of it could not be written: {}", self.message), ..self }
    }
}

impl From<crate::node::SessionError> for Stop {
    fn from(error: crate::node::SessionError) -> Self {
        Self { message: error.message(look()), code: error.code() }
    }
}

impl From<crate::node::remote::CallError> for Stop {
    fn from(error: crate::node::remote::CallError) -> Self {
        let code = match error {
            crate::node::remote::CallError::Refused { code, .. } => code,
            _ => exit::FAILED,
        };
        Self { message: exit::causes(&error).join(": "), code }
    }
}

/// What a command ends with: its exit code, or what stopped it.
pub(crate) type Outcome = Result<u8, Stop>;

/// Runs the command line and gives the exit code.
#[must_use]
pub fn main() -> u8 {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are asked for; anything else is a fault of the command line.
            if error.use_stderr() {
                let _ = error.print();
                return exit::USAGE;
            }
            let (help, is_terminal) = (error.render(), std::io::stdout().is_terminal());
            let help = if is_terminal { help.ansi().to_string() } else { help.to_string() };
            return ended(write_out(help.as_bytes()).map(|()| exit::OK));
        }
    };
    ended(run(arguments.command))
}

fn ended(outcome: Outcome) -> u8 {
    match outcome {
        Ok(code) => code,
        Err(stop) => {
            tell(&stop.message);
            stop.code
        }
    }
}

/// A line on standard error. Nobody may be there to read it; the exit code says the same.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Check(args) => inspect::check(&args),
        Command::Facts(args) => facts::facts(&args),
        Command::Hosts(args) => hosts::hosts(&args),
        Command::Show(args) => inspect::show(&args),
        Command::Render(args) => inspect::render(&args),
        Command::Schema(args) => inspect::schema(&args),
        Command::Completions(args) => inspect::completions(&args),
        Command::Man(args) => man::man(&args),
        Command::Init(args) => init::init(&args),
        Command::Plan(args) => apply::plan(&args),
        Command::Drift(args) => apply::drift(&args),
        Command::Apply(args) => apply::apply(&args),
        Command::Confirm(args) => apply::confirm(&args),
        Command::Rollback(args) => apply::roll_back(&args),
        Command::Recover(args) => apply::recover(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Sm(args) => manager::run(&args),
        Command::Node => host::node(),
        Command::PerfWorker => host::perf_worker(),
    }
}

/// How faults are shown on standard error.
pub(crate) fn look() -> Look {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colour { Look::Terminal { columns: 100 } } else { Look::Plain }
}

/// Prints a report: text, or JSON alone.
pub(crate) fn print<T: serde::Serialize>(
    format: args::Format,
    report: &T,
    text: impl FnOnce() -> String,
) -> Result<(), Stop> {
    let out = match format {
        args::Format::Text => text(),
        args::Format::Json => serde_json::to_string_pretty(report)
            .map_err(|error| Stop::failed(format!("cannot write the report as JSON: {error}")))?,
    };
    let newline = if out.ends_with('\n') { "" } else { "\n" };
    write_out(format!("{out}{newline}").as_bytes())
}

/// Writes to standard output, and sees that all of it is taken. What the standard library's macros do instead is panic.
pub(crate) fn write_out(bytes: &[u8]) -> Result<(), Stop> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // A reader that has seen enough, such as `head`, is no fault.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Stop::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
