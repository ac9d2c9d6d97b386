//! One node: what can be done on it, and how a controller asks for it.
//!
//! `session` does it on the machine this runs on. `protocol` is the frames of
//! `selvedge node`, `serve` its node's end on standard input and output, and
//! `remote` the controller's end over SSH. Local commands call the session
//! directly, so both ways do the same.

mod earlier;
mod error;
mod image;
mod lost;
pub mod protocol;
pub mod remote;
pub mod report;
pub mod serve;
pub mod session;
mod signals;
#[cfg(test)]
mod tests;
mod timer;

pub use report::{ChangeReport, PlanReport};
pub use session::{Session, SessionError, SpecText};
