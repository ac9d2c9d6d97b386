//! The tables of the spec below the top level, one function each.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use toml::de::DeValue;

use super::fields::Fields;
use super::words;
use super::{Decoder, Value, leaf, place, values};
use crate::name::{HostName, IfName, Label, ModuleName, NameError};
use crate::spec::draft::{
    Entry, FabricDraft, GroupDraft, HostDraft, ManagerDraft, NetworkDraft, PartitionDraft, PortDraft, Read, Rows,
};
use crate::spec::fault::{Code, Fault, Located, Span};
use crate::spec::keys;
use crate::spec::model::{
    ConfigChoice, DeviceSelector, FabricMtu, Layer, Members, ModeChoice, ModuleOption, MtuChoice, Numbering, Topology,
};

pub(super) fn fabric<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>, at: Span) -> FabricDraft {
    FabricDraft {
        at,
        transport: fields.required(d, "transport", |d, v| leaf::word(d, v, words::TRANSPORTS)),
        speed: fields.required(d, "speed", values::speed),
        topology: fields.or(d, "topology", Topology::SingleSwitch, |d, v| leaf::word(d, v, words::TOPOLOGIES)),
        mtu: fields.or(d, "mtu", FabricMtu::default(), values::fabric_mtu),
        mtu_given: fields.get("mtu").is_some(),
        manager: fields.get("subnet-manager").map(|v| manager(d, v)),
        partitions: fields.named(d, "partitions", &keys::PARTITION, partition),
    }
}

fn partition<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>, at: Span) -> PartitionDraft {
    let lists = ["full", "limited"].map(|key| fields.get(key).is_some());
    // A partition that says nothing of its members is one of all hosts.
    let full = if lists == [false, false] { Members::All } else { Members::None };
    PartitionDraft {
        at,
        pkey: fields.required(d, "pkey", values::pkey),
        full: fields.or(d, "full", full, values::members),
        limited: fields.or(d, "limited", Members::None, values::members),
    }
}

fn manager<'t>(d: &mut Decoder<'t>, value: &Value<'t>) -> ManagerDraft {
    let at = place(value);
    let Some(fields) = Fields::of(d, value, at, &keys::SUBNET_MANAGER) else {
        return ManagerDraft { at, primary: None, standby: None };
    };
    ManagerDraft {
        at,
        primary: fields.required(d, "primary", leaf::name::<HostName>),
        standby: fields.or(d, "standby", Vec::new(), leaf::names).map(|standby| standby.value),
    }
}

pub(super) fn network<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>, at: Span) -> NetworkDraft {
    NetworkDraft {
        at,
        fabric: fields.required(d, "fabric", leaf::name),
        on: layer(d, fields, at),
        cidr: fields.required(d, "cidr", values::cidr),
        mode: fields.or(d, "mode", ModeChoice::Auto, |d, v| leaf::word(d, v, words::MODES)),
        mtu: fields.or(d, "mtu", MtuChoice::Max, values::mtu),
    }
}

/// `partition` or `vlan`, not both.
fn layer<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>, at: Span) -> Read<Layer> {
    let partition = fields.optional(d, "partition", |d, v| leaf::name(d, v).map(Layer::Partition));
    let vlan = fields.optional(d, "vlan", |d, v| {
        let number = leaf::integer(d, v, 1..=4094)?;
        u16::try_from(number).ok().map(Layer::Vlan)
    });
    match [fields.get("partition"), fields.get("vlan")] {
        [None, None] => Some(Located { value: Layer::Port, span: at }),
        [Some(partition), Some(vlan)] => {
            d.faults.push(
                Fault::new(
                    Code::VlanOnInfiniband,
                    place(vlan),
                    "a network is on a partition or on a VLAN, not on both",
                )
                .label("and a VLAN")
                .also(place(partition), "a partition")
                .help("partitions are InfiniBand's, VLANs are Ethernet's: keep the one of this network's fabric"),
            );
            None
        }
        _ => partition.or(vlan),
    }
}

pub(super) fn group<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>, _: Span) -> GroupDraft {
    GroupDraft {
        hosts: fields.required(d, "hosts", values::host_list),
        config: fields.or(d, "config", ConfigChoice::Auto, |d, v| leaf::word(d, v, words::CONFIGS)),
        numbering: fields.or(d, "numbering", Numbering::Name, |d, v| leaf::word(d, v, words::NUMBERINGS)),
        stride: fields.or(d, "stride", 1, |d, v| leaf::integer(d, v, 1..=keys::MOST_OFFSET)),
        offset: fields.or(d, "offset", 0, |d, v| leaf::integer(d, v, -keys::MOST_OFFSET..=keys::MOST_OFFSET)),
        memlock: fields.or(d, "memlock", BTreeSet::new(), values::services),
        ports: ports(fields.rows(d, "ports", &keys::PORT, row_of_ports)),
    }
}

fn ports(rows: Rows<Vec<PortDraft>>) -> Rows<PortDraft> {
    Rows { all: rows.all.into_iter().flatten().collect(), whole: rows.whole }
}

/// What one key of a row says of each of its ports.
type Series<T> = Located<Vec<T>>;

/// One port, or as many as the ranges in the row stand for: the first of each, the second of each, and so on.
fn row_of_ports<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>, at: Span) -> Vec<PortDraft> {
    let device = selector(d, fields, at);
    let port = fields.or(d, "port", 1, |d, v| {
        let number = leaf::integer(d, v, 1..=254)?;
        u8::try_from(number).ok()
    });
    let interface = fields.optional(d, "interface", values::interfaces);
    let networks = networks(d, fields);
    let count = advance_together(d, &device, interface.as_ref(), &networks.all);
    let nth = |index: usize| PortDraft {
        device: device.as_ref().and_then(|read| match &read.value {
            None => Some(Located { value: None, span: read.span }),
            Some(all) => all.get(index).map(|own| Located { value: Some(own.clone()), span: read.span }),
        }),
        port: port.clone(),
        interface: interface.as_ref().and_then(|all| nth_of(all, index)),
        networks: Rows {
            all: networks.all.iter().filter_map(|all| nth_of(all, index)).collect(),
            whole: networks.whole && networks.all.iter().all(|all| all.value.len() > index),
        },
    };
    (0..count).map(nth).collect()
}

fn nth_of<T: Clone>(all: &Series<T>, index: usize) -> Read<T> {
    all.value.get(index).map(|value| Located { value: value.clone(), span: all.span })
}

/// How many ports a row is: as many as its longest range. Each other key has to name as many.
fn advance_together(
    d: &mut Decoder<'_>,
    device: &Read<Option<Vec<DeviceSelector>>>,
    interface: Option<&Series<IfName>>,
    networks: &[Series<Label>],
) -> usize {
    let selected = device.as_ref().and_then(|read| Some((read.span, read.value.as_ref()?.len())));
    let all = selected
        .into_iter()
        .chain(interface.map(|all| (all.span, all.value.len())))
        .chain(networks.iter().map(|all| (all.span, all.value.len())));
    let all: Vec<(Span, usize)> = all.collect();
    let Some(&(longest, count)) = all.iter().max_by_key(|(_, len)| *len) else { return 1 };
    let ports = |count: usize| if count == 1 { "one port".to_owned() } else { format!("{count} ports") };
    for (at, len) in all.iter().filter(|(_, len)| *len != count) {
        d.faults.push(
            Fault::new(Code::PortRange, *at, format!("this names {}, and another key of its row {count}", ports(*len)))
                .label(ports(*len))
                .also(longest, ports(count))
                .help(
                    "ranges in one [[nodes.ports]] advance together: `device = \"mlx5_[0-7]\"` with \
                 `network = \"rail[0-7]\"`, or give each port a [[nodes.ports]] of its own",
                ),
        );
    }
    count
}

/// A name or a range, or an array of them, of at least one.
fn networks<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>) -> Rows<Series<Label>> {
    let one_or_more = |d: &mut Decoder<'t>, value: &Value<'t>| {
        let DeValue::Array(items) = value.get_ref() else {
            let all: Vec<_> = series_at(d, value).into_iter().collect();
            return Some(Rows { whole: !all.is_empty(), all });
        };
        if items.is_empty() {
            d.faults.push(
                Fault::new(Code::MissingKey, place(value), "this port is in no network").label("empty").help(
                    "name one network or several: `network = \"compute\"`, `network = [\"compute\", \"storage\"]`",
                ),
            );
        }
        let all: Vec<_> = items.iter().filter_map(|item| series_at(d, item)).collect();
        Some(Rows { whole: !all.is_empty() && all.len() == items.len(), all })
    };
    fields.required(d, "network", one_or_more).map(|read| read.value).unwrap_or_default()
}

fn series_at<'t>(d: &mut Decoder<'t>, value: &Value<'t>) -> Read<Vec<Label>> {
    Some(Located { value: values::series(d, value)?, span: place(value) })
}

/// One of `device`, `pci` and `guid`, or none where the hosts can name the port's GUID by its interface.
fn selector<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>, at: Span) -> Read<Option<Vec<DeviceSelector>>> {
    let keys = ["device", "pci", "guid"];
    let given: Vec<_> = keys.into_iter().filter_map(|key| Some((key, place(fields.get(key)?)))).collect();
    let device = fields.optional(d, "device", |d, v| {
        let names = values::series(d, v)?;
        Some(Some(names.into_iter().map(DeviceSelector::Name).collect()))
    });
    let pci = fields.optional(d, "pci", |d, v| Some(Some(vec![DeviceSelector::Pci(values::pci(d, v)?)])));
    let guid = fields.optional(d, "guid", |d, v| Some(Some(vec![DeviceSelector::Guid(values::guid(d, v)?)])));
    if let (Some(number), Some(guid)) = (fields.get("port"), &guid) {
        d.faults.push(
            Fault::new(
                Code::DeviceSelector,
                place(number),
                "`guid` names a port already, so `port` is one word too many",
            )
            .label("not with a guid")
            .also(guid.span, "the port's GUID")
            .help("remove `port`"),
        );
    }
    let by_hosts = given.is_empty() && fields.get("interface").is_some();
    if let (Some(number), true) = (fields.get("port"), by_hosts) {
        d.faults.push(
            Fault::new(Code::DeviceSelector, place(number), "`port` is a number on an HCA, and no HCA is named here")
                .label("of which HCA?")
                .help("add `device` or `pci`, or remove `port`: the `guids` in [hosts.NAME] name ports"),
        );
    }
    match given.as_slice() {
        [_] => device.or(pci).or(guid),
        [] if by_hosts => Some(Located { value: None, span: at }),
        [] => {
            d.faults.push(
                Fault::new(Code::DeviceSelector, at, "this port does not say which HCA it is on")
                    .label("no device, pci or guid")
                    .help("add `device = \"mlx5_0\"`, `pci = \"0000:3b:00.0\"` or `guid = \"0x0002c90300000001\"`"),
            );
            None
        }
        [(first, first_at), (second, second_at), ..] => {
            d.faults.push(
                Fault::new(
                    Code::DeviceSelector,
                    *second_at,
                    format!("this port names its HCA by `{first}` and by `{second}`"),
                )
                .label(format!("and by `{second}`"))
                .also(*first_at, format!("by `{first}`"))
                .help("keep one of them: on a host where they disagree, neither can be right"),
            );
            None
        }
    }
}

pub(super) fn host<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>, at: Span) -> HostDraft {
    HostDraft {
        at,
        ssh: fields.optional(d, "ssh", leaf::name).map(|ssh| ssh.value),
        guids: fields.get("guids").map(|v| entries(d, v, values::guid)).unwrap_or_default(),
        addresses: fields.get("addresses").map(|v| entries(d, v, values::address)).unwrap_or_default(),
    }
}

/// A table whose keys are names of the spec's own.
fn entries<'t, K: FromStr<Err = NameError>, V>(
    d: &mut Decoder<'t>,
    value: &Value<'t>,
    read: impl Fn(&mut Decoder<'t>, &Value<'t>) -> Option<V>,
) -> Vec<Entry<K, V>> {
    let mut all = Vec::new();
    for (name, value) in leaf::table(d, value).into_iter().flatten() {
        let key = leaf::name_at::<K>(d, name.get_ref(), place(name));
        let value = read(d, value).map(|read| Located { value: read, span: place(value) });
        all.extend(key.map(|key| Entry { key: Located { value: key, span: place(name) }, value }));
    }
    all
}

/// `[modules.NAME]`, whose keys are the modules' own parameters.
pub(super) fn modules<'t>(
    d: &mut Decoder<'t>,
    value: &Value<'t>,
) -> BTreeMap<ModuleName, BTreeMap<ModuleName, ModuleOption>> {
    let mut all = BTreeMap::new();
    for (name, options) in leaf::table(d, value).into_iter().flatten() {
        let module = leaf::name_at::<ModuleName>(d, name.get_ref(), place(name));
        let mut read = BTreeMap::new();
        for (parameter, value) in leaf::table(d, options).into_iter().flatten() {
            let parameter = leaf::name_at::<ModuleName>(d, parameter.get_ref(), place(parameter));
            if let (Some(parameter), Some(option)) = (parameter, values::module_option(d, value)) {
                read.insert(parameter, option);
            }
        }
        if let Some(module) = module {
            all.insert(module, read);
        }
    }
    all
}
