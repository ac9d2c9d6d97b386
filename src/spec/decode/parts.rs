//! The tables of the spec below the top level, one function each.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use super::fields::Fields;
use super::words;
use super::{Decoder, Value, leaf, place, values};
use crate::name::{HostName, ModuleName, NameError};
use crate::spec::draft::{Entry, FabricDraft, GroupDraft, HostDraft, ManagerDraft, NetworkDraft, PortDraft, Read};
use crate::spec::fault::{Code, Fault, Located, Span};
use crate::spec::keys;
use crate::spec::model::{
    ConfigChoice, DeviceSelector, FabricMtu, ModeChoice, ModuleOption, MtuChoice, Numbering, Topology,
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
        cidr: fields.required(d, "cidr", values::cidr),
        mode: fields.or(d, "mode", ModeChoice::Auto, |d, v| leaf::word(d, v, words::MODES)),
        mtu: fields.or(d, "mtu", MtuChoice::Max, values::mtu),
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
        ports: fields.rows(d, "ports", &keys::PORT, port),
    }
}

fn port<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>, at: Span) -> PortDraft {
    PortDraft {
        device: selector(d, fields, at),
        port: fields.or(d, "port", 1, |d, v| {
            let number = leaf::integer(d, v, 1..=254)?;
            u8::try_from(number).ok()
        }),
        interface: fields.optional(d, "interface", values::interface),
        network: fields.required(d, "network", leaf::name),
    }
}

/// One of `device`, `pci` and `guid`, or none where the hosts can name the port's GUID by its interface.
fn selector<'t>(d: &mut Decoder<'t>, fields: &Fields<'_, 't>, at: Span) -> Read<Option<DeviceSelector>> {
    let keys = ["device", "pci", "guid"];
    let given: Vec<_> = keys.into_iter().filter_map(|key| Some((key, place(fields.get(key)?)))).collect();
    let device = fields.optional(d, "device", |d, v| leaf::name(d, v).map(DeviceSelector::Name).map(Some));
    let pci = fields.optional(d, "pci", |d, v| values::pci(d, v).map(DeviceSelector::Pci).map(Some));
    let guid = fields.optional(d, "guid", |d, v| values::guid(d, v).map(DeviceSelector::Guid).map(Some));
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
