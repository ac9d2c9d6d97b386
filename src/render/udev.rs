//! The udev rules that give InfiniBand interfaces their name and mode.
//!
//! An interface is found by the last 8 bytes of its hardware address, the port
//! GUID: the first 12 hold a queue pair number and the subnet prefix, which
//! change. Its P_Key children share the GUID and are left alone.
//!
//! The mode is set by `ip` and not by `ATTR{mode}=`: udev strips the newline
//! that the kernel compares with, and gets EINVAL. `ip` is given the interface
//! by index (`if7`): `$name` would be the old name where a later rule renames.
//! Seen on systemd 252 with the kernel's ib_ipoib: udev renames first, runs the
//! command next, and only then lets networkd configure the link, at boot too.
//! The kernel's own names have no readable `name_assign_type`, so only "made by
//! a user" can be tested for, and not its opposite.

use serde::Serialize;

use super::{Chosen, File, RenderError, Template, lay_out, one_line};
use crate::name::IfName;
use crate::rdma::{Guid, IpoibMode};
use crate::state::FilePath;

/// The layout.
pub const TEMPLATE: Template =
    Template { name: "udev-ipoib.rules.hbs", text: include_str!("../../templates/udev-ipoib.rules.hbs") };

/// What the rules do to one port's interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortRule {
    /// The port.
    pub guid: Guid,
    /// The name to give.
    pub name: Option<Chosen<IfName>>,
    /// The mode to set.
    pub mode: Option<Chosen<IpoibMode>>,
}

/// A rule: one line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Rule {
    why: String,
    tokens: Vec<Token>,
}

/// `ATTR{address}=="..."`: everything but the value is ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Token {
    key: &'static str,
    value: String,
}

#[derive(Serialize)]
struct Data<'a> {
    header: &'a [String],
    rules: &'a [Rule],
}

/// The rules for all InfiniBand ports of a host. `ip` is iproute2's program.
///
/// # Errors
/// When a value cannot stand in a rule, or the template made something else of it.
pub fn file(ports: &[PortRule], ip: &FilePath, header: &[String]) -> Result<File, RenderError> {
    let mut rules = Vec::new();
    for port in ports {
        let address = Token { key: "ATTR{address}==", value: glob(port.guid) };
        if let Some(name) = &port.name {
            let assign = Token { key: "NAME=", value: literal(name.value.as_str())? };
            rules.push(Rule { why: name.why.clone(), tokens: vec![address.clone(), assign] });
        }
        if let Some(mode) = &port.mode {
            let command = format!("{} link set dev if$env{{IFINDEX}} type ipoib mode {}", word(ip)?, mode.value);
            rules.push(Rule { why: mode.why.clone(), tokens: vec![address, Token { key: "RUN+=", value: command }] });
        }
    }
    for rule in &rules {
        one_line("a comment", &rule.why)?;
    }
    let content = lay_out(TEMPLATE, &Data { header, rules: &rules })?;
    check(&rules, &content)?;
    Ok(File { path: "/etc/udev/rules.d/70-selvedge-ipoib.rules".parse()?, content, mode: 0o644 })
}

/// A glob for the hardware addresses of the port's interfaces.
fn glob(guid: Guid) -> String {
    let bytes = guid.0.to_be_bytes().map(|byte| format!("{byte:02x}"));
    format!("*:{}", bytes.join(":"))
}

/// A value that udev takes as it is: no quote, no substitution (`$`, `%`), no glob.
fn literal(text: &str) -> Result<String, RenderError> {
    one_line("a udev value", text)?;
    if text.contains(['"', '\\', '$', '%', '*', '?', '[', '|']) {
        let rule = "udev would substitute, glob or end the value there";
        return Err(RenderError::Value { value: text.to_owned(), what: "a udev value".to_owned(), rule });
    }
    Ok(text.to_owned())
}

/// A path as one word of a command line, which udev splits at blanks and quotes.
fn word(path: &FilePath) -> Result<String, RenderError> {
    if path.as_str().contains([' ', '\'']) {
        let rule = "udev splits a command line there";
        return Err(RenderError::Value { value: path.to_string(), what: "a program".to_owned(), rule });
    }
    literal(path.as_str())
}

/// Every rule is in the text once, in order, and no other rule is about hardware addresses.
fn check(rules: &[Rule], text: &str) -> Result<(), RenderError> {
    let meant: Vec<Vec<String>> =
        rules.iter().map(|rule| rule.tokens.iter().map(|t| format!("{}\"{}\"", t.key, t.value)).collect()).collect();
    let mut made = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |rule| RenderError::Syntax { template: TEMPLATE.name, line: index + 1, rule };
        let tokens = tokens(line).ok_or_else(|| wrong("it is no list of KEY, operator and quoted value"))?;
        if tokens.iter().any(|token| token.starts_with("ATTR{address}")) {
            made.push(tokens);
        }
    }
    if let Some(index) = (0..meant.len().max(made.len())).find(|&index| meant.get(index) != made.get(index)) {
        let rule = meant.get(index).or(made.get(index)).map(|tokens| tokens.join(", "));
        return Err(RenderError::Meaning { template: TEMPLATE.name, what: rule.unwrap_or_default() });
    }
    Ok(())
}

/// Splits `A=="x", B="y"` into its parts, each as text.
fn tokens(line: &str) -> Option<Vec<String>> {
    let mut rest = line;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let open = rest.find('"')?;
        let (key, tail) = rest.split_at_checked(open)?;
        let tail = tail.strip_prefix('"')?;
        let (value, tail) = tail.split_once('"')?;
        let key = key.trim();
        if !key.ends_with('=') || key.contains(',') || value.ends_with('\\') {
            return None;
        }
        all.push(format!("{key}\"{value}\""));
        rest = tail.trim_start().strip_prefix(',').map_or(tail.trim_start(), str::trim_start);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port() -> PortRule {
        PortRule {
            guid: Guid(0x0002_c903_0000_0001),
            name: Some(Chosen { value: "ib0".parse().unwrap(), why: "w".into() }),
            mode: Some(Chosen { value: IpoibMode::Connected, why: "w".into() }),
        }
    }

    #[test]
    fn the_port_guid_is_the_tail_of_the_address() {
        assert_eq!(glob(Guid(0x0002_c903_00ab_0001)), "*:00:02:c9:03:00:ab:00:01");
    }

    #[test]
    fn a_program_that_udev_would_misread_is_refused() {
        assert!(file(&[port()], &"/usr/sbin/ip".parse().unwrap(), &[]).is_ok());
        for path in ["/my tools/ip", "/a\"b/ip", "/$root/ip", "/%k/ip", "/a'b/ip"] {
            assert!(file(&[port()], &path.parse().unwrap(), &[]).is_err(), "{path}");
        }
    }

    #[test]
    fn a_rule_that_is_missing_changed_or_foreign_is_seen() {
        let path = "/usr/sbin/ip".parse().unwrap();
        let text = file(&[port()], &path, &[]).unwrap().content;
        let rules = |ports: &[PortRule]| {
            let address = Token { key: "ATTR{address}==", value: glob(ports[0].guid) };
            vec![Rule { why: String::new(), tokens: vec![address, Token { key: "NAME=", value: "ib0".into() }] }]
        };
        assert!(check(&rules(&[port()]), &text).is_err(), "one rule more than meant");
        assert!(check(&rules(&[port()]), "").is_err());
        assert!(check(&[], "NAME=ib0").is_err());
    }
}
