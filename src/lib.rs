//! selvedge: declarative network configuration for RDMA clusters.

pub mod addressing;
pub mod apply;
pub mod cli;
pub mod columns;
pub mod compile;
pub mod count;
pub mod exit;
pub mod facts;
pub mod hostlist;
pub mod hosts;
pub mod init;
pub mod intent;
pub mod machine;
pub mod name;
pub mod node;
pub mod perf;
pub mod plan;
pub mod program;
pub mod rdma;
pub mod render;
pub mod resolve;
pub mod sm;
pub mod spec;
pub mod state;
pub mod verbs;
pub mod verify;
