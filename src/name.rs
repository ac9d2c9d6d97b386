//! Names that are safe to put into paths, netlink messages and unit files.
//!
//! A string comes in, a value of its own type goes out, or the rule that it
//! breaks. No other module builds a path or a kernel name from a plain string.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a string is not a name of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not {kind}: {rule}")]
pub struct NameError {
    /// The text as it was given, control characters escaped.
    pub text: String,
    /// What it should have been, with its article: "an interface name".
    pub kind: &'static str,
    /// The rule it breaks.
    pub rule: &'static str,
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[schemars(with = "String")]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                let check: fn(&str) -> Result<(), &'static str> = $check;
                match check(text) {
                    Ok(()) => Ok(Self(text.to_owned())),
                    Err(rule) => Err(NameError { text: text.escape_debug().to_string(), kind: $kind, rule }),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name_type!(
    /// A network interface name, as `dev_valid_name` in the kernel takes it,
    /// narrowed to characters that need no quoting in any file we write.
    IfName,
    "an interface name",
    |text| {
        if text.is_empty() || text.len() > 15 {
            return Err("it has 1 to 15 bytes");
        }
        if text == "all" || text == "default" {
            return Err("the kernel uses this word in /proc/sys/net/*/conf");
        }
        starts_with_alphanumeric(text)?;
        only(text, "-_.", "letters, digits, `-`, `_` and `.` are allowed")
    }
);

name_type!(
    /// An RDMA device name, such as `mlx5_0` or `ibp59s0`.
    DeviceName,
    "an RDMA device name",
    |text| {
        if text.is_empty() || text.len() > 63 {
            return Err("it has 1 to 63 bytes");
        }
        starts_with_alphanumeric(text)?;
        only(text, "-_.", "letters, digits, `-`, `_` and `.` are allowed")
    }
);

name_type!(
    /// A host name: RFC 1123 labels joined by dots.
    HostName,
    "a host name",
    |text| {
        if text.is_empty() || text.len() > 253 {
            return Err("it has 1 to 253 bytes");
        }
        for label in text.split('.') {
            if label.is_empty() || label.len() > 63 {
                return Err("each label between dots has 1 to 63 bytes");
            }
            if label.starts_with('-') || label.ends_with('-') {
                return Err("a label starts and ends with a letter or digit");
            }
            only(label, "-_", "letters, digits, `-` and `_` are allowed")?;
        }
        Ok(())
    }
);

name_type!(
    /// The name that the spec gives to a fabric, a network or the cluster. It
    /// becomes part of file and unit names.
    Label,
    "a name",
    |text| {
        if text.is_empty() || text.len() > 32 {
            return Err("it has 1 to 32 bytes");
        }
        starts_with_alphanumeric(text)?;
        only(text, "-_", "letters, digits, `-` and `_` are allowed")
    }
);

name_type!(
    /// A kernel module name or one of its parameters, with `_` for `-`.
    ModuleName,
    "a kernel module name",
    |text| {
        if text.is_empty() || text.len() > 55 {
            return Err("it has 1 to 55 bytes");
        }
        starts_with_alphanumeric(text)?;
        only(text, "_", "letters, digits and `_` are allowed")
    }
);

name_type!(
    /// A systemd unit name with its type, such as `opensm.service`.
    UnitName,
    "a systemd unit name",
    |text| {
        if text.is_empty() || text.len() > 255 {
            return Err("it has 1 to 255 bytes");
        }
        starts_with_alphanumeric(text)?;
        only(text, "-_.@:\\", "letters, digits and `-_.@:\\` are allowed")?;
        if text.rsplit_once('.').is_none_or(|(stem, kind)| stem.is_empty() || kind.is_empty()) {
            return Err("it ends in its type, such as `.service`");
        }
        Ok(())
    }
);

fn starts_with_alphanumeric(text: &str) -> Result<(), &'static str> {
    match text.bytes().next() {
        Some(byte) if byte.is_ascii_alphanumeric() => Ok(()),
        _ => Err("it starts with a letter or digit"),
    }
}

fn only(text: &str, more: &str, rule: &'static str) -> Result<(), &'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    if text.chars().all(allowed) { Ok(()) } else { Err(rule) }
}

impl HostName {
    /// Whether both can name one host: the whole name, or its first label when either is not qualified.
    #[must_use]
    pub fn can_be(&self, other: &Self) -> bool {
        let first = |name: &Self| name.as_str().split('.').next().unwrap_or_default().to_owned();
        let qualified = |name: &Self| name.as_str().contains('.');
        self == other || (!(qualified(self) && qualified(other)) && first(self) == first(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_no_name() {
        for text in ["", "..", "../x", "a/b", "a\nb", "a b", "%i", "{{x}}", "$(x)", "a\"b", "-x", "é"] {
            assert!(text.parse::<IfName>().is_err(), "{text:?}");
            assert!(text.parse::<DeviceName>().is_err(), "{text:?}");
            assert!(text.parse::<HostName>().is_err(), "{text:?}");
            assert!(text.parse::<Label>().is_err(), "{text:?}");
            assert!(text.parse::<ModuleName>().is_err(), "{text:?}");
            assert!(text.parse::<UnitName>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_kernel_limit_on_interface_names_holds() {
        assert!("ib0.8001".parse::<IfName>().is_ok());
        assert!("a23456789012345".parse::<IfName>().is_ok());
        assert!("a234567890123456".parse::<IfName>().is_err());
    }
}
