//! An apply as a transaction: all of it holds afterwards, or none of it.
//!
//! The engine asks a [`Machine`](crate::machine::Machine) and writes a
//! [`Log`](log::Log); it knows neither netlink nor files. `journal` says what
//! the records are and what a set of them means, `store` keeps them on disk.

pub mod engine;
mod error;
pub mod journal;
pub mod log;
pub mod recover;
pub mod rollback;
pub mod store;

#[cfg(test)]
mod tests;

pub use engine::{Applied, Confirm, Options, Watch, apply};
pub use error::{ApplyError, Cause, Rollback};
