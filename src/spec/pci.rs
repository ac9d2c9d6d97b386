//! PCI addresses: text in, four numbers out, and back.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A PCI address: domain, bus, device and function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the field's own words")]
pub struct PciAddress {
    pub domain: u16,
    pub bus: u8,
    pub device: u8,
    pub function: u8,
}

/// Not a PCI address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a PCI address")]
pub struct PciAddressError(String);

impl FromStr for PciAddress {
    type Err = PciAddressError;
    fn from_str(text: &str) -> Result<Self, PciAddressError> {
        parse(text).ok_or_else(|| PciAddressError(text.escape_debug().to_string()))
    }
}

/// As `lspci -D` prints it, the domain always there: without it, the address is that of another host's habit.
fn parse(text: &str) -> Option<PciAddress> {
    let (domain, rest) = text.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let number = |digits: &str, len: usize| {
        let hex = digits.len() == len && digits.bytes().all(|b| b.is_ascii_hexdigit());
        if hex { u16::from_str_radix(digits, 16).ok() } else { None }
    };
    let small = |digits: &str, len, most: u8| u8::try_from(number(digits, len)?).ok().filter(|value| *value <= most);
    // PCI: 5 bits of device, 3 bits of function.
    Some(PciAddress {
        domain: number(domain, 4)?,
        bus: small(bus, 2, 0xff)?,
        device: small(device, 2, 0x1f)?,
        function: small(function, 1, 7)?,
    })
}

/// As sysfs names it: `0000:3b:00.0`.
impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_sysfs() {
        let address: PciAddress = "0000:3B:1f.7".parse().unwrap();
        assert_eq!(address.to_string(), "0000:3b:1f.7");
        for bad in ["", "3b:00.0", "0000:3b:00", "0000:3b:20.0", "0000:3b:00.8", "0000:3b:00.0/..", "0000:3b:+1.0"] {
            assert!(bad.parse::<PciAddress>().is_err(), "{bad}");
        }
    }
}
