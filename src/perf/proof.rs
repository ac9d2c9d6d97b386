//! Whether the traffic was RDMA.
//!
//! Counters before and after and the bytes that a measurement moved come in, a
//! verdict goes out. A port's counters include IPoIB, so both sides count: the
//! port moved by the bytes, and its network interfaces did not.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::snapshot::Snapshot;

/// Network interfaces may carry this share of the bytes meanwhile, one in so many.
const NETDEV_SHARE: u64 = 10;
/// And this much in any case, in bytes: ssh, a monitoring agent, ARP.
const NETDEV_BYTES: u64 = 1 << 20;

/// The side of the port on which the payload passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The one that WRITEs, or is READ.
    Sent,
    /// The one that READs, or is written to.
    Received,
}

/// What the counters prove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The port moved by the bytes, the IP stack did not: RDMA in hardware.
    Hardware {
        /// Bytes by the port's counter, headers included.
        port_bytes: u64,
        /// Bytes by the interfaces' counters.
        netdev_bytes: u64,
    },
    /// The port has no data counter, and the driver's own packet counter moved
    /// enough: RDMA in software (soft-RoCE), whose UDP packets pass the network interface.
    Software {
        /// RDMA packets by the driver's counter.
        packets: u64,
        /// Bytes by the interfaces' counters; 0 when a device talks to itself.
        netdev_bytes: u64,
    },
    /// The interfaces moved as much: it may have been IP traffic.
    NetdevMoved {
        /// Bytes by the port's counter.
        port_bytes: u64,
        /// Bytes by the interfaces' counters.
        netdev_bytes: u64,
    },
    /// The counter moved by less than the bytes that were measured.
    PortStill {
        /// Bytes by the port's counter, or packets x MTU by the driver's.
        port_bytes: u64,
        /// Bytes that the measurement moved.
        needed_bytes: u64,
        /// Whether the counter stands at its end and can't move: reset it with `perfquery -R`.
        saturated: bool,
    },
    /// The driver counts neither bytes nor packets.
    NoCounter,
}

impl Proof {
    /// Whether RDMA is proved.
    #[must_use]
    pub fn holds(&self) -> bool {
        matches!(self, Self::Hardware { .. } | Self::Software { .. })
    }
}

/// Judges a measurement that moved `bytes` of payload at a path MTU of `mtu` bytes.
#[must_use]
pub fn prove(before: &Snapshot, after: &Snapshot, direction: Direction, bytes: u64, mtu: u32) -> Proof {
    let netdev_bytes = netdev_bytes(before, after, direction);
    let (words, packets) = match direction {
        Direction::Sent => ("port_xmit_data", "sent_pkts"),
        Direction::Received => ("port_rcv_data", "rcvd_pkts"),
    };
    if let (Some(from), Some(to)) = (before.port.get(words), after.port.get(words)) {
        let port_bytes = to.saturating_sub(*from).saturating_mul(4);
        let saturated = matches!(*to, 0xffff_ffff | u64::MAX);
        return if port_bytes < bytes {
            Proof::PortStill { port_bytes, needed_bytes: bytes, saturated }
        } else if netdev_bytes > NETDEV_BYTES.max(bytes / NETDEV_SHARE) {
            Proof::NetdevMoved { port_bytes, netdev_bytes }
        } else {
            Proof::Hardware { port_bytes, netdev_bytes }
        };
    }
    let (Some(from), Some(to)) = (before.hw.get(packets), after.hw.get(packets)) else {
        return Proof::NoCounter;
    };
    let packets = to.saturating_sub(*from);
    let most = packets.saturating_mul(u64::from(mtu));
    if most < bytes {
        Proof::PortStill { port_bytes: most, needed_bytes: bytes, saturated: false }
    } else {
        Proof::Software { packets, netdev_bytes }
    }
}

fn netdev_bytes(before: &Snapshot, after: &Snapshot, direction: Direction) -> u64 {
    let moved = after.netdevs.iter().map(|(name, to)| {
        let from = before.netdevs.get(name).copied().unwrap_or_default();
        match direction {
            Direction::Sent => to.tx_bytes.saturating_sub(from.tx_bytes),
            Direction::Received => to.rx_bytes.saturating_sub(from.rx_bytes),
        }
    });
    moved.fold(0, u64::saturating_add)
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hardware { port_bytes, netdev_bytes } => write!(
                f,
                "RDMA: the port's counter moved by {port_bytes} bytes, its network interfaces by {netdev_bytes}"
            ),
            Self::Software { packets, netdev_bytes } => write!(
                f,
                "RDMA in software: the port has no data counter; its driver counted {packets} RDMA packets, \
                 and its network interface carried {netdev_bytes} bytes of UDP"
            ),
            Self::NetdevMoved { port_bytes, netdev_bytes } => write!(
                f,
                "not proved: the port moved by {port_bytes} bytes, but its network interfaces by {netdev_bytes} too; \
                 stop the IP traffic on it and measure again"
            ),
            Self::PortStill { port_bytes, needed_bytes, saturated } => {
                write!(f, "not proved: {needed_bytes} bytes were measured, and the counter moved by {port_bytes}")?;
                if *saturated { f.write_str("; it stands at its end, reset it with `perfquery -R`") } else { Ok(()) }
            }
            Self::NoCounter => f.write_str("not proved: the driver counts neither bytes nor packets"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::Netdev;
    use super::*;

    fn snapshot(port: Option<u64>, hw: Option<u64>, tx_bytes: u64) -> Snapshot {
        Snapshot {
            port: port.map(|n| ("port_xmit_data".to_owned(), n)).into_iter().collect(),
            hw: hw.map(|n| ("sent_pkts".to_owned(), n)).into_iter().collect(),
            netdevs: [("ib0".to_owned(), Netdev { tx_bytes, rx_bytes: 0 })].into(),
        }
    }

    const GB: u64 = 1_000_000_000;

    fn sent(before: &Snapshot, after: &Snapshot) -> Proof {
        prove(before, after, Direction::Sent, GB, 4096)
    }

    #[test]
    fn the_port_moves_and_the_interfaces_do_not() {
        let proof = sent(&snapshot(Some(7), None, 0), &snapshot(Some(7 + GB / 4), None, 5000));
        assert_eq!(proof, Proof::Hardware { port_bytes: GB, netdev_bytes: 5000 });
        assert!(proof.holds());
    }

    #[test]
    fn traffic_over_ipoib_proves_nothing() {
        let proof = sent(&snapshot(Some(0), None, 0), &snapshot(Some(GB), None, GB));
        assert!(matches!(proof, Proof::NetdevMoved { .. }) && !proof.holds(), "{proof}");
    }

    #[test]
    fn a_counter_at_its_end_is_told_from_no_traffic() {
        let end = snapshot(Some(0xffff_ffff), None, 0);
        let proof = sent(&end, &end);
        assert_eq!(proof, Proof::PortStill { port_bytes: 0, needed_bytes: GB, saturated: true });
        assert!(proof.to_string().contains("perfquery -R"));
    }

    #[test]
    fn soft_roce_is_proved_by_its_packets_and_said_to_be_software() {
        let enough = GB.div_ceil(4096);
        let proof = sent(&snapshot(None, Some(9), 0), &snapshot(None, Some(9 + enough), GB));
        assert!(matches!(proof, Proof::Software { .. }) && proof.holds(), "{proof}");
        let proof = sent(&snapshot(None, Some(9), 0), &snapshot(None, Some(8 + enough), GB));
        assert!(!proof.holds(), "{proof}");
        assert_eq!(sent(&snapshot(None, None, 0), &snapshot(None, None, 0)), Proof::NoCounter);
    }
}
