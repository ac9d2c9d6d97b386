//! Names of the kernel's network settings.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{IfName, NameError};

/// A setting below `/proc/sys/net`, by its path: `net/ipv4/conf/ib0.8001/arp_ignore`.
///
/// With slashes: an interface name can have dots, and sysctl.d(5) leaves dots alone in a key whose first separator is
/// a slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub struct SysctlKey(String);

impl SysctlKey {
    /// An IPv4 setting of a link.
    #[must_use]
    pub fn of_ipv4_link(link: &IfName, setting: LinkSetting) -> Self {
        let setting = match setting {
            LinkSetting::ArpIgnore => "arp_ignore",
            LinkSetting::ArpAnnounce => "arp_announce",
        };
        Self(format!("net/ipv4/conf/{link}/{setting}"))
    }

    /// A threshold of a neighbour table: 1 is kept at least, 2 cleared above, 3 the most.
    #[must_use]
    pub fn of_neighbours(family: IpFamily, threshold: u8) -> Self {
        let family = match family {
            IpFamily::V4 => "ipv4",
            IpFamily::V6 => "ipv6",
        };
        Self(format!("net/{family}/neigh/default/gc_thresh{threshold}"))
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The link whose setting this is, for IPv4, and which setting.
    #[must_use]
    pub fn on_link(&self) -> Option<(&str, &str)> {
        let on = self.0.strip_prefix("net/ipv4/conf/")?;
        on.split_once('/')
    }

    /// True where more than what is asked for serves as well: the size of a table that others need too.
    #[must_use]
    pub fn is_least(&self) -> bool {
        self.0.contains("/neigh/default/gc_thresh")
    }
}

/// A setting of a link for IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkSetting {
    /// Which ARP requests are answered.
    ArpIgnore,
    /// Which address an ARP request is sent from.
    ArpAnnounce,
}

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl FromStr for SysctlKey {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let plain = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        match text.strip_prefix("net/") {
            Some(rest) if rest.contains('/') && rest.split('/').all(plain) => Ok(Self(text.to_owned())),
            _ => Err(NameError {
                text: text.escape_debug().to_string(),
                kind: "a network setting",
                rule: "it is a path below `net/` of plain names",
            }),
        }
    }
}

impl TryFrom<String> for SysctlKey {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<SysctlKey> for String {
    fn from(key: SysctlKey) -> Self {
        key.0
    }
}

impl fmt::Display for SysctlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_leaves_the_network_settings() {
        for text in
            ["", "net", "net/", "net/core", "/net/a/b", "net/../kernel/x", "net/a//b", "kernel/a/b", "net/a/b\n"]
        {
            assert!(text.parse::<SysctlKey>().is_err(), "{text:?}");
        }
        let key = SysctlKey::of_ipv4_link(&"ib0.8001".parse().unwrap(), LinkSetting::ArpIgnore);
        assert_eq!(key.as_str(), "net/ipv4/conf/ib0.8001/arp_ignore");
        assert_eq!(key.as_str().parse(), Ok(key));
    }

    #[test]
    fn what_is_made_reads_back() {
        for (family, threshold) in [(IpFamily::V4, 1), (IpFamily::V6, 3)] {
            let key = SysctlKey::of_neighbours(family, threshold);
            assert!(key.is_least());
            assert_eq!(key.as_str().parse(), Ok(key));
        }
    }
}
