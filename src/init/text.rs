//! The spec as TOML text, with what was found and what is only a guess in its comments.

use std::fmt::{Arguments, Write};

use super::blocks::{Block, Select};
use super::numbers::Numbers;
use super::rails::{Fabric, Network, Rails, by_value, fabric};
use super::survey::{Host, Place, carries};
use crate::count::counted;
use crate::facts::text::shown;
use crate::hostlist::fold;
use crate::name::HostName;
use crate::rdma::Transport;
use crate::resolve::keeper_at_work;

/// What was found, and what is made of it.
#[derive(Debug)]
pub(super) struct Found<'h> {
    pub(super) hosts: &'h [Host<'h>],
    /// The hosts that did not answer.
    pub(super) silent: Vec<&'h HostName>,
    pub(super) rails: Rails,
    pub(super) blocks: Vec<Block<'h>>,
    /// For each block.
    pub(super) numbered: Vec<Numbers>,
}

/// Lines of TOML.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// Writing to a string can't fail.
    fn line(&mut self, line: Arguments<'_>) {
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
    }

    /// Words of other hosts must have been through [`shown`]: a comment ends with its line.
    fn comment(&mut self, comment: Arguments<'_>) {
        self.line(format_args!("# {comment}"));
    }

    fn table(&mut self, header: Arguments<'_>) {
        self.0.push('\n');
        self.line(header);
    }
}

pub(super) fn spec(found: &Found<'_>) -> String {
    let mut out = Lines::default();
    head(&mut out, found);
    for fabric in &found.rails.0 {
        one_fabric(&mut out, found, fabric);
    }
    if found.rails.0.is_empty() {
        no_fabric(&mut out);
    }
    for fabric in &found.rails.0 {
        for network in &fabric.networks {
            one_network(&mut out, fabric, network);
        }
    }
    for (block, numbers) in found.blocks.iter().zip(&found.numbered) {
        nodes(&mut out, found, block, *numbers);
    }
    exceptions(&mut out, found);
    out.table(format_args!("[verify]"));
    out.line(format_args!(
        "min-bandwidth = \"90%\"             # of the fabric's speed, one direction; or \"23 GB/s\""
    ));
    out.line(format_args!("max-latency = \"5us\"               # RDMA READ, typical (median)"));
    out.0
}

fn head(out: &mut Lines, found: &Found<'_>) {
    let hosts = fold(found.hosts.iter().map(|host| &host.name));
    out.comment(format_args!("From the facts of {}: {hosts}.", counted(found.hosts.len(), "host")));
    if !found.silent.is_empty() {
        let silent = fold(found.silent.iter().copied());
        out.comment(format_args!("CHECK: not in here, since there was no answer: {silent}."));
    }
    out.comment(format_args!("A line with CHECK has a guess, which no host can tell. Read these first, then:"));
    out.comment(format_args!(
        "`selvedge check`, and `selvedge plan`, which changes nothing. docs/spec.md has each key."
    ));
    out.line(format_args!("version = 1"));
    out.table(format_args!("[cluster]"));
    out.line(format_args!("name = \"cluster\"                  # CHECK: for comments and reports"));
}

fn one_fabric(out: &mut Lines, found: &Found<'_>, of: &Fabric) {
    let name = fabric(of.transport);
    out.table(format_args!("[fabrics.{name}]"));
    if of.networks.len() > 1 {
        out.comment(format_args!(
            "CHECK: hosts have {} here. Where rails have switches of their own, each is a fabric of its own.",
            counted(of.networks.len(), "port")
        ));
    }
    out.line(format_args!("transport = \"{name}\""));
    for (rate, hosts) in &of.seen {
        out.comment(format_args!("links: {rate} on {hosts}"));
    }
    let (speed, why) = match (of.speed, of.transport, of.seen.len()) {
        (Some(speed), _, 1) => (speed.to_string(), "".to_owned()),
        (Some(speed), ..) => (speed.to_string(), "  # CHECK: hosts differ, and this is the highest".to_owned()),
        (None, Transport::Infiniband, _) => {
            ("HDR".to_owned(), "  # CHECK: no port has a link that would tell".to_owned())
        }
        (None, Transport::Roce, _) => ("100G".to_owned(), "  # CHECK: no port has a link that would tell".to_owned()),
    };
    out.line(format_args!("speed = \"{speed}\"{why}"));
    out.line(format_args!("topology = \"single-switch\"        # CHECK: or \"fat-tree\", \"dragonfly-plus\""));
    if of.transport == Transport::Infiniband {
        managers(out, found.hosts);
    }
}

fn no_fabric(out: &mut Lines) {
    out.table(format_args!("[fabrics.infiniband]"));
    out.comment(format_args!("CHECK: no host has an RDMA port that can be configured, and this is a placeholder."));
    out.comment(format_args!(
        "Without a driver for its HCA a host shows none: `selvedge facts` again once it is loaded."
    ));
    out.line(format_args!("transport = \"infiniband\"          # or \"roce\""));
    out.line(format_args!("speed = \"HDR\""));
}

/// Where there is a master among the hosts, it stays; where one answers that is not, none is asked for.
fn managers(out: &mut Lines, hosts: &[Host<'_>]) {
    let on_it = || hosts.iter().filter(|host| host.on(Transport::Infiniband).next().is_some());
    let ports = |host: &&Host<'_>, is: &dyn Fn(u16, u16) -> bool| {
        host.on(Transport::Infiniband).any(|place| is(place.port.lid, place.port.sm_lid))
    };
    let master = on_it().find(|host| ports(host, &|lid, sm_lid| lid != 0 && lid == sm_lid));
    let answers = on_it().any(|host| ports(&host, &|_, sm_lid| sm_lid != 0));
    let Some(primary) = master.or_else(|| on_it().next()) else { return };
    let standby = on_it().find(|host| host.name != primary.name);
    out.0.push('\n');
    let off = match (master, answers) {
        (Some(master), _) => {
            let or = if standby.is_some() { "the standby is a suggestion" } else { "a standby is missing" };
            out.comment(format_args!("CHECK: {} runs the master now; {or}.", master.name));
            ""
        }
        (None, false) => {
            out.comment(format_args!("CHECK: no subnet manager answers yet, and the first hosts are a suggestion."));
            ""
        }
        (None, true) => {
            out.comment(format_args!(
                "CHECK: a subnet manager answers that is on none of these hosts: on a switch, or elsewhere."
            ));
            out.comment(format_args!("To have hosts of the spec run it, stop that one, and take the # away here:"));
            "# "
        }
    };
    let without = [Some(primary), standby].into_iter().flatten().filter(|host| host.facts.programs.opensm.is_none());
    let without: Vec<&HostName> = without.map(|host| &host.name).collect();
    if !without.is_empty() {
        out.comment(format_args!("opensm is not installed on {}; the package is the distribution's.", fold(without)));
    }
    let standby = standby.map(|host| format!("\"{}\"", host.name)).unwrap_or_default();
    out.line(format_args!("{off}[fabrics.{}.subnet-manager]", fabric(Transport::Infiniband)));
    out.line(format_args!("{off}primary = \"{}\"", primary.name));
    out.line(format_args!("{off}standby = [{standby}]"));
}

fn one_network(out: &mut Lines, of: &Fabric, network: &Network) {
    out.table(format_args!("[networks.{}]", network.name));
    for (net, hosts) in &network.now {
        out.comment(format_args!("addresses now: of {net} on {hosts}"));
    }
    out.line(format_args!("fabric = \"{}\"", fabric(of.transport)));
    out.line(format_args!(
        "cidr = \"{}\"              # CHECK: a placeholder; the host with number n gets base + n",
        network.cidr
    ));
}

fn nodes(out: &mut Lines, found: &Found<'_>, block: &Block<'_>, numbers: Numbers) {
    out.table(format_args!("[[nodes]]"));
    let keeper = |host: &&Host<'_>| keeper_at_work(&host.facts.config).unwrap_or("nothing that files are written for");
    for (keeper, hosts) in by_value(block.hosts.iter().map(|host| (keeper(host), &host.name))) {
        out.comment(format_args!("`config` is auto, what the host uses: {keeper} on {hosts}"));
    }
    out.line(format_args!("hosts = \"{}\"", fold(block.hosts.iter().map(|host| &host.name))));
    if let Numbers::Position { offset } = numbers {
        out.comment(format_args!("CHECK: the names give no number that is each host's own, so places in the list do."));
        out.comment(format_args!("Who adds a host puts it last, or others get another address."));
        out.line(format_args!("numbering = \"position\""));
        if offset > 0 {
            out.line(format_args!("offset = {offset}"));
        }
    }
    let left_out = block.hosts.iter().flat_map(|host| {
        host.left_out.iter().map(move |(place, why)| {
            let Place { device, port } = place;
            (format!("{} port {}: {}", device.name, port.number, shown(why)), &host.name)
        })
    });
    for (what, hosts) in by_value(left_out) {
        out.comment(format_args!("left alone: {what}, on {hosts}"));
    }
    if block.ports.is_empty() {
        out.comment(format_args!("no RDMA port that can be configured"));
    }
    for (index, select) in block.ports.iter().enumerate() {
        one_port(out, found, block, index, *select);
    }
}

fn one_port(out: &mut Lines, found: &Found<'_>, block: &Block<'_>, index: usize, select: Select<'_>) {
    let places: Vec<(Place<'_>, &HostName)> =
        block.hosts.iter().filter_map(|host| Some((*host.ports.get(index)?, &host.name))).collect();
    let Some((first, _)) = places.first() else { return };
    let network = network_of(found, block, index, first.port.transport);
    out.table(format_args!("[[nodes.ports]]"));
    let dark: Vec<&HostName> =
        places.iter().filter(|(place, _)| place.port.physical_state != "LinkUp").map(|(_, host)| *host).collect();
    if dark.len() == places.len() {
        out.comment(format_args!("CHECK: no link on any of them; if nothing is plugged in, remove this port"));
    } else if !dark.is_empty() {
        out.comment(format_args!("no link on {}", fold(dark)));
    }
    let carried = block
        .hosts
        .iter()
        .filter_map(|host| Some((shown(carries(host.facts, host.ports.get(index)?.port)?), &host.name)));
    for (what, hosts) in by_value(carried) {
        out.comment(format_args!("carries {what} on {hosts}: a change that could disturb it needs `--confirm`"));
    }
    let called = places.iter().filter_map(|(place, host)| Some((&place.port.netdev.as_ref()?.name, *host)));
    let called = by_value(called);
    match select {
        Select::Device(device, number) => {
            out.line(format_args!("device = \"{device}\""));
            if number != 1 {
                out.line(format_args!("port = {number}"));
            }
            if let [(name, _)] = called.as_slice() {
                out.comment(format_args!(
                    "interface = \"{name}\"  # its name now; without this line the kernel's own stays"
                ));
            }
        }
        Select::Guid => {
            out.comment(format_args!("which port it is, each host's GUID says: [hosts] below"));
            out.line(format_args!("interface = \"{network}\""));
        }
    }
    if called.len() > 1 {
        let names: Vec<String> = called.iter().map(|(name, hosts)| format!("{name} on {hosts}")).collect();
        out.comment(format_args!("its interface now: {}", names.join("; ")));
    }
    out.line(format_args!("network = \"{network}\""));
}

/// The network of a block's port: by how many of its transport are before it.
fn network_of<'r>(found: &'r Found<'_>, block: &Block<'_>, index: usize, transport: Transport) -> &'r str {
    let ports = block.hosts.first().and_then(|host| host.ports.get(..index)).unwrap_or_default();
    let rail = ports.iter().filter(|place| place.port.transport == transport).count();
    found.rails.network(transport, rail)
}

/// `[hosts.NAME]`, a line for each key.
fn exceptions(out: &mut Lines, found: &Found<'_>) {
    let mut lines = Lines::default();
    for block in &found.blocks {
        for host in &block.hosts {
            let name = key(&host.name);
            if let Some(ssh) = host.ssh {
                lines.line(format_args!("{name}.ssh = \"{ssh}\""));
            }
            for (index, place) in host.ports.iter().enumerate() {
                if block.ports.get(index) == Some(&Select::Guid) {
                    let network = network_of(found, block, index, place.port.transport);
                    let device = &place.device.name;
                    lines.line(format_args!("{name}.guids.{network} = \"{}\"  # {device}", place.port.guid));
                }
            }
        }
    }
    if !lines.0.is_empty() {
        out.table(format_args!("[hosts]"));
        out.0.push_str(&lines.0);
    }
}

/// A host's name as a key: a dot would begin another.
fn key(host: &HostName) -> String {
    if host.as_str().contains('.') { format!("\"{host}\"") } else { host.to_string() }
}
