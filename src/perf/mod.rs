//! RDMA measurements between two ports: WRITE bandwidth and READ latency.
//!
//! Requests come in and results go out as the plain data of [`model`]. Nobody
//! listens: what two queue pairs must know of each other is carried by whoever
//! asked for the measurement. Measuring happens in a child process, since a
//! process can hang in the kernel when a wire is cut.
//!
//! [`units`], [`stats`], [`pattern`] and [`proof`] compute; [`counters`], [`measure`],
//! [`session`] and [`worker`] act.

pub mod counters;
pub mod measure;
pub mod model;
pub mod pattern;
pub mod proof;
pub mod session;
pub mod snapshot;
pub mod stats;
pub mod units;
pub mod worker;
