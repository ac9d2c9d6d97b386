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

use super::layout::LINES;
use super::lines::{Block, Lines};
use super::{Chosen, File, RenderError, one_line};
use crate::name::IfName;
use crate::rdma::{Guid, IpoibMode};
use crate::state::FilePath;

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

/// What the rules do to a P_Key child, whose name is known before it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildRule {
    /// Its name.
    pub name: IfName,
    /// The mode to set.
    pub mode: Chosen<IpoibMode>,
}

/// The rules for all InfiniBand ports of a host and their children. `ip` is iproute2's program.
///
/// # Errors
/// When a value cannot stand in a rule, or the template made something else of it.
pub fn file(ports: &[PortRule], children: &[ChildRule], ip: &FilePath, header: &[String]) -> Result<File, RenderError> {
    let mut rules = Lines { header: header.to_vec(), blocks: only_infiniband() };
    let set = |mode: IpoibMode| {
        Ok::<_, RenderError>(format!("RUN+=\"{} link set dev if$env{{IFINDEX}} type ipoib mode {mode}\"", word(ip)?))
    };
    for child in children {
        let name = literal(child.name.as_str())?;
        rules.push(&child.mode.why, format!("KERNEL==\"{name}\", {}", set(child.mode.value)?));
    }
    rules.blocks.push(only_parents());
    for port in ports {
        let address = format!("ATTR{{address}}==\"{}\"", glob(port.guid));
        if let Some(name) = &port.name {
            rules.push(&name.why, format!("{address}, NAME=\"{}\"", literal(name.value.as_str())?));
        }
        if let Some(mode) = &port.mode {
            rules.push(&mode.why, format!("{address}, {}", set(mode.value)?));
        }
    }
    rules.push("", "LABEL=\"selvedge_end\"");
    Ok(File { path: "/etc/udev/rules.d/70-selvedge-ipoib.rules".parse()?, content: rules.render(&LINES)?, mode: 0o644 })
}

fn leave(test: &str) -> String {
    format!("{test}, GOTO=\"selvedge_end\"")
}

/// Leaves at once for everything else.
fn only_infiniband() -> Vec<Block> {
    let other = ["ACTION!=\"add\"", "SUBSYSTEM!=\"net\"", "ATTR{type}!=\"32\""];
    let why = vec!["InfiniBand interfaces, when they appear.".to_owned()];
    vec![Block { why, lines: other.map(leave).to_vec() }]
}

fn only_parents() -> Block {
    let child = ["KERNEL==\"*.*\"", "ATTR{name_assign_type}==\"3\""];
    let why = [
        "A P_Key child has its parent's GUID. One made in sysfs has a dot in its name,",
        "one made by `ip link add` was named by a user (3).",
    ];
    Block { why: why.map(str::to_owned).to_vec(), lines: child.map(leave).to_vec() }
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

    /// Before the line that lets children alone.
    #[test]
    fn a_child_has_its_mode_by_its_name() {
        let child = ChildRule {
            name: "ib0.8002".parse().unwrap(),
            mode: Chosen { value: IpoibMode::Connected, why: "w".into() },
        };
        let text = file(&[port()], &[child], &"/usr/sbin/ip".parse().unwrap(), &[]).unwrap().content;
        let rule = "KERNEL==\"ib0.8002\", RUN+=\"/usr/sbin/ip link set dev if$env{IFINDEX} type ipoib mode connected\"";
        let place = |line: &str| text.lines().position(|one| one.starts_with(line)).unwrap();
        assert!(place("ATTR{type}!=") < place(rule) && place(rule) < place("KERNEL==\"*.*\""), "{text}");
    }

    #[test]
    fn a_program_that_udev_would_misread_is_refused() {
        assert!(file(&[port()], &[], &"/usr/sbin/ip".parse().unwrap(), &[]).is_ok());
        for path in ["/my tools/ip", "/a\"b/ip", "/$root/ip", "/%k/ip", "/a'b/ip"] {
            assert!(file(&[port()], &[], &path.parse().unwrap(), &[]).is_err(), "{path}");
        }
    }
}
