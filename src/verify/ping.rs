//! Full-MTU pings that must not be fragmented, by the system's own `ping`.

use std::net::IpAddr;

use super::model::{Ping, PingResult};
use crate::program::command;

/// What an ICMP echo adds to its payload, bytes: IPv4 header 20 and ICMP header 8 (RFC 791, RFC 792).
const IPV4_OVERHEAD_BYTES: u32 = 28;
/// IPv6 header 40 and ICMPv6 header 8 (RFC 8200, RFC 4443), bytes.
const IPV6_OVERHEAD_BYTES: u32 = 48;

/// What `/proc/net/arp` has of an entry that has a hardware address (`ATF_COM`).
const COMPLETE: u32 = 0x2;

/// Sends a small ping until it is answered, then three that fill the MTU, bound to the interface.
///
/// After a peer's reboot its IPoIB hardware address is another, and the kernel gives up the entry that it has only
/// after some 8 s without an answer: 5 s `delay_first_probe_time` and three probes. Where nothing answers at all, this
/// is the end, after 12 s.
#[must_use]
pub fn run(ping: &Ping) -> PingResult {
    let small = call(&small_arguments(ping));
    let small_answered = small.is_ok();
    match small.and_then(|_| call(&arguments(ping))) {
        Ok(said) => PingResult { answered: true, small_answered, said, neighbour: None },
        Err(said) => {
            let table = std::fs::read_to_string("/proc/net/arp").unwrap_or_default();
            PingResult { answered: false, small_answered, said, neighbour: neighbour(&table, ping) }
        }
    }
}

/// What ping said, when all were answered and when not.
fn call(arguments: &[String]) -> Result<String, String> {
    let output = command("ping").args(arguments).output().map_err(|error| format!("ping cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(loss(&output.stdout));
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(if stderr.is_empty() { loss(&output.stdout) } else { stderr })
}

/// Ends with the first answer.
fn small_arguments(ping: &Ping) -> Vec<String> {
    with_target(&["-n", "-q", "-c", "1", "-i", "0.5", "-w", "12"], ping)
}

/// `-w` ends it in any case; without all three answers the exit status says so.
fn arguments(ping: &Ping) -> Vec<String> {
    let overhead = match ping.address {
        IpAddr::V4(_) => IPV4_OVERHEAD_BYTES,
        IpAddr::V6(_) => IPV6_OVERHEAD_BYTES,
    };
    let size = ping.mtu.saturating_sub(overhead).to_string();
    with_target(&["-n", "-q", "-c", "3", "-i", "0.2", "-w", "5", "-M", "do", "-s", &size], ping)
}

fn with_target(words: &[&str], ping: &Ping) -> Vec<String> {
    let mut arguments: Vec<String> = words.iter().copied().map(str::to_owned).collect();
    arguments.extend(["-I".to_owned(), ping.interface.to_string(), "--".to_owned(), ping.address.to_string()]);
    arguments
}

/// The hardware address of the peer in `/proc/net/arp`, which shows the first 9 bytes of an IPoIB one: the queue pair
/// number is among them (RFC 4391). IPv6 neighbours are not in it.
fn neighbour(table: &str, ping: &Ping) -> Option<String> {
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _, flags, hardware, _, interface] = words.as_slice() else { return None };
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
        let is_it = address.parse() == Ok(ping.address) && *interface == ping.interface.as_str();
        (is_it && flags & COMPLETE != 0).then(|| (*hardware).to_owned())
    })
}

/// The line of ping's statistics.
fn loss(stdout: &[u8]) -> String {
    let text = String::from_utf8_lossy(stdout);
    text.lines().find(|line| line.contains("packet loss")).unwrap_or("no answer").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_neighbour_is_that_of_address_and_interface() {
        let table = "\
IP address       HW type     Flags       HW address            Mask     Device
10.0.0.2         0x20        0x2         80:00:02:08:fe:80:00:00:00     *        ib1
10.0.0.3         0x20        0x0         00:00:00:00:00:00:00:00:00     *        ib0
10.0.0.2         0x20        0x2         80:00:02:09:fe:80:00:00:00     *        ib0
";
        let of = |address: &str| {
            let ping = Ping { interface: "ib0".parse().unwrap(), address: address.parse().unwrap(), mtu: 2044 };
            neighbour(table, &ping)
        };
        assert_eq!(of("10.0.0.2").as_deref(), Some("80:00:02:09:fe:80:00:00:00"));
        assert_eq!((of("10.0.0.3"), of("10.0.0.4"), of("fd00::2")), (None, None, None));
    }

    #[test]
    fn the_packet_fills_the_mtu() {
        let ping = Ping { interface: "ib0".parse().unwrap(), address: "10.0.0.2".parse().unwrap(), mtu: 65520 };
        let arguments = arguments(&ping);
        assert_eq!(arguments[11], "65492");
        assert_eq!(&arguments[12..], ["-I", "ib0", "--", "10.0.0.2"]);
    }
}
