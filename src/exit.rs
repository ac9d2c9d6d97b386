//! Exit codes, one table for every command, and how errors are told.

use std::error::Error;

use crate::apply::Rollback;
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

/// The code for how a rollback went.
#[must_use]
pub fn of_rollback(rollback: &Rollback) -> u8 {
    if matches!(rollback, Rollback::Failed { .. }) { TORN } else { OK }
}

/// Whether the kernel refused for want of rights.
#[must_use]
pub fn is_denied(error: &(dyn Error + 'static)) -> bool {
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
