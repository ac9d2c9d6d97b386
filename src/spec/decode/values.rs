//! The values with a syntax of their own: host lists, speeds, networks, quantities, addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use toml::de::DeValue;

use super::leaf::{self, quote};
use super::{Decoder, Value, place};
use super::{reserved, words};
use crate::hostlist::{HostList, NameList, NameListFault};
use crate::name::{IfName, NameError, UnitName};
use crate::rdma::{Guid, PKey, Speed};
use crate::spec::fault::{Code, Fault, Span};
use crate::spec::model::{FabricMtu, Members, MinBandwidth, ModuleOption, MtuChoice, PciAddress};
use crate::spec::quantity::{self, QuantityError};

pub(super) fn host_list(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<HostList> {
    let text = leaf::string(d, value)?;
    let e = match text.parse() {
        Ok(list) => return Some(list),
        Err(e) => e,
    };
    let at = within(d.text, place(value), text, e.at, e.len);
    let fault = match &e.kind {
        NameListFault::TooMany { .. } => Fault::new(Code::TooManyHosts, at, e.kind.to_string())
            .label("too many")
            .help("look for a digit too many in a range"),
        NameListFault::Duplicate(_) => Fault::new(Code::DuplicateHost, at, e.kind.to_string())
            .label("the second time")
            .help("each host is named once"),
        NameListFault::BadName(e) => {
            Fault::new(Code::BadName, at, format!("{} is not {}", quote(&e.text), e.kind)).help(e.rule)
        }
        kind => Fault::new(Code::BadHostList, at, kind.to_string())
            .help(host_list_help(kind, text.get(e.at..e.at + e.len).unwrap_or_default())),
    };
    d.faults.push(fault);
    None
}

/// A host list, or `all`. A host whose name is `all` can't be named here, and no site has one.
pub(super) fn members(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<Members> {
    if matches!(value.get_ref(), DeValue::String(text) if text == "all") {
        return Some(Members::All);
    }
    host_list(d, value).map(Members::Hosts)
}

/// A partition's key, in either form.
pub(super) fn pkey(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<PKey> {
    let number = leaf::integer(d, value, 0..=0xffff)?;
    let key = u16::try_from(number).ok().and_then(PKey::new);
    let (message, help) = match key {
        Some(key) if !key.is_default() => return Some(key),
        Some(_) => (
            format!("{number:#06x} is the key of the default partition, which every port is in"),
            "a network without `partition` is on it; other partitions have keys from 0x0001 to 0x7ffe",
        ),
        None => (
            format!("{number:#06x} is no partition's key: without the bit of full membership it is 0"),
            "partitions have keys from 0x0001 to 0x7ffe",
        ),
    };
    d.faults.push(Fault::new(Code::BadPkey, place(value), message).label("not a partition's key").help(help));
    None
}

/// `piece` is what the fault is about.
fn host_list_help(kind: &NameListFault, piece: &str) -> String {
    match kind {
        NameListFault::Backwards { .. } => {
            let range = piece.split('/').next().unwrap_or_default();
            let (high, low) = range.split_once('-').unwrap_or_default();
            format!("did you mean `{low}-{high}`?")
        }
        NameListFault::Padding { start, end } => {
            let width = start.len().max(end.len());
            format!("pad both to one width: `{start:0>width$}-{end:0>width$}`")
        }
        NameListFault::Ambiguous => {
            "pad the numbers to one width, as in `[01-10]`, or put a letter, `-` or `.` after the range".to_owned()
        }
        _ => "a host list is written as for ClusterShell and Slurm: `node[01-16,20],login1`, `rack[1-4]-n[01-16]`, `n[0-10/2]`"
            .to_owned(),
    }
}

/// The place of `len` bytes from `at` within a string value: exact where the file has the text as it is.
fn within(file: &str, whole: Span, text: &str, at: usize, len: usize) -> Span {
    let written = file.get(whole.start..whole.end).unwrap_or_default();
    let plain = written.get(1..written.len().saturating_sub(1)) == Some(text);
    if plain { Span { start: whole.start + 1 + at, end: whole.start + 1 + at + len } } else { whole }
}

pub(super) fn speed(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<Speed> {
    leaf::parsed(d, value, str::parse, |text, _, at| {
        let words = words::speeds();
        let help = match crate::spec::nearest::nearest(text, words.iter().copied()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => "SDR DDR QDR FDR EDR HDR NDR XDR for InfiniBand; 10G 25G 40G 50G 100G 200G 400G 800G for RoCE"
                .to_owned(),
        };
        Fault::new(Code::BadSpeed, at, format!("{} is not a link speed", quote(text))).help(help)
    })
}

/// The most ports that one row can stand for.
const MOST_PORTS: usize = 64;

/// One name, or a range of names such as `mlx5_[0-7]`, for as many ports.
pub(super) fn series<N: FromStr<Err = NameError>>(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<Vec<N>> {
    let text = leaf::string(d, value)?;
    if !text.contains(['[', ']', ',']) {
        return leaf::name(d, value).map(|name| vec![name]);
    }
    let fault = match text.parse::<NameList<N>>() {
        Ok(list) if list.count() <= MOST_PORTS => return Some(list.iter().collect()),
        Ok(list) => {
            let message = format!("this range stands for {} ports, and {MOST_PORTS} is the most", list.count());
            Fault::new(Code::PortRange, place(value), message).help("look for a digit too many")
        }
        Err(e) => {
            let at = within(d.text, place(value), text, e.at, e.len);
            let help = match &e.kind {
                NameListFault::BadName(e) => e.rule.to_owned(),
                NameListFault::Backwards { .. } | NameListFault::Padding { .. } => {
                    host_list_help(&e.kind, text.get(e.at..e.at + e.len).unwrap_or_default())
                }
                _ => "a range of ports is written `mlx5_[0-7]` or `mlx5_[0-3,6]`".to_owned(),
            };
            let message = match &e.kind {
                NameListFault::BadName(e) => format!("{} is not {}", quote(&e.text), e.kind),
                kind => kind.to_string(),
            };
            Fault::new(Code::PortRange, at, message).help(help)
        }
    };
    d.faults.push(fault);
    None
}

/// The interface names of a row's ports.
pub(super) fn interfaces(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<Vec<IfName>> {
    let names: Vec<IfName> = series(d, value)?;
    let Some((name, rule)) = names.iter().find_map(|name| Some((name, reserved::interface(name)?))) else {
        return Some(names);
    };
    d.faults.push(
        Fault::new(Code::BadName, place(value), format!("`{name}` can't be the interface name of a port"))
            .label("taken")
            .help(rule),
    );
    None
}

/// An array of services, each the name of a unit with or without `.service`.
pub(super) fn services<'t>(d: &mut Decoder<'t>, value: &Value<'t>) -> Option<BTreeSet<UnitName>> {
    let mut all = BTreeSet::new();
    for item in leaf::array(d, value)? {
        all.extend(service(d, item));
    }
    Some(all)
}

fn service(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<UnitName> {
    const OTHERS: [&str; 10] =
        ["socket", "target", "slice", "scope", "timer", "path", "mount", "automount", "swap", "device"];
    let text = leaf::string(d, value)?;
    let kind = text.rsplit_once('.').map(|(_, kind)| kind);
    if kind.is_some_and(|kind| OTHERS.contains(&kind)) {
        let message = format!("{} is no service", quote(text));
        d.faults.push(
            Fault::new(Code::BadName, place(value), message)
                .label("starts no jobs")
                .help("the limit is of the service that starts the jobs: `slurmd`, `sshd`, `containerd`"),
        );
        return None;
    }
    let named = if kind == Some("service") { text.to_owned() } else { format!("{text}.service") };
    leaf::name_at(d, &named, place(value))
}

pub(super) fn cidr(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<IpNet> {
    let net = leaf::parsed(d, value, str::parse::<IpNet>, |text, _, at| {
        Fault::new(Code::BadCidr, at, format!("{} is not a network", quote(text)))
            .help("a network is its first address and the length of its prefix: `10.0.0.0/16`, `fd00:1::/64`")
    })?;
    if let Some((special, what)) = reserved::network(&net) {
        let message = if special.contains(&net) {
            format!("{net} is for {what}")
        } else {
            format!("{net} has {special} in it, which is for {what}")
        };
        d.faults.push(Fault::new(Code::BadCidr, place(value), message).label("not for hosts").help(
            "private networks are usual: a part of `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16` or `fd00::/8`",
        ));
        return None;
    }
    if net.addr() == net.network() {
        return Some(net);
    }
    d.faults.push(
        Fault::new(Code::BadCidr, place(value), format!("{net} is an address within a network, not the network"))
            .label("has host bits")
            .help(format!("did you mean `{}`?", net.trunc())),
    );
    None
}

pub(super) fn fabric_mtu(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<FabricMtu> {
    match leaf::integer(d, value, 0..=i64::MAX)? {
        2048 => Some(FabricMtu::B2048),
        4096 => Some(FabricMtu::B4096),
        _ => {
            let written = leaf::as_written(d, value);
            d.faults.push(
                Fault::new(Code::NumberOutOfRange, place(value), format!("{written} is not an IB MTU for IPoIB"))
                    .label("2048 or 4096")
                    .help("opensm's default is 2048 bytes; 4096 gives IPoIB datagrams of 4092 bytes"),
            );
            None
        }
    }
}

pub(super) fn mtu(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<MtuChoice> {
    if let DeValue::String(text) = value.get_ref() {
        if text == "max" {
            return Some(MtuChoice::Max);
        }
        d.faults.push(
            Fault::new(Code::UnknownWord, place(value), format!("{} is not an MTU", quote(text)))
                .help("an MTU is \"max\" or a number of bytes without quotes"),
        );
        return None;
    }
    let bytes = leaf::integer(d, value, 0..=i64::from(u32::MAX))?;
    u32::try_from(bytes).ok().map(MtuChoice::Bytes)
}

pub(super) fn pci(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<PciAddress> {
    leaf::parsed(d, value, str::parse, |text, _, at| {
        Fault::new(Code::BadPciAddress, at, format!("{} is not a PCI address", quote(text)))
            .help("write it as `lspci -D` does: domain, bus, device and function, as in `0000:3b:00.0`")
    })
}

pub(super) fn guid(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<Guid> {
    let guid: Guid = leaf::parsed(d, value, str::parse, |text, _, at| {
        Fault::new(Code::BadGuid, at, format!("{} is not a GUID", quote(text)))
            .help("16 hexadecimal digits, as `ibstat` prints them: `0x0002c90300000001`")
    })?;
    // What a port has that is not set up, and what a read of a dead card gives.
    if matches!(guid.0, 0 | u64::MAX) {
        let fault = Fault::new(Code::UnsetGuid, place(value), format!("{guid} is the GUID of no port"));
        d.faults.push(fault.help("a port's own GUID, as `ibstat` prints it; one that is all zeros or ones is not set"));
        return None;
    }
    Some(guid)
}

pub(super) fn address(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<IpAddr> {
    leaf::parsed(d, value, str::parse, |text, _, at| {
        let help = match text.parse::<IpNet>() {
            Ok(net) => format!("the prefix length is the network's: `{}`", net.addr()),
            Err(_) => "an address is written `10.0.200.7` or `fd00:1::7`".to_owned(),
        };
        Fault::new(Code::BadAddress, at, format!("{} is not an address", quote(text))).help(help)
    })
}

pub(super) fn duration(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<Duration> {
    leaf::parsed(d, value, quantity::duration, |text, e, at| {
        quantity_fault(
            Code::BadDuration,
            text,
            e,
            at,
            "a time",
            "a number and ns, us, ms or s, up to a day: `5us`, `2.5us`, `1ms`",
        )
    })
}

pub(super) fn bandwidth(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<MinBandwidth> {
    leaf::parsed(d, value, quantity::bandwidth, |text, e, at| {
        let units = "a percentage of the link (`92%`), bytes (`23 GB/s`) or bits (`184 Gb/s`) a second; G is 10^9";
        quantity_fault(Code::BadBandwidth, text, e, at, "a bandwidth", units)
    })
}

fn quantity_fault(code: Code, text: &str, e: QuantityError, at: Span, what: &str, help: &str) -> Fault {
    Fault::new(code, at, format!("{} is not {what}: {e}", quote(text))).help(help)
}

/// An integer, a boolean, or one word that needs no quotes in a modprobe file.
pub(super) fn module_option(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<ModuleOption> {
    let bad = |why: &str| {
        Fault::new(Code::BadModuleOption, place(value), format!("this can't be a module's option: {why}"))
            .help("an option is an integer, true, false, or one word of letters, digits and `-_.:,/+`")
    };
    let fault = match value.get_ref() {
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => return Some(ModuleOption(number.to_string())),
            Err(_) => bad("the number has more than 64 bits"),
        },
        // Kernel booleans are written Y and N in sysfs and read as such.
        DeValue::Boolean(on) => return Some(ModuleOption(if *on { "Y" } else { "N" }.to_owned())),
        DeValue::String(text) if text.is_empty() => bad("it is empty"),
        DeValue::String(text) if text.len() > 1024 => bad("it has more than 1024 bytes"),
        DeValue::String(text) if text.chars().all(ModuleOption::may_hold) => {
            return Some(ModuleOption(text.to_string()));
        }
        DeValue::String(_) => bad("it has a character that a modprobe file would take otherwise"),
        _ => bad("it is no single value"),
    };
    d.faults.push(fault);
    None
}
