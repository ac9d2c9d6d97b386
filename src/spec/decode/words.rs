//! The words that keys take, each with its value.

use crate::rdma::{IbSpeed, IpoibMode, Transport};
use crate::spec::model::{ConfigChoice, ModeChoice, Numbering, Topology};

pub(super) type Words<T> = &'static [(&'static str, T)];

pub(in crate::spec) const TRANSPORTS: Words<Transport> =
    &[("infiniband", Transport::Infiniband), ("roce", Transport::Roce)];

pub(in crate::spec) const TOPOLOGIES: Words<Topology> = &[
    ("single-switch", Topology::SingleSwitch),
    ("fat-tree", Topology::FatTree),
    ("dragonfly-plus", Topology::DragonflyPlus),
];

pub(in crate::spec) const MODES: Words<ModeChoice> = &[
    ("auto", ModeChoice::Auto),
    ("connected", ModeChoice::Insist(IpoibMode::Connected)),
    ("datagram", ModeChoice::Insist(IpoibMode::Datagram)),
];

pub(in crate::spec) const CONFIGS: Words<ConfigChoice> = &[
    ("auto", ConfigChoice::Auto),
    ("netplan", ConfigChoice::Netplan),
    ("networkd", ConfigChoice::Networkd),
    ("networkmanager", ConfigChoice::NetworkManager),
    ("ifcfg", ConfigChoice::Ifcfg),
    ("ifcfg-suse", ConfigChoice::IfcfgSuse),
];

pub(in crate::spec) const NUMBERINGS: Words<Numbering> =
    &[("name", Numbering::Name), ("position", Numbering::Position)];

/// The words alone.
pub(in crate::spec) fn names<T>(words: Words<T>) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}

/// Every speed.
pub(in crate::spec) fn speeds() -> Vec<&'static str> {
    let ethernet = ["10G", "25G", "40G", "50G", "100G", "200G", "400G", "800G"];
    IbSpeed::ALL.into_iter().map(IbSpeed::as_str).chain(ethernet).collect()
}
