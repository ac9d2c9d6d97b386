//! The files that outlive a reboot, as text.
//!
//! Values come in; for each format they become a typed document first, with
//! that format's quoting, which a handlebars template lays out. What the
//! template made is parsed back and compared with the document, so that a
//! site's own template cannot change the meaning. Nothing here reads or writes
//! a file.

pub mod ifcfg;
pub mod ifcfg_suse;
pub mod ini;
pub mod keyfile;
pub mod layout;
pub mod limits;
pub mod lines;
pub mod modules;
pub mod netplan;
pub mod networkd;
pub mod recover;
pub mod shell;
pub mod udev;
pub mod yaml;

use ipnet::IpNet;
use thiserror::Error;

use crate::intent::Intent;
use crate::name::IfName;
use crate::rdma::{IpoibMode, Transport};
use crate::state::{FilePath, PathError};
use crate::tag::Tag;

/// A file as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Where.
    pub path: FilePath,
    /// The whole text.
    pub content: String,
    /// Permission bits.
    pub mode: u32,
}

/// A value and why it is that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen<T> {
    /// The value.
    pub value: T,
    /// One line: the place in the spec, and the choice that was made.
    pub why: String,
}

/// What a config system is told of one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkConfig {
    /// The name that it has once the rules are in effect.
    pub name: Chosen<IfName>,
    /// InfiniBand or RoCE.
    pub transport: Transport,
    /// IPoIB mode; none on RoCE.
    pub mode: Option<Chosen<IpoibMode>>,
    /// MTU, bytes.
    pub mtu: Chosen<u32>,
    /// Its addresses.
    pub addresses: Vec<Chosen<IpNet>>,
    /// What it is on; none for a port's own interface.
    pub on: Option<On>,
    /// The interfaces on it, each with its partition or VLAN.
    pub children: Vec<(IfName, Tag)>,
}

/// Where a child interface is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct On {
    /// The port's own interface.
    pub parent: IfName,
    /// The partition or VLAN.
    pub tag: Chosen<Tag>,
}

impl LinkConfig {
    /// Whether one of its addresses is of IPv6, which needs a link-local address beside it.
    #[must_use]
    pub fn has_ipv6(&self) -> bool {
        self.addresses.iter().any(|address| matches!(address.value, IpNet::V6(_)))
    }
}

/// Why a file cannot be made.
#[derive(Debug, Error)]
pub enum RenderError {
    /// A value that the format has no way to hold.
    #[error("`{value}` cannot be written as {what}: {rule}")]
    Value {
        /// The value, control characters escaped.
        value: String,
        /// The key it was for.
        what: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// A path made of a name that is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The template does not work with the data.
    #[error("the template {template} cannot be rendered")]
    Template {
        /// Its file name.
        template: &'static str,
        /// What handlebars said.
        source: Box<handlebars::RenderError>,
    },
    /// The file is not of its format.
    #[error("what the template {template} made does not parse: line {line}: {rule}")]
    Syntax {
        /// The template's file name.
        template: &'static str,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        rule: &'static str,
    },
    /// The file says something else than the document.
    #[error("what the template {template} made does not say `{what}`")]
    Meaning {
        /// The template's file name.
        template: &'static str,
        /// The entry that is missing or different.
        what: String,
    },
}

/// How the head of every file begins, after the comment sign.
pub const HEADER: &str = "Written by selvedge for ";

/// The head of every file: who wrote it and how it is changed. Lines without the comment sign.
#[must_use]
pub fn header(intent: &Intent) -> Vec<String> {
    vec![
        format!("{HEADER}{} of the cluster {}.", intent.host, intent.cluster),
        "Change the spec and run `selvedge apply`: what is changed here, `selvedge drift`".to_owned(),
        "reports and the next apply undoes.".to_owned(),
    ]
}

/// Refuses what no line-based format can hold, whatever its quoting.
///
/// # Errors
/// When `value` has a control character, or is blank at an end.
pub fn one_line(what: &str, value: &str) -> Result<(), RenderError> {
    let refuse =
        |rule| Err(RenderError::Value { value: value.escape_debug().to_string(), what: what.to_owned(), rule });
    if value.chars().any(char::is_control) {
        return refuse("it has a line break or a control character");
    }
    if value.is_empty() || value.trim() != value {
        return refuse("it is empty, or blank at an end");
    }
    Ok(())
}
