//! Is each node as the spec says, and does RDMA run between them as fast as it should?
//!
//! `checks` and `judge` compute verdicts from what was seen; `ping` and
//! `cluster` go and see. Nothing here changes a node.

pub mod checks;
pub mod cluster;
pub mod judge;
mod managers;
pub mod memlock;
pub mod model;
pub mod pairs;
pub mod ping;
pub mod ports;
pub mod rate;
pub mod text;

pub use model::{Check, Memlock, NodeChecks, PairReport, Ping, PingResult, Report, Verdict};
