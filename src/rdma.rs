//! The words of RDMA as types: GUIDs, speeds, widths, MTUs, IPoIB modes.
//!
//! Values only; nothing here reads a device.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a port runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// InfiniBand with a subnet manager.
    Infiniband,
    /// RDMA over Converged Ethernet, version 2.
    Roce,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Infiniband => "InfiniBand",
            Self::Roce => "RoCE",
        })
    }
}

/// How IPoIB carries IP packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IpoibMode {
    /// Over unreliable datagrams: the MTU is that of the multicast group, 4 bytes less than the IB MTU.
    Datagram,
    /// Over reliable connections: an MTU of up to [`CONNECTED_MTU`].
    Connected,
}

impl IpoibMode {
    /// The word that sysfs, netplan and `ip` use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Datagram => "datagram",
            Self::Connected => "connected",
        }
    }
}

impl fmt::Display for IpoibMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The key of an InfiniBand partition, which full members hold with the bit 0x8000 and limited members without it.
///
/// Interfaces and files name a partition by the full members' form on all hosts: IPoIB sets the bit in any case, since
/// the broadcast group has it (RFC 4391, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PKey(u16);

impl PKey {
    /// The bit of full membership (IBA 1.4 volume 1, 10.9.1.1).
    const FULL: u16 = 0x8000;

    /// The partition of this key, in whichever form; `None` for 0x0000 and 0x8000, which are no keys (10.9.1.2).
    #[must_use]
    pub fn new(key: u16) -> Option<Self> {
        (key & !Self::FULL != 0).then_some(Self(key | Self::FULL))
    }

    /// As a full member holds it.
    #[must_use]
    pub fn full(self) -> u16 {
        self.0
    }

    /// As a limited member holds it, and opensm's partitions file names it.
    #[must_use]
    pub fn limited(self) -> u16 {
        self.0 & !Self::FULL
    }

    /// The partition that every port is a member of (10.9.1.2).
    #[must_use]
    pub fn is_default(self) -> bool {
        self.0 == 0xffff
    }
}

impl fmt::Display for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// The largest IPoIB MTU in connected mode, in bytes: `IPOIB_CM_MTU`, that is
/// 64 KiB less the 16 bytes that the kernel keeps for the headers.
pub const CONNECTED_MTU: u32 = 65520;

/// The IPoIB header, in bytes: what a datagram MTU is less than the IB MTU (RFC 4391, section 6).
pub const IPOIB_HEADER_BYTES: u32 = 4;

/// The customary jumbo frame: room for the largest RDMA path MTU, 4096, with all headers.
pub const ROCE_MTU: u32 = 9000;

/// A 64-bit GUID, printed as `ibstat` prints it: `0x0002c90300000001`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub struct Guid(pub u64);

/// Not a GUID.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a GUID: 16 hexadecimal digits, as `0x0002c90300000001` or `0002:c903:0000:0001`")]
pub struct GuidError(String);

impl FromStr for Guid {
    type Err = GuidError;
    fn from_str(text: &str) -> Result<Self, GuidError> {
        let fail = || GuidError(text.escape_debug().to_string());
        let digits: String = text.strip_prefix("0x").unwrap_or(text).replace(':', "");
        if digits.len() != 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(fail());
        }
        u64::from_str_radix(&digits, 16).map(Self).map_err(|_| fail())
    }
}

impl TryFrom<String> for Guid {
    type Error = GuidError;
    fn try_from(text: String) -> Result<Self, GuidError> {
        text.parse()
    }
}

impl From<Guid> for String {
    fn from(guid: Guid) -> Self {
        guid.to_string()
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

/// The nominal speed of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub enum Speed {
    /// An InfiniBand generation at 4X width.
    Ib(IbSpeed),
    /// An Ethernet speed, Gb/s.
    Ethernet(u32),
}

/// InfiniBand generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names of the generations are the field's own")]
pub enum IbSpeed {
    Sdr,
    Ddr,
    Qdr,
    Fdr,
    Edr,
    Hdr,
    Ndr,
    Xdr,
}

impl IbSpeed {
    /// All generations, oldest first.
    pub const ALL: [Self; 8] = [Self::Sdr, Self::Ddr, Self::Qdr, Self::Fdr, Self::Edr, Self::Hdr, Self::Ndr, Self::Xdr];

    /// The generation's name as the spec and vendors write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sdr => "SDR",
            Self::Ddr => "DDR",
            Self::Qdr => "QDR",
            Self::Fdr => "FDR",
            Self::Edr => "EDR",
            Self::Hdr => "HDR",
            Self::Ndr => "NDR",
            Self::Xdr => "XDR",
        }
    }

    /// The rate of one 4X link as sysfs `rate` prints it, in Gb/s: the signalling rate up to QDR,
    /// the data rate after (InfiniBand specification 1.7, volume 2, and `ib_port_attr` in the kernel).
    #[must_use]
    pub fn sysfs_rate_gbps(self) -> f64 {
        match self {
            Self::Sdr => 10.0,
            Self::Ddr => 20.0,
            Self::Qdr => 40.0,
            Self::Fdr => 56.0,
            Self::Edr => 100.0,
            Self::Hdr => 200.0,
            Self::Ndr => 400.0,
            Self::Xdr => 800.0,
        }
    }
}

impl Speed {
    /// The data rate in Gb/s of a 4X InfiniBand or of the Ethernet link: 8b/10b
    /// coding up to QDR, 64b/66b from FDR on.
    #[must_use]
    pub fn data_gbps(self) -> f64 {
        match self {
            Self::Ib(IbSpeed::Sdr) => 8.0,
            Self::Ib(IbSpeed::Ddr) => 16.0,
            Self::Ib(IbSpeed::Qdr) => 32.0,
            Self::Ib(IbSpeed::Fdr) => 54.5,
            Self::Ib(IbSpeed::Edr) => 100.0,
            Self::Ib(IbSpeed::Hdr) => 200.0,
            Self::Ib(IbSpeed::Ndr) => 400.0,
            Self::Ib(IbSpeed::Xdr) => 800.0,
            Self::Ethernet(gbps) => f64::from(gbps),
        }
    }
}

/// Not a speed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a link speed: SDR, DDR, QDR, FDR, EDR, HDR, NDR or XDR for InfiniBand, \"25G\" to \"800G\" for RoCE"
)]
pub struct SpeedError(String);

impl FromStr for Speed {
    type Err = SpeedError;
    fn from_str(text: &str) -> Result<Self, SpeedError> {
        if let Some(ib) = IbSpeed::ALL.into_iter().find(|s| s.as_str() == text) {
            return Ok(Self::Ib(ib));
        }
        match text {
            "10G" => Ok(Self::Ethernet(10)),
            "25G" => Ok(Self::Ethernet(25)),
            "40G" => Ok(Self::Ethernet(40)),
            "50G" => Ok(Self::Ethernet(50)),
            "100G" => Ok(Self::Ethernet(100)),
            "200G" => Ok(Self::Ethernet(200)),
            "400G" => Ok(Self::Ethernet(400)),
            "800G" => Ok(Self::Ethernet(800)),
            _ => Err(SpeedError(text.escape_debug().to_string())),
        }
    }
}

impl TryFrom<String> for Speed {
    type Error = SpeedError;
    fn try_from(text: String) -> Result<Self, SpeedError> {
        text.parse()
    }
}

impl From<Speed> for String {
    fn from(speed: Speed) -> Self {
        speed.to_string()
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ib(ib) => f.pad(ib.as_str()),
            Self::Ethernet(gbps) => write!(f, "{gbps}G"),
        }
    }
}
