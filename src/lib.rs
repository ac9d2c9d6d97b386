//! selvedge: declarative network configuration for RDMA clusters.

pub mod hostlist;
pub mod name;
pub mod rdma;
pub mod sm;
pub mod spec;
