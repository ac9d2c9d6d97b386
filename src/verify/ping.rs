//! Full-MTU pings that must not be fragmented, by the system's own `ping`.

use std::net::IpAddr;

use super::model::{Ping, PingResult};
use crate::program::command;

/// What an ICMP echo adds to its payload, bytes: IPv4 header 20 and ICMP header 8 (RFC 791, RFC 792).
const IPV4_OVERHEAD_BYTES: u32 = 28;
/// IPv6 header 40 and ICMPv6 header 8 (RFC 8200, RFC 4443), bytes.
const IPV6_OVERHEAD_BYTES: u32 = 48;

/// Sends three pings, bound to the interface, and says what came of them.
#[must_use]
pub fn run(ping: &Ping) -> PingResult {
    let output = command("ping").args(arguments(ping)).output();
    match output {
        Ok(output) if output.status.success() => PingResult { answered: true, said: loss(&output.stdout) },
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let said = if stderr.is_empty() { loss(&output.stdout) } else { stderr };
            PingResult { answered: false, said }
        }
        Err(error) => PingResult { answered: false, said: format!("ping cannot be run: {error}") },
    }
}

/// `-w` ends it in any case; without all three answers the exit status says so.
fn arguments(ping: &Ping) -> Vec<String> {
    let overhead = match ping.address {
        IpAddr::V4(_) => IPV4_OVERHEAD_BYTES,
        IpAddr::V6(_) => IPV6_OVERHEAD_BYTES,
    };
    let size = ping.mtu.saturating_sub(overhead);
    let words = ["-n", "-q", "-c", "3", "-i", "0.2", "-w", "5", "-M", "do", "-s"];
    let mut arguments: Vec<String> = words.into_iter().map(str::to_owned).collect();
    arguments.extend([size.to_string(), "-I".to_owned(), ping.interface.to_string(), "--".to_owned()]);
    arguments.push(ping.address.to_string());
    arguments
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
    fn the_packet_fills_the_mtu() {
        let ping = Ping { interface: "ib0".parse().unwrap(), address: "10.0.0.2".parse().unwrap(), mtu: 65520 };
        let arguments = arguments(&ping);
        assert_eq!(arguments[11], "65492");
        assert_eq!(&arguments[12..], ["-I", "ib0", "--", "10.0.0.2"]);
    }
}
