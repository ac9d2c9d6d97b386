//! The files that make a node one of a fabric's subnet managers.
//!
//! In: the fabric, this node's port GUID, its priority, the MTU, and where this
//! host's opensm is. Out: opensm's configuration, its partitions and a systemd
//! unit, as text with the path each belongs at. Nothing is written or started
//! here, and no key or secret is ever part of these files.
//!
//! The unit is one of our own for each fabric. The distributions' differ
//! (`opensm@GUID`, `opensm-launch`, `opensmd`), Debian's hangs on
//! network-online.target and so starts when nobody asked for it or never, and
//! all of them share one log and one LID cache between fabrics.
//!
//! opensm logs to standard output, which is the journal. Measured on 3.3.23:
//! `log_file stdout` writes each line as to a file, buffered unless
//! `force_log_flush` is set; the rotation signal SIGUSR1 is then harmless, and
//! there is no file to fill the disk. `log_max_size` must stay 0: it truncates.
//!
//! The unit waits for its port by failing and starting again, not by
//! `After=` a device: a job that waits for a device holds back
//! multi-user.target, and boot never waits on the fabric.

use handlebars::Handlebars;
use serde::Serialize;
use thiserror::Error;

use super::document::{Document, DocumentError};
use super::election::{FailoverTiming, Priority};
use crate::name::{Label, NameError, UnitName};
use crate::rdma::{Guid, IPOIB_HEADER_BYTES};
use crate::spec::FabricMtu;

/// Where the configuration files go; the distribution's own are left alone.
const FOLDER: &str = "/etc/selvedge/opensm";

/// What a node that manages a fabric is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerIntent {
    /// The fabric; part of the file and unit names.
    pub fabric: Label,
    /// The port that the manager binds to.
    pub guid: Guid,
    /// By place in the spec, see [`Priority::of_place`].
    pub priority: Priority,
    /// The MTU of the IPoIB broadcast group.
    pub mtu: FabricMtu,
    /// How a standby notices that the master is gone.
    pub timing: FailoverTiming,
}

/// A file as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedFile {
    /// Absolute.
    pub path: String,
    /// The whole text.
    pub content: String,
    /// Permission bits.
    pub mode: u32,
}

/// The layouts. A site may put its own in place of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Templates {
    /// opensm's configuration.
    pub config: String,
    /// The partitions.
    pub partitions: String,
    /// The systemd unit.
    pub unit: String,
}

impl Default for Templates {
    fn default() -> Self {
        Self {
            config: include_str!("../../templates/opensm.conf.hbs").to_owned(),
            partitions: include_str!("../../templates/opensm-partitions.conf.hbs").to_owned(),
            unit: include_str!("../../templates/opensm.service.hbs").to_owned(),
        }
    }
}

/// Why there are no files.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// GUID 0 makes opensm ask at a prompt, or take whichever port it finds.
    #[error("the fabric {0} has no port GUID for its subnet manager on this node")]
    NoGuid(Label),
    /// Polling times that can't work.
    #[error("subnet manager polling of {polling_timeout_ms} ms with {polling_retries} retries is outside 100 to 60000 ms and 1 to 10")]
    Timing {
        /// Milliseconds.
        polling_timeout_ms: u32,
        /// Unanswered polls.
        polling_retries: u32,
    },
    /// Not a path that a unit can name.
    #[error("`{0}` is no path of an opensm program: absolute, of letters, digits and `/._+-`")]
    Program(String),
    /// A name outside its rules.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A key or value that opensm would misread.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A template that does not lay out what it was given.
    #[error("the template {template} can't be rendered")]
    Template {
        /// Its file name.
        template: &'static str,
        /// What handlebars said.
        #[source]
        source: Box<handlebars::RenderError>,
    },
    /// A site's template changed the meaning.
    #[error("the template {template} says something else than the spec: {what}")]
    Meaning {
        /// Its file name.
        template: &'static str,
        /// What is missing or different.
        what: &'static str,
    },
}

/// The unit of a fabric's manager.
///
/// # Errors
/// Never for a valid label; the types can't say so.
pub fn unit_name(fabric: &Label) -> Result<UnitName, NameError> {
    format!("selvedge-opensm-{fabric}.service").parse()
}

/// The configuration as a document.
///
/// # Errors
/// When the intent has no GUID or its polling times can't work.
pub fn document(intent: &ManagerIntent) -> Result<Document, ConfigError> {
    let ManagerIntent { fabric, guid, priority, mtu: _, timing } = intent;
    if guid.0 == 0 {
        return Err(ConfigError::NoGuid(fabric.clone()));
    }
    let FailoverTiming { polling_timeout_ms, polling_retries } = *timing;
    if !(100..=60_000).contains(&polling_timeout_ms) || !(1..=10).contains(&polling_retries) {
        return Err(ConfigError::Timing { polling_timeout_ms, polling_retries });
    }
    let (soonest, latest) = timing.takeover();
    let takeover = format!("A standby takes over {:.1} to {:.1} s after the master dies.", soonest.as_secs_f64(), latest.as_secs_f64());
    let mut d = Document::default();
    d.push("guid", &guid.to_string(), "The port that this manager binds to: never a guess.")?;
    d.push("sm_priority", &priority.to_string(), "The highest one answering is master; no two are equal.")?;
    d.push("sminfo_polling_timeout", &polling_timeout_ms.to_string(), &takeover)?;
    d.push("polling_retry_number", &polling_retries.to_string(), "")?;
    d.push("partition_config_file", &partitions_path(fabric), "")?;
    d.push("log_file", "stdout", "To the journal, line by line.")?;
    d.push("force_log_flush", "TRUE", "")?;
    d.push("log_max_size", "0", "")?;
    d.push("daemon", "FALSE", "systemd keeps the process, and knows when it ends.")?;
    Ok(d)
}

/// The three files of a manager, with the layouts that we ship.
///
/// # Errors
/// When the intent can't be written down; see [`ConfigError`].
pub fn files(intent: &ManagerIntent, opensm: &str) -> Result<Vec<RenderedFile>, ConfigError> {
    files_with(intent, opensm, &Templates::default())
}

/// The three files of a manager. What the templates made is read back and
/// compared with what was meant.
///
/// # Errors
/// When the intent can't be written down, or a template changed its meaning.
pub fn files_with(intent: &ManagerIntent, opensm: &str, templates: &Templates) -> Result<Vec<RenderedFile>, ConfigError> {
    let fabric = &intent.fabric;
    let document = document(intent)?;
    let config = render("opensm.conf.hbs", &templates.config, &ConfigData { fabric: fabric.as_str(), entries: document.entries() })?;
    let read_back = Document::parse(&config)?;
    if !read_back.says_the_same(&document) {
        return Err(ConfigError::Meaning { template: "opensm.conf.hbs", what: "a key or value was dropped or changed" });
    }
    let partitions = render("opensm-partitions.conf.hbs", &templates.partitions, &partition_data(intent))?;
    let default_partition = partitions.lines().find(|l| l.starts_with("Default="));
    let wanted = format!("mtu={}", mtu_code(intent.mtu));
    if !default_partition.is_some_and(|l| l.split([',', ':', ' ']).any(|w| w == wanted) && l.trim_end().ends_with(';')) {
        return Err(ConfigError::Meaning { template: "opensm-partitions.conf.hbs", what: "the Default partition lost its MTU" });
    }
    let unit_data = unit_data(intent, opensm)?;
    let unit = render("opensm.service.hbs", &templates.unit, &unit_data)?;
    let start = format!("ExecStart={} -F {} -P {}", unit_data.opensm, unit_data.config, unit_data.partitions);
    if !unit.lines().any(|l| l == start) {
        return Err(ConfigError::Meaning { template: "opensm.service.hbs", what: "ExecStart is not ours" });
    }
    let unit_path = format!("/etc/systemd/system/{}", unit_name(fabric)?);
    Ok(vec![
        RenderedFile { path: partitions_path(fabric), content: partitions, mode: 0o644 },
        RenderedFile { path: config_path(fabric), content: config, mode: 0o644 },
        RenderedFile { path: unit_path, content: unit, mode: 0o644 },
    ])
}

#[derive(Serialize)]
struct ConfigData<'a> {
    fabric: &'a str,
    entries: &'a [super::document::Entry],
}

#[derive(Serialize)]
struct PartitionData<'a> {
    fabric: &'a str,
    mtu_code: u8,
    mtu_bytes: u32,
    datagram_bytes: u32,
}

#[derive(Serialize)]
struct UnitData<'a> {
    fabric: &'a str,
    guid: String,
    gid_tail: String,
    opensm: &'a str,
    config: String,
    partitions: String,
}

fn partition_data(intent: &ManagerIntent) -> PartitionData<'_> {
    let mtu_bytes = intent.mtu.bytes();
    PartitionData {
        fabric: intent.fabric.as_str(),
        mtu_code: mtu_code(intent.mtu),
        mtu_bytes,
        datagram_bytes: mtu_bytes - IPOIB_HEADER_BYTES,
    }
}

fn unit_data<'a>(intent: &'a ManagerIntent, opensm: &'a str) -> Result<UnitData<'a>, ConfigError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    if !opensm.starts_with('/') || opensm.ends_with('/') || !opensm.chars().all(fine) {
        return Err(ConfigError::Program(opensm.escape_debug().to_string()));
    }
    let hex = format!("{:016x}", intent.guid.0);
    let group = |n: usize| hex.get(n..n + 4).unwrap_or_default();
    Ok(UnitData {
        fabric: intent.fabric.as_str(),
        guid: intent.guid.to_string(),
        gid_tail: format!("{}:{}:{}:{}", group(0), group(4), group(8), group(12)),
        opensm,
        config: config_path(&intent.fabric),
        partitions: partitions_path(&intent.fabric),
    })
}

/// The MTU code of IBA 1.4 volume 1, 14.2.5.6 (`NeighborMTU`).
fn mtu_code(mtu: FabricMtu) -> u8 {
    match mtu {
        FabricMtu::B2048 => 4,
        FabricMtu::B4096 => 5,
    }
}

fn config_path(fabric: &Label) -> String {
    format!("{FOLDER}/{fabric}.conf")
}

fn partitions_path(fabric: &Label) -> String {
    format!("{FOLDER}/{fabric}-partitions.conf")
}

fn render<T: Serialize>(template: &'static str, text: &str, data: &T) -> Result<String, ConfigError> {
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(handlebars::no_escape);
    handlebars
        .render_template(text, data)
        .map_err(|source| ConfigError::Template { template, source: Box::new(source) })
}

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;
