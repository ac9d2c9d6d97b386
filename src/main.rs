//! The `selvedge` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(selvedge::cli::main())
}
