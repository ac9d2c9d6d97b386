//! PortInfo (14.2.5.6, table 150): the fields that a verdict on the managers needs.

use std::fmt;

use super::{Block, be16, be32, be64, high, low, put};

/// `PortInfo:CapabilityMask` bit 1, `IsSM`: a manager runs on this port.
pub const CAPABILITY_IS_SM: u32 = 1 << 1;

/// A port's state. Codes stay as they are on the wire where they are bit sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortInfo {
    /// `GidPrefix`.
    pub gid_prefix: u64,
    /// The port's address; 0 until a manager gave one.
    pub lid: u16,
    /// The address of the master that configured the port.
    pub master_sm_lid: u16,
    /// See [`CAPABILITY_IS_SM`].
    pub capability_mask: u32,
    /// The port by which the question came in.
    pub local_port: u8,
    /// 1 = 1X, 2 = 4X, 4 = 8X, 8 = 12X, 16 = 2X; one bit.
    pub link_width_active: u8,
    /// 1 = SDR, 2 = DDR, 4 = QDR; 0 when extended.
    pub link_speed_active: u8,
    /// 1 = FDR, 2 = EDR, 4 = HDR, 8 = NDR; 0 when not extended.
    pub link_speed_ext_active: u8,
    /// The link's state for data.
    pub state: PortState,
    /// The link's state on the wire.
    pub physical_state: PhysicalState,
    /// 2^lmc addresses from `lid` on.
    pub lmc: u8,
    /// The MTU in effect.
    pub neighbor_mtu: Mtu,
    /// The most that the port can.
    pub mtu_cap: Mtu,
}

macro_rules! code {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $bits:literal $variant:ident $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
            /// None that the specification knows.
            Reserved(u8),
        }

        impl $name {
            /// From the four bits.
            #[must_use]
            pub fn from_bits(bits: u8) -> Self {
                match bits & 0x0f {
                    $($bits => Self::$variant,)*
                    other => Self::Reserved(other),
                }
            }

            /// The four bits.
            #[must_use]
            pub fn bits(self) -> u8 {
                match self {
                    $(Self::$variant => $bits,)*
                    Self::Reserved(other) => other & 0x0f,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from_bits(0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => f.pad($text),)*
                    Self::Reserved(bits) => write!(f, "reserved code {bits}"),
                }
            }
        }
    };
}

code!(
    /// `PortInfo:PortState`.
    PortState {
        /// In a Set: leave it as it is.
        0 NoChange "no change",
        /// No link.
        1 Down "down",
        /// A link that no manager has configured.
        2 Initialize "initialize",
        /// Configured, carries no data yet.
        3 Armed "armed",
        /// Carries data.
        4 Active "active",
    }
);

code!(
    /// `PortInfo:PortPhysicalState`.
    PhysicalState {
        /// In a Set: leave it as it is.
        0 NoChange "no change",
        /// Deaf and mute.
        1 Sleep "sleep",
        /// Looks for a cable with somebody at its end.
        2 Polling "polling",
        /// Switched off.
        3 Disabled "disabled",
        /// Negotiates.
        4 Training "training",
        /// Up.
        5 LinkUp "link up",
        /// Recovers from errors.
        6 ErrorRecovery "link error recovery",
        /// A test of the cable.
        7 PhyTest "phy test",
    }
);

code!(
    /// An MTU code.
    Mtu {
        /// 256 bytes.
        1 B256 "256",
        /// 512 bytes.
        2 B512 "512",
        /// 1024 bytes.
        3 B1024 "1024",
        /// 2048 bytes.
        4 B2048 "2048",
        /// 4096 bytes.
        5 B4096 "4096",
    }
);

impl PortInfo {
    /// Whether a manager says that it runs on this port.
    #[must_use]
    pub fn is_sm(&self) -> bool {
        self.capability_mask & CAPABILITY_IS_SM != 0
    }

    /// From the attribute.
    #[must_use]
    pub fn decode(block: &Block) -> Self {
        Self {
            gid_prefix: be64(block, 8),
            lid: be16(block, 16),
            master_sm_lid: be16(block, 18),
            capability_mask: be32(block, 20),
            local_port: block[28],
            link_width_active: block[31],
            state: PortState::from_bits(low(block[32])),
            physical_state: PhysicalState::from_bits(high(block[33])),
            lmc: block[34] & 0x07,
            link_speed_active: high(block[35]),
            neighbor_mtu: Mtu::from_bits(high(block[36])),
            mtu_cap: Mtu::from_bits(low(block[41])),
            link_speed_ext_active: high(block[62]),
        }
    }

    /// To the attribute; fields that this type does not have are zero.
    #[must_use]
    pub fn encode(&self) -> Block {
        let mut block = [0; 64];
        put(&mut block, 8, self.gid_prefix.to_be_bytes());
        put(&mut block, 16, self.lid.to_be_bytes());
        put(&mut block, 18, self.master_sm_lid.to_be_bytes());
        put(&mut block, 20, self.capability_mask.to_be_bytes());
        block[28] = self.local_port;
        block[31] = self.link_width_active;
        block[32] = self.state.bits();
        block[33] = self.physical_state.bits() << 4;
        block[34] = self.lmc & 0x07;
        block[35] = self.link_speed_active << 4;
        block[36] = self.neighbor_mtu.bits() << 4;
        block[41] = self.mtu_cap.bits();
        block[62] = self.link_speed_ext_active << 4;
        block
    }
}
