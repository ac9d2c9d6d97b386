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

use thiserror::Error;

use super::document::{Document, DocumentError};
use super::election::{FailoverTiming, Priority, PriorityError};
use super::layout::{self, LayoutError, Templates, UnitData};
use crate::name::{HostName, Label};
use crate::rdma::Guid;
use crate::spec::{Fabric, FabricMtu};
use crate::state::{FilePath, OPENSM_FOLDER, PathError};

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

impl ManagerIntent {
    /// What the spec asks of a host: `None` when it manages nothing on the fabric.
    ///
    /// # Errors
    /// When there are more managers than distinct priorities.
    pub fn of_host(label: &Label, fabric: &Fabric, host: &HostName, guid: Guid) -> Result<Option<Self>, PriorityError> {
        let Some(managers) = &fabric.subnet_manager else { return Ok(None) };
        let mut hosts = std::iter::once(&managers.primary).chain(&managers.standby);
        let Some(place) = hosts.position(|h| h == host) else { return Ok(None) };
        let priority = Priority::of_place(place)?;
        Ok(Some(Self { fabric: label.clone(), guid, priority, mtu: fabric.mtu, timing: FailoverTiming::default() }))
    }
}

/// A file as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedFile {
    /// Where, from the root of the file system.
    pub path: FilePath,
    /// The whole text.
    pub content: String,
    /// Permission bits.
    pub mode: u32,
}

impl RenderedFile {
    /// None of these files holds a secret: all may read them.
    fn new(path: &str, content: String) -> Result<Self, PathError> {
        Ok(Self { path: path.parse()?, content, mode: 0o644 })
    }
}

/// Why there are no files.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// GUID 0 makes opensm ask at a prompt, or take whichever port it finds.
    #[error("the fabric {0} has no port GUID for its subnet manager on this node")]
    NoGuid(Label),
    /// Polling times that can't work.
    #[error(
        "subnet manager polling of {polling_timeout_ms} ms with {polling_retries} retries is outside 100 to 60000 ms and 1 to 10"
    )]
    Timing {
        /// Milliseconds.
        polling_timeout_ms: u32,
        /// Unanswered polls.
        polling_retries: u32,
    },
    /// Not a path that a unit can name.
    #[error("`{0}` is no path of an opensm program: absolute, of letters, digits and `/._+-`")]
    Program(String),
    /// A path outside its rules.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A key or value that opensm would misread.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A template that does not lay out what it was given, or changes it.
    #[error(transparent)]
    Layout(#[from] LayoutError),
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
    let takeover = format!(
        "A standby takes over {:.1} to {:.1} s after the master dies.",
        soonest.as_secs_f64(),
        latest.as_secs_f64()
    );
    let mut d = Document::default();
    d.push("guid", &guid.to_string(), "The port that this manager binds to: never a guess.")?;
    d.push("sm_priority", &priority.to_string(), "The highest one answering is master; no two are equal.")?;
    d.push("sminfo_polling_timeout", &polling_timeout_ms.to_string(), &takeover)?;
    d.push("polling_retry_number", &polling_retries.to_string(), "")?;
    d.push("partition_config_file", &partitions_path(fabric.as_str()), "")?;
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
pub fn files_with(
    intent: &ManagerIntent,
    opensm: &str,
    templates: &Templates,
) -> Result<Vec<RenderedFile>, ConfigError> {
    let fabric = intent.fabric.as_str();
    let program = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    if !opensm.starts_with('/') || opensm.ends_with('/') || !opensm.chars().all(program) {
        return Err(ConfigError::Program(opensm.escape_debug().to_string()));
    }
    let (config_path, partitions_path) = (config_path(fabric), partitions_path(fabric));
    let config = layout::config(templates, fabric, &document(intent)?)?;
    let partitions = layout::partitions(templates, fabric, intent.mtu)?;
    let unit = UnitData::new(fabric, intent.guid, opensm, &config_path, &partitions_path);
    let unit = layout::unit(templates, &unit)?;
    Ok(vec![
        RenderedFile::new(&partitions_path, partitions)?,
        RenderedFile::new(&config_path, config)?,
        RenderedFile::new(&format!("/etc/systemd/system/selvedge-opensm-{fabric}.service"), unit)?,
    ])
}

/// A label has no dot, so what comes before the first one is the fabric.
fn config_path(fabric: &str) -> String {
    format!("{OPENSM_FOLDER}{fabric}.conf")
}

fn partitions_path(fabric: &str) -> String {
    format!("{OPENSM_FOLDER}{fabric}.partitions.conf")
}

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;
