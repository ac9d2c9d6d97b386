//! The measuring process: its own side, and that of the one who starts it.
//!
//! Requests and replies are lines of JSON on standard input and output, so that
//! a worker on another host is no different from one here.

pub mod parent;
pub mod serve;

pub use parent::{Worker, WorkerError};
pub use serve::serve;

/// The hidden subcommand of our own binary that runs [`serve()`].
pub const SUBCOMMAND: &str = "perf-worker";
