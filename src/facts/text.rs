//! Facts as a person reads them: a host's ports in a table.

use std::fmt::Write;

use super::{Device, Facts, PortFacts};
use crate::columns::columns;
use crate::name::HostName;
use crate::resolve::keeper_at_work;

/// The columns of the table.
const TITLES: [&str; 7] = ["device", "port", "GUID", "transport", "state", "rate", "interface"];

/// One line for the host, and below it a table of its ports.
#[must_use]
pub fn table(host: &HostName, facts: &Facts) -> String {
    let keeper = match keeper_at_work(&facts.config) {
        Some(keeper) => format!("configuration kept by {keeper}"),
        None => "nothing that selvedge writes for keeps the configuration".to_owned(),
    };
    let mut out = format!("{host}: kernel {}, {keeper}\n", shown(&facts.kernel));
    let ports = facts.devices.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let rows: Vec<[String; 7]> = ports.map(|(device, port)| row(device, port)).collect();
    if rows.is_empty() {
        out.push_str("  no RDMA device\n");
        return out;
    }
    for line in columns(TITLES, &rows).lines() {
        // Writing to a string can't fail.
        let _ = writeln!(out, "  {line}");
    }
    out
}

fn row(device: &Device, port: &PortFacts) -> [String; 7] {
    let interface = port.netdev.as_ref().map_or_else(|| "-".to_owned(), |netdev| netdev.name.to_string());
    [
        device.name.to_string(),
        port.number.to_string(),
        port.guid.to_string(),
        port.transport.to_string(),
        state(port),
        shown(&port.rate),
        interface,
    ]
}

/// The logical state, with the physical one where there is no link.
#[must_use]
pub fn state(port: &PortFacts) -> String {
    match port.physical_state.as_str() {
        "LinkUp" => shown(&port.state),
        physical => format!("{}, {}", shown(&port.state), shown(physical)),
    }
}

/// A text of another host, on one line.
#[must_use]
pub fn shown(text: &str) -> String {
    text.trim().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_in_columns() {
        let mut facts: Facts =
            serde_json::from_str(include_str!("../../tests/cases/rails-netplan/facts.json")).unwrap();
        let host: HostName = "gpu300".parse().unwrap();
        assert_eq!(
            table(&host, &facts),
            "\
gpu300: kernel 6.1.0-32-amd64, configuration kept by netplan
  device  port  GUID                transport   state   rate                 interface
  mlx5_0  1     0x506b4b0300a1b2c4  InfiniBand  ACTIVE  200 Gb/sec (4X HDR)  ib0
  mlx5_1  1     0x506b4b0300a1b2d8  InfiniBand  ACTIVE  200 Gb/sec (4X HDR)  ib1
  mlx5_2  1     0x526b4bfffea1b2d8  RoCE        ACTIVE  100 Gb/sec (4X EDR)  ens3f0np0
"
        );
        facts.devices.clear();
        facts.kernel = "6.1\u{1b}[2J".to_owned();
        facts.config = crate::facts::ConfigEvidence::default();
        assert_eq!(
            table(&host, &facts),
            "gpu300: kernel 6.1\\u{1b}[2J, nothing that selvedge writes for keeps the configuration\n  no RDMA device\n"
        );
    }

    #[test]
    fn a_port_without_a_link_says_why() {
        let facts: Facts = serde_json::from_str(include_str!("../../tests/cases/rails-netplan/facts.json")).unwrap();
        let mut port = facts.devices[0].ports[0].clone();
        (port.state, port.physical_state) = ("DOWN".to_owned(), "Polling".to_owned());
        assert_eq!(state(&port), "DOWN, Polling");
    }
}
