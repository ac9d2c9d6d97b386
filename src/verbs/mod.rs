//! The foot of the project in InfiniBand's user space: management datagrams.
//!
//! Everything that needs `unsafe` lives under this module and nowhere else.

pub mod mad;
pub mod umad;
