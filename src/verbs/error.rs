//! What can go wrong with a verb, always with the verb, the device and the errno.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::gid::GidError;
use crate::name::DeviceName;

/// Why a verb failed.
#[derive(Debug, Error)]
pub enum VerbsError {
    /// There is no libibverbs, or it lacks a function.
    #[error(
        "RDMA verbs need libibverbs.so.1, which cannot be loaded: {reason}; \
         install libibverbs1 and ibverbs-providers (Debian, Ubuntu), libibverbs1 (SUSE) or libibverbs (RHEL)"
    )]
    Library {
        /// What the dynamic loader said.
        reason: String,
    },
    /// The device isn't there.
    #[error("no RDMA device {device}; the verbs library sees {}", list(present))]
    NoDevice {
        /// The device asked for.
        device: DeviceName,
        /// The devices that are there.
        present: Vec<String>,
    },
    /// The device has a kernel driver but its user-space half is missing or refused.
    #[error("{verb} on {device} failed")]
    Call {
        /// The verb: `ibv_open_device`, ...
        verb: &'static str,
        /// The RDMA device.
        device: DeviceName,
        /// What the kernel said.
        source: io::Error,
    },
    /// Memory could not be pinned.
    #[error(
        "ibv_reg_mr on {device} failed: {bytes} bytes cannot be pinned; \
         the limit of locked memory (memlock) of this process is {limit}"
    )]
    Memlock {
        /// The RDMA device.
        device: DeviceName,
        /// The size of the memory region, in bytes.
        bytes: usize,
        /// The soft limit, in bytes, or `unlimited`.
        limit: String,
    },
    /// The port carries no traffic.
    #[error("{device} port {port} is {state}, not ACTIVE{}", port_hint(state))]
    PortNotActive {
        /// The RDMA device.
        device: DeviceName,
        /// Its port.
        port: u8,
        /// The port's state as `ibstat` names it.
        state: &'static str,
    },
    /// No GID fits.
    #[error(transparent)]
    Gid(#[from] GidError),
    /// The P_Key is not in the port's table.
    #[error("{device} port {port} has no P_Key {pkey:#06x}: its table is {}", hex_list(table))]
    NoPkey {
        /// The RDMA device.
        device: DeviceName,
        /// Its port.
        port: u8,
        /// The P_Key asked for.
        pkey: u16,
        /// The P_Keys that the port has.
        table: Vec<u16>,
    },
    /// The peer's addressing doesn't match ours.
    #[error("{device} is an {ours} port and its peer is not: both ends of a pair are InfiniBand or both are RoCE")]
    LinkLayers {
        /// The RDMA device.
        device: DeviceName,
        /// "InfiniBand" or "Ethernet".
        ours: &'static str,
    },
    /// A work request ended in error.
    #[error("{operation} from {device} failed: {} (status {status}, vendor error {vendor_err:#x})", completion_meaning(*status))]
    Completion {
        /// "RDMA WRITE" or "RDMA READ".
        operation: &'static str,
        /// The RDMA device.
        device: DeviceName,
        /// `enum ibv_wc_status`.
        status: u32,
        /// The device's own code.
        vendor_err: u32,
    },
    /// Nothing completed for too long.
    #[error("{operation} from {device}: no completion for {} s", after.as_secs())]
    Stalled {
        /// "RDMA WRITE" or "RDMA READ".
        operation: &'static str,
        /// The RDMA device.
        device: DeviceName,
        /// How long it was awaited.
        after: Duration,
    },
    /// A range outside of the registered memory.
    #[error("{bytes} bytes at offset {offset} are outside of a memory region of {length} bytes")]
    Range {
        /// Where the range starts, in bytes.
        offset: usize,
        /// Its length.
        bytes: usize,
        /// The length of the memory region.
        length: usize,
    },
}

impl VerbsError {
    /// Whether the peer is gone or unreachable, rather than this side broken.
    #[must_use]
    pub fn is_peer_lost(&self) -> bool {
        matches!(self, Self::Completion { status: 12 | 13, .. } | Self::Stalled { .. })
    }
}

/// What a completion status means to the person who reads it (`enum ibv_wc_status`).
fn completion_meaning(status: u32) -> &'static str {
    match status {
        1 => "local length error: the message is larger than the port takes",
        4 => "local protection error: the local memory region doesn't cover the request",
        5 => "flushed: the queue pair had already failed",
        9 => "remote invalid request: the peer's queue pair does not take this operation",
        10 => "remote access error: the peer's memory region does not allow it",
        11 => "remote operation error",
        12 => "transport retry counter exceeded: the peer is gone, or the path to it is broken",
        13 => "RNR retry counter exceeded: the peer was never ready",
        _ => "see enum ibv_wc_status",
    }
}

fn port_hint(state: &str) -> &'static str {
    match state {
        "DOWN" => ": no cable, or the other end is down",
        "INIT" | "ARMED" => ": no subnet manager has brought it up",
        _ => "",
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn hex_list(keys: &[u16]) -> String {
    list(&keys.iter().map(|key| format!("{key:#06x}")).collect::<Vec<_>>())
}
