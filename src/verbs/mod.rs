//! The foot of the project in InfiniBand's user space: verbs and management datagrams.
//!
//! Everything that needs `unsafe` lives under this module and nowhere else. The
//! types are those of the `ibverbs-sys` crate; the functions are looked up when
//! they are first needed, so that the program starts on a node without rdma-core.
//!
//! In the order of a connection's life: [`context`], [`memory`], [`gid`], [`qp`], [`post`].

pub mod context;
pub mod error;
pub mod gid;
mod library;
pub mod mad;
pub mod memory;
pub mod post;
pub mod qp;
pub mod umad;

pub use error::VerbsError;
