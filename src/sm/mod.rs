//! The subnet manager: its configuration, and what the fabric says about it.
//!
//! In: what the spec asks of this node, and answers of the fabric's management
//! agents. Out: files for the distribution's own opensm, and a verdict on who
//! manages the fabric. This part never starts or stops anything, and never
//! sets an attribute on the fabric: it only asks.

mod condition;
pub mod config;
pub mod document;
pub mod election;
pub mod finding;
pub mod mad;
pub mod mads;
pub mod report;
pub mod seen;
pub mod status;
pub mod umad;
pub mod verdict;
pub mod walk;

pub use condition::{ask, require};

#[cfg(test)]
mod simulated;
