//! Every table of the spec and its keys: what the decoder takes, and what the schema and the
//! help lines say about it.
//!
//! Constants only. A key that is not here is refused, and a test holds that
//! the decoder reads each key that is.

use super::decode::words;

/// A table of the spec.
#[derive(Debug)]
pub struct Table {
    /// As the file writes it: `[networks.NAME]`.
    pub title: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// As the file writes it.
    pub name: &'static str,
    /// What it means, with units and what is used when it is left out.
    pub doc: &'static str,
    /// Whether it may be left out.
    pub need: Need,
    /// What it takes.
    pub shape: Shape,
}

/// Whether a key may be left out.
#[derive(Debug, Clone, Copy)]
pub enum Need {
    /// It may not.
    Required,
    /// It may, and then there is none.
    Optional,
    /// It may, and then it is this word or number.
    Default(&'static str),
}

/// What a key takes.
#[derive(Debug)]
pub enum Shape {
    /// One of some words.
    Words(fn() -> Vec<&'static str>),
    /// A string of a pattern (a regular expression that ECMAScript and Rust read alike), with an example.
    Text(&'static str, &'static str),
    /// An array of so many such strings or more.
    Texts(u32, &'static str, &'static str),
    /// An integer of a range.
    Integer(i64, i64),
    /// One of some integers.
    Integers(&'static [i64]),
    /// Any of these.
    Any(&'static [Shape]),
    /// An integer, a boolean or a word.
    Option,
    /// A table.
    One(&'static Table),
    /// Tables by name, the names of a pattern.
    Named(&'static str, &'static Table),
    /// A table of one shape by keys of a pattern, with a key as an example.
    Map(&'static str, &'static str, &'static Shape),
    /// Tables by name whose keys are free, of one shape each.
    Free(&'static str, &'static Shape),
    /// An array of tables.
    Rows(&'static Table),
}

impl Table {
    /// The key of this name.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

const fn key(name: &'static str, need: Need, shape: Shape, doc: &'static str) -> Key {
    Key { name, doc, need, shape }
}

use Need::{Default, Optional, Required};
use Shape::{Any, Free, Integer, Integers, Map, Named, One, Rows, Text, Texts, Words};

const LABEL: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$";
const HOST: &str = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,252}$";
const UNIT: &str = r"^[A-Za-z0-9][A-Za-z0-9_.@:\\-]{0,254}$";
const MODULE: &str = "^[A-Za-z0-9][A-Za-z0-9_]{0,54}$";
/// A name, or a list of names with ranges: `mlx5_[0-7]`.
const SERIES: &str = "^[A-Za-z0-9\\[][A-Za-z0-9._,/\\[\\]-]*$";
const INTERFACE: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$";
const GUID: Shape = Text("^(0x)?[0-9A-Fa-f:]{16,19}$", "0x0002c90300000001");

/// The whole file.
pub static SPEC: Table = Table {
    title: "the spec",
    doc: "The RDMA network of a cluster, for selvedge.",
    keys: &[
        key("version", Required, Integers(&[1]), "The version of this format. There is one: 1."),
        key("cluster", Required, One(&CLUSTER), "The cluster as a whole."),
        key(
            "fabrics",
            Required,
            Named(LABEL, &FABRIC),
            "The fabrics by name: each a set of switches with hosts on them.",
        ),
        key("networks", Optional, Named(LABEL, &NETWORK), "The IP networks by name, each on one fabric."),
        key("nodes", Required, Rows(&NODES), "Groups of hosts that are configured alike."),
        key("hosts", Optional, Named(HOST, &HOST_EXCEPTION), "What is special about single hosts, by host name."),
        key("modules", Optional, Free(MODULE, &Shape::Option), "Options of kernel modules, by module name."),
        key("verify", Optional, One(&VERIFY), "What `selvedge verify` demands."),
    ],
};

/// `[cluster]`
pub static CLUSTER: Table = Table {
    title: "[cluster]",
    doc: "The cluster as a whole.",
    keys: &[key("name", Required, Text(LABEL, "quickstart"), "The cluster's name, for comments and reports.")],
};

/// `[fabrics.NAME]`
pub static FABRIC: Table = Table {
    title: "[fabrics.NAME]",
    doc: "A fabric: one InfiniBand subnet, or one Ethernet that carries RoCE v2.",
    keys: &[
        key("transport", Required, Words(|| words::names(words::TRANSPORTS)), "What it runs on."),
        key(
            "speed",
            Required,
            Words(words::speeds),
            "The nominal speed of each host's link: an InfiniBand generation at 4X width, or for RoCE an Ethernet speed.",
        ),
        key(
            "topology",
            Default("single-switch"),
            Words(|| words::names(words::TOPOLOGIES)),
            "How the switches are wired. Default: single-switch.",
        ),
        key(
            "mtu",
            Default("2048"),
            Integers(&[2048, 4096]),
            "The IB MTU of the IPoIB multicast groups in bytes, which the subnet manager sets. IPoIB datagrams carry 4 bytes less. InfiniBand only. Default: 2048, as opensm's.",
        ),
        key("subnet-manager", Optional, One(&SUBNET_MANAGER), "Which hosts run the subnet manager. InfiniBand only."),
        key(
            "partitions",
            Optional,
            Named(LABEL, &PARTITION),
            "Partitions beside the default one, by name. InfiniBand only.",
        ),
    ],
};

/// `[fabrics.NAME.partitions.NAME]`
pub static PARTITION: Table = Table {
    title: "[fabrics.NAME.partitions.NAME]",
    doc: "A partition of the fabric, which the subnet managers keep and networks can be on. Without `full` and `limited` all hosts are full members. All ports stay full members of the default partition too, and can reach each other there.",
    keys: &[
        key(
            "pkey",
            Required,
            Integer(1, 0xffff),
            "Its key, 0x0001 to 0x7ffe; with or without the bit 0x8000 of full membership it is the same partition.",
        ),
        key(
            "full",
            Optional,
            Text("^[A-Za-z0-9_\\[][^\\s]*$", "storage[01-04]"),
            "The hosts that reach all members, as a host list, or all. Of a host in a list the ports in networks of the partition are members, or all if none is; each needs a GUID in the spec.",
        ),
        key(
            "limited",
            Optional,
            Text("^[A-Za-z0-9_\\[][^\\s]*$", "all"),
            "The hosts that reach full members only, as a host list, or all: those that `full` does not name.",
        ),
    ],
};

/// `[fabrics.NAME.subnet-manager]`
pub static SUBNET_MANAGER: Table = Table {
    title: "[fabrics.NAME.subnet-manager]",
    doc: "Which hosts run the fabric's subnet manager.",
    keys: &[
        key("primary", Required, Text(HOST, "node01"), "The host that is master while it is healthy."),
        key(
            "standby",
            Default("[]"),
            Texts(0, HOST, "node02"),
            "The hosts that take over, in this order. Default: none.",
        ),
    ],
};

/// `[networks.NAME]`
pub static NETWORK: Table = Table {
    title: "[networks.NAME]",
    doc: "An IP network on one fabric.",
    keys: &[
        key("fabric", Required, Text(LABEL, "compute"), "The fabric it is on, by its name in [fabrics]."),
        key(
            "cidr",
            Required,
            Text("^[0-9A-Fa-f.:]+/[0-9]{1,3}$", "10.0.0.0/16"),
            "Its addresses, IPv4 or IPv6. The host with number n has the n-th: gpu017 has base + 17.",
        ),
        key(
            "partition",
            Optional,
            Text(LABEL, "storage"),
            "The partition it is on, by its name in [fabrics.NAME.partitions]: each port gets a P_Key child interface, `ib0.8001`. InfiniBand only. Default: the port's own interface, on the default partition.",
        ),
        key(
            "vlan",
            Optional,
            Integer(1, 4094),
            "The VLAN it is on: each port gets an interface for it, `eth0.100`. RoCE only. Default: the port's own interface.",
        ),
        key(
            "mode",
            Default("auto"),
            Words(|| words::names(words::MODES)),
            "The IPoIB mode. auto: connected where the HCA can, else datagram. InfiniBand only. Default: auto.",
        ),
        key(
            "mtu",
            Default("max"),
            Any(&[Words(|| vec!["max"]), Integer(68, 65535)]),
            "The MTU of the interfaces in bytes, or max: the most that the mode in effect carries, on RoCE 9000, on a VLAN that of the interface it is on. Default: max.",
        ),
    ],
};

/// `[[nodes]]`
pub static NODES: Table = Table {
    title: "[[nodes]]",
    doc: "A group of hosts that are configured alike.",
    keys: &[
        key(
            "hosts",
            Required,
            Text("^[A-Za-z0-9_\\[][^\\s]*$", "node[01-16]"),
            "The hosts, as a ClusterShell or Slurm host list.",
        ),
        key(
            "config",
            Default("auto"),
            Words(|| words::names(words::CONFIGS)),
            "What keeps the configuration over a reboot. auto: what the host uses. ifcfg: files of Red Hat, read by NetworkManager or initscripts; ifcfg-suse: files of SUSE, read by wicked. Default: auto.",
        ),
        key(
            "numbering",
            Default("name"),
            Words(|| words::names(words::NUMBERINGS)),
            "Where a host's number comes from: the last number in its name, or its position in the list, from 1. Default: name.",
        ),
        key(
            "stride",
            Default("1"),
            Integer(1, MOST_OFFSET),
            "What each host's number is multiplied by, before `offset` is added: with 2, groups take turns. Default: 1.",
        ),
        key("offset", Default("0"), Integer(-MOST_OFFSET, MOST_OFFSET), "Added to each host's number. Default: 0."),
        key(
            "memlock",
            Default("[]"),
            Texts(0, UNIT, "slurmd"),
            "The services whose jobs register memory for RDMA, by their systemd units (`.service` may be left out): each gets a drop-in with LimitMEMLOCK=infinity, since systemd ignores limits.conf. One that runs is never restarted: `plan` names those that still have their old limit. slurmd also wants PropagateResourceLimitsExcept=MEMLOCK in slurm.conf, or jobs get the limit of the shell that submitted them. With sshd the sessions get it too, in /etc/security/limits.d, since PAM gives them theirs. Default: none.",
        ),
        key("ports", Optional, Rows(&PORT), "The ports of each host."),
    ],
};

/// The largest `stride`, and the largest `offset` either way: as many digits as a host's number may have.
pub const MOST_OFFSET: i64 = 999_999_999_999_999_999;

/// `[[nodes.ports]]`
pub static PORT: Table = Table {
    title: "[[nodes.ports]]",
    doc: "One port of one HCA, or several: ranges in device, interface and network advance together, `device = \"mlx5_[0-7]\"` with `network = \"rail[0-7]\"`. One of device, pci and guid says which HCA, or each host's own `guids` in [hosts.NAME].",
    keys: &[
        key("device", Optional, Text(SERIES, "mlx5_[0-7]"), "The HCA by its RDMA device name."),
        key(
            "pci",
            Optional,
            Text("^[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\\.[0-7]$", "0000:3b:00.0"),
            "The HCA by its PCI address: it stays when drivers rename devices.",
        ),
        key(
            "guid",
            Optional,
            GUID,
            "The port by its GUID. Only in a group of one host; for many see `guids` in [hosts.NAME].",
        ),
        key("port", Default("1"), Integer(1, 254), "The port of the HCA, from 1. Default: 1."),
        key(
            "interface",
            Optional,
            Text(SERIES, "ib0"),
            "The name that the network interface is to have; on RoCE, where selvedge renames nothing, the one it has. Default: the kernel's own.",
        ),
        key(
            "network",
            Required,
            Any(&[Text(SERIES, "compute"), Texts(1, SERIES, "compute")]),
            "The network this port is in, by its name in [networks], or an array of several of one fabric.",
        ),
    ],
};

/// `[hosts.NAME]`
pub static HOST_EXCEPTION: Table = Table {
    title: "[hosts.NAME]",
    doc: "What is special about one host.",
    keys: &[
        key(
            "ssh",
            Optional,
            Text(HOST, "10.1.0.17"),
            "The name or address that ssh is given. Default: the host's name.",
        ),
        key(
            "guids",
            Optional,
            Map(INTERFACE, "ib0", &GUID),
            "The GUIDs of its ports, each by the `interface` of its [[nodes.ports]]. They go before that port's device or pci, and a port that has neither needs one on each host of the group.",
        ),
        key(
            "addresses",
            Optional,
            Map(LABEL, "compute", &Text("^[0-9A-Fa-f.:]+$", "10.0.200.17")),
            "Its addresses, by network, where they are not what its number says. No prefix length: that is the network's.",
        ),
    ],
};

/// `[verify]`
pub static VERIFY: Table = Table {
    title: "[verify]",
    doc: "What `selvedge verify` demands of each pair of ports.",
    keys: &[
        key(
            "min-bandwidth",
            Default("90%"),
            Text("^[0-9]+(\\.[0-9]+)? ?(%|[kMGT]B/s|[MGT]b/s)$", "92%"),
            "One-direction RDMA WRITE bandwidth: a percentage of the fabric's data rate, or bytes (GB/s) or bits (Gb/s) a second; G is 10^9. Default: 90%.",
        ),
        key(
            "max-latency",
            Default("5us"),
            Text("^[0-9]+(\\.[0-9]+)? ?(ns|us|ms|s)$", "5us"),
            "Typical (median) RDMA READ latency, in ns, us, ms or s. Default: 5us.",
        ),
    ],
};

/// The tables whose keys are fixed, for tests and help.
pub static TABLES: [&Table; 10] =
    [&SPEC, &CLUSTER, &FABRIC, &SUBNET_MANAGER, &PARTITION, &NETWORK, &NODES, &PORT, &HOST_EXCEPTION, &VERIFY];
