//! selvedge: declarative network configuration for RDMA clusters.

pub mod apply;
pub mod facts;
pub mod hostlist;
pub mod machine;
pub mod name;
pub mod plan;
pub mod rdma;
pub mod sm;
pub mod spec;
pub mod state;
pub mod verbs;
