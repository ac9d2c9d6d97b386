//! Exit codes, one table for every command, and how errors are told.

use std::error::Error;

use crate::apply::Rollback;
use crate::node::SessionError;
use crate::spec::{Faults, Look};

/// In sync, valid, verified; or an apply that succeeded.
pub const OK: u8 = 0;
/// It could not be done.
pub const FAILED: u8 = 1;
/// Done, and there are differences.
pub const DIFFERS: u8 = 2;
/// Done, and the verdict is bad.
pub const BAD: u8 = 3;
/// A rollback itself failed.
pub const TORN: u8 = 4;
/// The command line is wrong.
pub const USAGE: u8 = 64;

/// The code for what a session could not do.
#[must_use]
pub fn of_session(error: &SessionError) -> u8 {
    match error {
        SessionError::Apply(error) if error.is_torn() => TORN,
        SessionError::Torn(_) => TORN,
        _ => FAILED,
    }
}

/// The code for how a rollback went.
#[must_use]
pub fn of_rollback(rollback: &Rollback) -> u8 {
    if matches!(rollback, Rollback::Failed { .. }) { TORN } else { OK }
}

/// What a session could not do, in words: all faults of a spec, or the error with its causes.
#[must_use]
pub fn message(error: &SessionError, look: Look) -> String {
    match error {
        SessionError::Spec(faults) => rendered(faults, look),
        other if is_denied(other) && !nix::unistd::geteuid().is_root() => {
            format!("this needs root, or --sudo for another node: {}", causes(other).join(": "))
        }
        other => causes(other).join(": "),
    }
}

fn is_denied(error: &(dyn Error + 'static)) -> bool {
    let denied = |error: &(dyn Error + 'static)| {
        let error = error.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    let mut next = Some(error);
    while let Some(error) = next {
        if denied(error) {
            return true;
        }
        next = error.source();
    }
    false
}

/// All faults of a spec, as they are shown.
#[must_use]
pub fn rendered(faults: &Faults, look: Look) -> String {
    faults.render(look).trim_end().to_owned()
}

/// An error and its causes, outermost first, without what the outer one says already.
#[must_use]
pub fn causes(error: &dyn Error) -> Vec<String> {
    let mut causes = vec![error.to_string()];
    let mut next = error.source();
    while let Some(error) = next {
        let text = error.to_string();
        if !causes.iter().any(|said| said.contains(&text)) {
            causes.push(text);
        }
        next = error.source();
    }
    causes
}
