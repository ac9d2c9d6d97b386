//! selvedge: declarative network configuration for RDMA clusters.

pub mod hostlist;
pub mod name;
pub mod perf;
pub mod rdma;
pub mod spec;
pub mod verbs;
