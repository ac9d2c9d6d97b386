//! hosts: the names of the cluster's interfaces, for /etc/hosts and name servers.

use std::collections::HashSet;

use super::args::{Format, Hosts, HostsFormat};
use super::host::{in_the_spec, load, read_spec};
use super::{Outcome, Stop, exit, print, write_out};
use crate::columns::columns;
use crate::hostlist::HostList;
use crate::hosts::{Interface, interfaces, lines};
use crate::name::HostName;
use crate::spec::Spec;

pub(super) fn hosts(args: &Hosts) -> Outcome {
    let spec = load(&read_spec(&args.spec.path)?)?;
    let mut all = interfaces(&spec).map_err(|error| Stop::failed(error.to_string()))?;
    if let Some(asked) = asked(&spec, &args.node)? {
        all.retain(|one| asked.contains(&one.host));
    }
    match args.format {
        HostsFormat::Hosts => write_out(lines(&spec.cluster.name, &all).as_bytes())?,
        HostsFormat::Text => print(Format::Text, &all, || table(&all))?,
        HostsFormat::Json => print(Format::Json, &all, String::new)?,
    }
    Ok(exit::OK)
}

/// The hosts of the lists, each by the name that the spec has for it; `None` where all are meant.
fn asked(spec: &Spec, lists: &[HostList]) -> Result<Option<HashSet<HostName>>, Stop> {
    if lists.is_empty() {
        return Ok(None);
    }
    lists.iter().flat_map(HostList::iter).map(|host| in_the_spec(spec, &host)).collect::<Result<_, _>>().map(Some)
}

fn table(all: &[Interface]) -> String {
    let row = |one: &Interface| {
        let interface = one.interface.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        [one.name.to_string(), one.address.to_string(), one.host.to_string(), one.network.to_string(), interface]
    };
    let rows: Vec<[String; 5]> = all.iter().map(row).collect();
    columns(["name", "address", "host", "network", "interface"], &rows)
}
