//! A fault of a spec: what is wrong, where, and what to do about it.
//!
//! Values only. The decoder and the checks make them, `report` prints them.

use std::fmt;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

/// A stretch of the spec's text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end.max(range.start) }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its place; for a default, that of the table that leaves it out.
    pub span: Span,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The spec can't be used.
    Error,
    /// The spec can be used, and something in it is likely to hurt.
    Warning,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal $severity:ident,)*) => {
        /// What kind of fault: a word that stays the same from release to release.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word, such as `unknown-key`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Whether it forbids the use of the spec.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    /// Not TOML.
    Syntax = "syntax" Error,
    /// A version of the format that this selvedge does not read.
    UnsupportedVersion = "unsupported-version" Error,
    /// A key that the table does not have.
    UnknownKey = "unknown-key" Error,
    /// A key that the table must have.
    MissingKey = "missing-key" Error,
    /// A string where a number should be, and the like.
    WrongType = "wrong-type" Error,
    /// A word that is not one of those a key takes.
    UnknownWord = "unknown-word" Error,
    /// A number outside the range a key takes.
    NumberOutOfRange = "number-out-of-range" Error,
    /// A name that would not be safe or not be accepted where it is used.
    BadName = "bad-name" Error,
    /// A host list that can't be read.
    BadHostList = "bad-host-list" Error,
    /// A host list with more hosts than selvedge takes.
    TooManyHosts = "too-many-hosts" Error,
    /// Not a link speed.
    BadSpeed = "bad-speed" Error,
    /// Not a network in CIDR form.
    BadCidr = "bad-cidr" Error,
    /// Not an address.
    BadAddress = "bad-address" Error,
    /// Not a time.
    BadDuration = "bad-duration" Error,
    /// Not a bandwidth.
    BadBandwidth = "bad-bandwidth" Error,
    /// Not a GUID.
    BadGuid = "bad-guid" Error,
    /// A GUID of all zeros or all ones, which no port has.
    UnsetGuid = "unset-guid" Error,
    /// Not a PCI address.
    BadPciAddress = "bad-pci-address" Error,
    /// A module option that could not be written safely.
    BadModuleOption = "bad-module-option" Error,
    /// A port that names its HCA in no way, or in two.
    DeviceSelector = "device-selector" Error,
    /// A GUID, which is one port of one host, given to a group of hosts.
    GuidForManyHosts = "guid-for-many-hosts" Error,
    /// 0, or the default partition's, which are no keys of partitions.
    BadPkey = "bad-pkey" Error,
    /// A reference to a fabric that the spec does not have.
    UnknownFabric = "unknown-fabric" Error,
    /// A reference to a network that the spec does not have.
    UnknownNetwork = "unknown-network" Error,
    /// A reference to a partition that the fabric does not have.
    UnknownPartition = "unknown-partition" Error,
    /// Two partitions of a fabric with one key.
    DuplicatePkey = "duplicate-pkey" Error,
    /// A partition whose members can't reach each other.
    LimitedOnly = "limited-only-partition" Error,
    /// A host that is a full and a limited member, or a port whose host is no member.
    Membership = "membership" Error,
    /// A member whose port GUID, which the subnet manager needs, is not in the spec.
    MemberWithoutGuid = "member-without-guid" Error,
    /// A partition on RoCE, which has none.
    PartitionOnRoce = "partition-on-roce" Error,
    /// A VLAN on InfiniBand, which has none.
    VlanOnInfiniband = "vlan-on-infiniband" Error,
    /// A port in networks of two fabrics.
    TwoFabrics = "two-fabrics" Error,
    /// Networks on one interface that ask for different modes or MTUs.
    NetworksDisagree = "networks-disagree" Error,
    /// An interface name that leaves no room for those of its children.
    ChildName = "child-name" Error,
    /// A reference to a port that the host does not have.
    UnknownPort = "unknown-port" Error,
    /// A reference to a host that is in no group.
    UnknownHost = "unknown-host" Error,
    /// A host in two groups.
    DuplicateHost = "duplicate-host" Error,
    /// A host without the number its address is made of.
    HostWithoutNumber = "host-without-number" Error,
    /// Two hosts that would get one address.
    NumberCollision = "number-collision" Error,
    /// A host without a GUID for a port that its group knows by nothing else.
    HostWithoutGuid = "host-without-guid" Error,
    /// An address of `[hosts.NAME]` that another host has.
    AddressCollision = "address-collision" Error,
    /// An address that is not in its network.
    AddressOutsideNetwork = "address-outside-network" Error,
    /// A host whose address would be the network's own.
    NetworkAddress = "network-address" Error,
    /// A host whose address would be the broadcast address.
    BroadcastAddress = "broadcast-address" Error,
    /// A host whose number does not fit the network.
    NetworkTooSmall = "network-too-small" Error,
    /// Two networks that share addresses.
    OverlappingNetworks = "overlapping-networks" Error,
    /// An MTU above what the mode carries.
    MtuAboveMode = "mtu-above-mode" Error,
    /// An MTU below what IP needs.
    MtuBelowIp = "mtu-below-ip" Error,
    /// An IPoIB mode on a RoCE network.
    ModeOnRoce = "mode-on-roce" Error,
    /// An IB MTU on a RoCE fabric.
    IbMtuOnRoce = "ib-mtu-on-roce" Error,
    /// An Ethernet speed on InfiniBand, or the other way round.
    SpeedOfOtherTransport = "speed-of-other-transport" Error,
    /// A subnet manager on RoCE.
    ManagerOnRoce = "manager-on-roce" Error,
    /// A host that is a subnet manager twice.
    DuplicateManager = "duplicate-manager" Error,
    /// Two ports of a node that are the same port of an HCA.
    DuplicateDevicePort = "duplicate-device-port" Error,
    /// Two ports of a node with one interface name.
    DuplicateInterface = "duplicate-interface" Error,
    /// A VLAN whose MTU is above that of the interface it is on.
    MtuAboveParent = "mtu-above-parent" Error,
    /// Ranges of one row that do not advance together, or that are none.
    PortRange = "port-range" Error,
    /// Two ports of a node in one network.
    DuplicateNetwork = "duplicate-network" Error,
    /// A threshold that the link can't reach.
    ThresholdBeyondLink = "threshold-beyond-link" Error,
    /// An InfiniBand fabric whose manager has no standby.
    NoStandby = "no-standby" Warning,
    /// An InfiniBand fabric without a manager in the spec.
    NoManager = "no-manager" Warning,
    /// A subnet manager on a host without a port on its fabric.
    ManagerWithoutPort = "manager-without-port" Warning,
    /// A network without ports.
    UnusedNetwork = "unused-network" Warning,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its kind.
    pub code: Code,
    /// Where.
    pub span: Span,
    /// What is wrong: a sentence without a full stop.
    pub message: String,
    /// A word or two at the place itself.
    pub label: String,
    /// Other places that matter, each with its label.
    pub also: Vec<(Span, String)>,
    /// What to do.
    pub help: Option<String>,
}

impl Fault {
    /// A fault that is marked "here" and has no help yet.
    #[must_use]
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { code, span, message: short(message.into()), label: "here".to_owned(), also: Vec::new(), help: None }
    }

    /// Sets the words at the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = short(label.into());
        self
    }

    /// Adds another place.
    #[must_use]
    pub fn also(mut self, span: Span, label: impl Into<String>) -> Self {
        self.also.push((span, short(label.into())));
        self
    }

    /// Sets what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(short(help.into()));
        self
    }

    /// Its own place and the others, each with its label.
    pub(super) fn places(&self) -> impl Iterator<Item = (Span, &str)> {
        let also = self.also.iter().map(|(span, label)| (*span, label.as_str()));
        std::iter::once((self.span, self.label.as_str())).chain(also)
    }

    /// Error or warning.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

/// A text of any length can get into a fault's words; nobody reads more than a few lines of it.
fn short(mut words: String) -> String {
    const MOST_BYTES: usize = 1000;
    if words.len() > MOST_BYTES {
        words.truncate(words.floor_char_boundary(MOST_BYTES));
        words.push_str("...");
    }
    words
}
