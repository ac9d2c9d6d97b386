//! The names of interfaces: lines for `/etc/hosts`, or rows for a site's name server.
//!
//! A checked spec comes in, the name and address of each interface of the cluster go out, or what stands in the way of
//! a name. Hosts are walked over once, and no list is expanded. Nothing here asks a host.
//!
//! One rule makes all names: `<host>-<interface>`, and `<host>-<network>` where the spec does not pin the interface. Of
//! a host with a domain, it is the first label that gets the ending: `gpu017-ib0.site2.example`. A dot in an
//! interface's name would begin a domain, so it becomes `-`: `node17-ib0-8001` is on a partition. An interface with
//! addresses in several networks has a line for each.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use crate::addressing::{self, AddressError};
use crate::compile::{own_address, tag};
use crate::name::{HostName, IfName, Label, NameError};
use crate::spec::{NodeGroup, Port, Spec};

/// One address of an interface of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Its name in `/etc/hosts`: `node17-ib0`.
    pub name: HostName,
    /// Its address.
    pub address: IpAddr,
    /// Its host.
    pub host: HostName,
    /// Its network in the spec.
    pub network: Label,
    /// The interface, where the spec pins its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
}

/// Why an interface has no name of its own.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostsError {
    /// It is too long, or not well formed.
    #[error(
        "{host} cannot have a name for `{ending}`: {source}; pin an `interface` with another name in its [[nodes.ports]]"
    )]
    BadName {
        /// The host.
        host: HostName,
        /// Its interface or network.
        ending: String,
        /// Which rule it breaks.
        source: NameError,
    },
    /// Two interfaces have one.
    #[error(
        "{first} and {second} would both have an interface called `{name}`; pin an `interface` with another name in one's [[nodes.ports]]"
    )]
    Twice {
        /// The name.
        name: HostName,
        /// The host that has it first.
        first: HostName,
        /// The other.
        second: HostName,
    },
    /// A host of the cluster has it.
    #[error(
        "an interface of {host} would be called `{name}`, which is another host of the spec; pin an `interface` with another name in its [[nodes.ports]]"
    )]
    Host {
        /// The name.
        name: HostName,
        /// The host with the interface.
        host: HostName,
    },
    /// The host has no address in a network: the spec was not checked.
    #[error("`{host}` has no address in the network `{network}`: {source}")]
    NoAddress {
        /// The host.
        host: HostName,
        /// The network.
        network: Label,
        /// Why.
        source: AddressError,
    },
    /// A network, its fabric or its partition is not there: the spec was not checked.
    #[error("the network `{0}` is not whole in the spec")]
    NoNetwork(Label),
}

/// Every interface of the cluster, in the order of the spec's groups, hosts, ports and networks.
///
/// # Errors
/// When one of them can have no name of its own. Names are the same in capitals and small letters.
pub fn interfaces(spec: &Spec) -> Result<Vec<Interface>, HostsError> {
    let mut all: Vec<Interface> = Vec::new();
    for group in &spec.nodes {
        for (position, host) in group.hosts.iter().enumerate() {
            for port in &group.ports {
                for network in &port.networks {
                    all.push(interface(spec, (group, position), &host, port, network)?);
                }
            }
        }
    }
    each_is_one(spec, &all)?;
    Ok(all)
}

/// That no name is another interface's or a host's.
fn each_is_one(spec: &Spec, all: &[Interface]) -> Result<(), HostsError> {
    let lower = |name: &HostName| name.as_str().to_ascii_lowercase();
    let hosts: HashSet<String> =
        spec.nodes.iter().flat_map(|group| group.hosts.iter()).map(|host| lower(&host)).collect();
    let mut seen: HashMap<String, &Interface> = HashMap::with_capacity(all.len());
    for one in all {
        let Interface { name, host, .. } = one;
        let plain = lower(name);
        if hosts.contains(&plain) {
            return Err(HostsError::Host { name: name.clone(), host: host.clone() });
        }
        let Some(first) = seen.insert(plain, one) else { continue };
        let is_same = first.host == *host && first.interface.is_some() && first.interface == one.interface;
        if !is_same {
            return Err(HostsError::Twice { name: name.clone(), first: first.host.clone(), second: host.clone() });
        }
    }
    Ok(())
}

fn interface(
    spec: &Spec,
    (group, position): (&NodeGroup, usize),
    host: &HostName,
    port: &Port,
    name: &Label,
) -> Result<Interface, HostsError> {
    let missing = || HostsError::NoNetwork(name.clone());
    let network = spec.networks.get(name).ok_or_else(missing)?;
    // By its place in the list, which is known here: looking each host up would take longer than all else.
    let by_number = || {
        let NodeGroup { numbering, stride, offset, .. } = group;
        let number = addressing::number(host.as_str(), position, *numbering, *stride, *offset);
        let number = number.ok_or_else(|| AddressError::NoNumber { host: host.clone() })?;
        addressing::address_of_number(network.cidr, number)
    };
    let own = own_address(spec, host, name, network).map(|own| own.value);
    let address = own.map_or_else(by_number, Ok).map_err(|source| HostsError::NoAddress {
        host: host.clone(),
        network: name.clone(),
        source,
    })?;
    let interface = match &port.interface {
        None => None,
        Some(parent) => {
            let fabric = spec.fabrics.get(&network.fabric).ok_or_else(missing)?;
            let tag = tag(fabric, name, network).map_err(|_| missing())?;
            let child = tag.map(|tag| tag.value.child_of(parent)).transpose();
            let bad = |source| HostsError::BadName { host: host.clone(), ending: parent.to_string(), source };
            Some(child.map_err(bad)?.unwrap_or_else(|| parent.clone()))
        }
    };
    let ending = interface.as_ref().map_or(name.as_str(), |interface| interface.as_str());
    Ok(Interface {
        name: name_of(host, ending)?,
        address: address.addr(),
        host: host.clone(),
        network: name.clone(),
        interface,
    })
}

fn name_of(host: &HostName, ending: &str) -> Result<HostName, HostsError> {
    let (label, domain) = match host.as_str().split_once('.') {
        Some((label, domain)) => (label, format!(".{domain}")),
        None => (host.as_str(), String::new()),
    };
    let text = format!("{label}-{}{domain}", ending.replace('.', "-"));
    text.parse().map_err(|source| HostsError::BadName { host: host.clone(), ending: ending.to_owned(), source })
}

/// The lines of `/etc/hosts`, below one that says where they are from.
#[must_use]
pub fn lines<'a>(cluster: &Label, interfaces: impl IntoIterator<Item = &'a Interface>) -> String {
    let mut out = format!("# The interfaces of the cluster {cluster}, from `selvedge hosts`.\n");
    for Interface { address, name, .. } in interfaces {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{address} {name}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "
version = 1
cluster.name = \"test\"
fabrics.f = { transport = \"roce\", speed = \"25G\" }
networks.rail0 = { fabric = \"f\", cidr = \"10.0.0.0/16\" }
networks.rail1 = { fabric = \"f\", cidr = \"fd00:1::/64\" }
hosts.n2.addresses.rail0 = \"10.0.200.2\"
[[nodes]]
hosts = \"n[1-2],gpu017.site2.example\"
ports = [{ device = \"a\", interface = \"ib0.x\", network = \"rail0\" }, { device = \"b\", network = \"rail1\" }]
";

    fn of(text: &str) -> Result<Vec<Interface>, HostsError> {
        interfaces(&crate::spec::load("test", text).unwrap_or_else(|faults| panic!("{faults:?}")).spec)
    }

    #[test]
    fn names_are_made_by_one_rule() {
        let all = of(SPEC).unwrap();
        assert_eq!(
            lines(&"test".parse().unwrap(), &all),
            "\
# The interfaces of the cluster test, from `selvedge hosts`.
10.0.0.1 n1-ib0-x
fd00:1::1 n1-rail1
10.0.200.2 n2-ib0-x
fd00:1::2 n2-rail1
10.0.0.17 gpu017-ib0-x.site2.example
fd00:1::11 gpu017-rail1.site2.example
"
        );
    }

    #[test]
    fn an_interface_on_a_partition_has_its_own_name_and_one_in_two_networks_two_lines() {
        let text = SPEC
            .replace(
                "\"roce\", speed = \"25G\"",
                "\"infiniband\", speed = \"HDR\", partitions.p = { pkey = 0x0001, full = \"all\" }",
            )
            .replace("cidr = \"10.0.0.0/16\"", "cidr = \"10.0.0.0/16\", partition = \"p\"")
            .replace("networks.rail1", "networks.v4 = { fabric = \"f\", cidr = \"10.9.0.0/16\" }\nnetworks.rail1")
            .replace("n[1-2],gpu017.site2.example", "n2")
            .replace("interface = \"ib0.x\"", "interface = \"ib0\"")
            .replace(
                "device = \"b\", network = \"rail1\"",
                "device = \"b\", interface = \"ib1\", network = [\"rail1\", \"v4\"]",
            );
        let lines = lines(&"test".parse().unwrap(), &of(&text).unwrap());
        assert!(lines.ends_with("\n10.0.200.2 n2-ib0-8001\nfd00:1::2 n2-ib1\n10.9.0.2 n2-ib1\n"), "{lines}");
    }

    /// What is configured and what is named must be one address.
    #[test]
    fn addresses_are_those_that_are_configured() {
        let spec = crate::spec::load("test", SPEC).unwrap().spec;
        for Interface { host, network, address, .. } in interfaces(&spec).unwrap() {
            let intent = crate::compile::compile(&spec, &host).unwrap();
            let mut addresses = intent.ports.iter().flat_map(|port| port.addresses());
            let configured = addresses.find(|own| own.network == network).unwrap();
            assert_eq!(configured.address.value.addr(), address);
        }
    }

    #[test]
    fn a_name_that_is_not_one_interfaces_own_is_refused() {
        let said = |text: &str| of(text).unwrap_err().to_string();
        let twice =
            said(&SPEC.replace("n[1-2],", "n1,N1-x2,").replace("hosts.n2", "hosts.N1-x2").replace("ib0.x", "x2-rail1"));
        assert!(twice.starts_with("n1 and N1-x2 would both have an interface called `N1-x2-rail1`"), "{twice}");
        let host = said(&SPEC.replace("n[1-2],", "n[1-2],N1-ib7,").replace("ib0.x", "ib7"));
        assert!(host.starts_with("an interface of n1 would be called `n1-ib7`, which is another host"), "{host}");
        let long = said(&SPEC.replace("gpu017.", &format!("gpu{}17.", "x".repeat(56))));
        assert!(
            long.contains("x17.site2.example cannot have a name for `ib0.x`") && long.contains("63 bytes"),
            "{long}"
        );
    }
}
