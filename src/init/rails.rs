//! Fabrics and networks: one fabric for each transport, and a network for each port that hosts have on it.

use std::collections::BTreeMap;

use ipnet::{IpNet, Ipv4Net};

use super::survey::{Host, Place};
use crate::facts::text::shown;
use crate::hostlist::fold;
use crate::name::HostName;
use crate::rdma::{IbSpeed, Speed, Transport};
use crate::verify::rate;

/// The most ports of one transport on a host that networks are planned for.
pub(super) const MOST_RAILS: usize = 64;

/// A fabric, and what was seen of it.
#[derive(Debug)]
pub(super) struct Fabric {
    pub(super) transport: Transport,
    /// The highest that was seen; `None` where no port has a link.
    pub(super) speed: Option<Speed>,
    /// The rates of ports with a link, each with its hosts, the highest first.
    pub(super) seen: Vec<(String, String)>,
    pub(super) networks: Vec<Network>,
}

/// A network: the n-th port of each host.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) name: String,
    /// A placeholder.
    pub(super) cidr: Ipv4Net,
    /// The networks of the addresses that its interfaces have now, each with its hosts.
    pub(super) now: Vec<(String, String)>,
}

/// The fabrics of all hosts, InfiniBand first.
#[derive(Debug)]
pub(super) struct Rails(pub(super) Vec<Fabric>);

impl Rails {
    pub(super) fn of(hosts: &[Host<'_>]) -> Self {
        let mut free = free(hosts).into_iter();
        let fabrics = [Transport::Infiniband, Transport::Roce].into_iter().filter_map(|transport| {
            let count = hosts.iter().map(|host| host.on(transport).count()).max().filter(|count| *count > 0)?;
            let network = |index| {
                let cidr = free.next()?;
                Some(Network { name: network(transport, index, count), cidr, now: now(hosts, transport, index) })
            };
            let networks = (0..count).filter_map(network).collect();
            let (speed, seen) = speed(hosts, transport);
            Some(Fabric { transport, speed, seen, networks })
        });
        Self(fabrics.collect())
    }

    /// The network of a host's n-th port on a transport.
    pub(super) fn network(&self, transport: Transport, index: usize) -> &str {
        let fabric = self.0.iter().find(|fabric| fabric.transport == transport);
        fabric.and_then(|fabric| fabric.networks.get(index)).map_or("", |network| network.name.as_str())
    }
}

/// What a fabric is called.
pub(super) fn fabric(transport: Transport) -> &'static str {
    match transport {
        Transport::Infiniband => "infiniband",
        Transport::Roce => "roce",
    }
}

fn network(transport: Transport, index: usize, count: usize) -> String {
    let short = match transport {
        Transport::Infiniband => "ib",
        Transport::Roce => "roce",
    };
    if count == 1 { short.to_owned() } else { format!("{short}-rail{index}") }
}

/// 10.N.0.0/16: first those that no interface which is left alone has an address of, such as the site's own.
fn free(hosts: &[Host<'_>]) -> Vec<Ipv4Net> {
    let alone = hosts.iter().flat_map(|host| &host.left_out).filter_map(|(place, _)| place.port.netdev.as_ref());
    let taken: Vec<IpNet> = alone.flat_map(|netdev| &netdev.addresses).map(IpNet::trunc).collect();
    let all = (0..=u8::MAX).filter_map(|n| Ipv4Net::new([10, n, 0, 0].into(), 16).ok());
    let is_taken = |net: &Ipv4Net| {
        let net = IpNet::V4(*net);
        taken.iter().any(|taken| taken.contains(&net) || net.contains(taken))
    };
    let (taken, mut free): (Vec<_>, Vec<_>) = all.partition(is_taken);
    free.extend(taken);
    free
}

/// Each value with the hosts that have it, folded.
pub(super) fn by_value<'h, K: Ord>(all: impl IntoIterator<Item = (K, &'h HostName)>) -> Vec<(K, String)> {
    let mut by_value: BTreeMap<K, Vec<&HostName>> = BTreeMap::new();
    for (value, host) in all {
        by_value.entry(value).or_default().push(host);
    }
    by_value.into_iter().map(|(value, hosts)| (value, fold(hosts))).collect()
}

fn now(hosts: &[Host<'_>], transport: Transport, index: usize) -> Vec<(String, String)> {
    let of_host = |host: &Host<'_>| {
        let netdev = host.on(transport).nth(index).and_then(|place| place.port.netdev.as_ref());
        netdev.map(|netdev| netdev.addresses.iter().map(IpNet::trunc).collect::<Vec<_>>()).unwrap_or_default()
    };
    let all = hosts.iter().flat_map(|host| of_host(host).into_iter().map(move |net| (net, &host.name)));
    by_value(all).into_iter().map(|(net, hosts)| (net.to_string(), hosts)).collect()
}

/// The highest speed of a fabric, and all rates with their hosts, the highest first.
fn speed(hosts: &[Host<'_>], transport: Transport) -> (Option<Speed>, Vec<(String, String)>) {
    let linked = |place: &&Place<'_>| place.port.physical_state == "LinkUp";
    let mut rates: Vec<(f64, String, &HostName)> = Vec::new();
    for host in hosts {
        for place in host.on(transport).filter(linked) {
            let Some(rate) = rate::parse(&place.port.rate).filter(|rate| rate.gbps.is_finite()) else { continue };
            rates.push((rate.gbps, shown(&place.port.rate), &host.name));
        }
    }
    rates.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let speed = rates.first().map(|(gbps, ..)| nominal(transport, *gbps));
    let order: Vec<String> = rates.iter().map(|(_, text, _)| text.clone()).collect();
    let mut seen = by_value(rates.into_iter().map(|(_, text, host)| (text, host)));
    seen.sort_by_key(|(text, _)| order.iter().position(|other| other == text));
    (speed, seen)
}

/// The speed of the spec that a link of this rate has: the highest that is not above it, or the lowest.
fn nominal(transport: Transport, gbps: f64) -> Speed {
    match transport {
        Transport::Infiniband => {
            let reached = IbSpeed::ALL.into_iter().rev().find(|speed| speed.sysfs_rate_gbps() <= gbps);
            Speed::Ib(reached.unwrap_or(IbSpeed::Sdr))
        }
        Transport::Roce => {
            let all = [800, 400, 200, 100, 50, 40, 25, 10].into_iter().map(Speed::Ethernet);
            all.into_iter().find(|speed| speed.data_gbps() <= gbps).unwrap_or(Speed::Ethernet(10))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_speed_of_the_spec() {
        let of = |transport, text: &str| nominal(transport, rate::parse(text).unwrap().gbps).to_string();
        for (text, speed) in [
            ("200 Gb/sec (4X HDR)", "HDR"),
            ("100 Gb/sec (2X HDR)", "EDR"),
            ("2.5 Gb/sec (1X SDR)", "SDR"),
            ("56 Gb/sec (4X FDR)", "FDR"),
            ("40 Gb/sec (4X FDR10)", "QDR"),
            ("1600 Gb/sec (8X XDR)", "XDR"),
        ] {
            assert_eq!(of(Transport::Infiniband, text), speed, "{text}");
        }
        for (text, speed) in
            [("100 Gb/sec (4X EDR)", "100G"), ("2.5 Gb/sec (1X SDR)", "10G"), ("56 Gb/sec (4X FDR)", "50G")]
        {
            assert_eq!(of(Transport::Roce, text), speed, "{text}");
        }
    }
}
