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
use super::election::{FailoverTiming, Priority};
use crate::intent::{Membership, PartitionRole};
use crate::name::Label;
use crate::rdma::{Guid, IPOIB_HEADER_BYTES};
use crate::render::ini::{self, Ini};
use crate::render::layout::{INI, LINES};
use crate::render::lines::Lines;
use crate::render::{File, RenderError};
use crate::spec::FabricMtu;
use crate::state::{OPENSM_FOLDER, PathError};

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
    /// The partitions beside the default one.
    pub partitions: Vec<PartitionRole>,
    /// How a standby notices that the master is gone.
    pub timing: FailoverTiming,
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
    /// A file that can't be laid out.
    #[error(transparent)]
    Render(#[from] RenderError),
}

/// The configuration as a document.
///
/// # Errors
/// When the intent has no GUID or its polling times can't work.
pub fn document(intent: &ManagerIntent) -> Result<Document, ConfigError> {
    let ManagerIntent { fabric, guid, priority, mtu: _, partitions: _, timing } = intent;
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

/// The three files of a manager; none holds a secret, and all may read them.
///
/// # Errors
/// When the intent can't be written down; see [`ConfigError`].
pub fn files(intent: &ManagerIntent, opensm: &str) -> Result<Vec<File>, ConfigError> {
    let fabric = intent.fabric.as_str();
    let program = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    if !opensm.starts_with('/') || opensm.ends_with('/') || !opensm.chars().all(program) {
        return Err(ConfigError::Program(opensm.escape_debug().to_string()));
    }
    let who = format!("Written by selvedge for the fabric {fabric}. Change the spec, not this file.");
    let rest = "Whatever is not here is opensm's own default.".to_owned();
    let config = document(intent)?.into_lines(vec![who.clone(), rest]).render(&LINES)?;
    let partitions = partitions(&who, intent.mtu, &intent.partitions).render(&LINES)?;
    let unit = ini::render(&INI, &[who], &unit(intent, opensm)?)?;
    let file = |path: &str, content| Ok::<_, PathError>(File { path: path.parse()?, content, mode: 0o644 });
    Ok(vec![
        file(&partitions_path(fabric), partitions)?,
        file(&config_path(fabric), config)?,
        file(&format!("/etc/systemd/system/selvedge-opensm-{fabric}.service"), unit)?,
    ])
}

/// The partitions, each with the MTU of its IPoIB broadcast group. A file that opensm can't parse is replaced
/// by its own default, and only a log line says so.
///
/// opensm adds up lines of one key, and what a later one says of a port stands: so the ports that are named come after
/// `ALL`, one a line, since a line may have at most 4 KiB.
fn partitions(who: &str, mtu: FabricMtu, others: &[PartitionRole]) -> Lines {
    // The codes of IBA 1.4 volume 1, 14.2.5.6 (`NeighborMTU`).
    let code = match mtu {
        FabricMtu::B2048 => 4,
        FabricMtu::B4096 => 5,
    };
    let bytes = mtu.bytes();
    let mut lines = Lines { header: vec![who.to_owned()], ..Lines::default() };
    let datagram = bytes - IPOIB_HEADER_BYTES;
    let why = format!("mtu is opensm's code for {bytes} bytes: IPoIB datagrams of {datagram}.");
    lines.push(&why, format!("Default=0x7fff,ipoib,mtu={code} : ALL=full, SELF=full;"));
    for PartitionRole { name, pkey, rest, ports } in others {
        let key = format!("{:#06x}", pkey.limited());
        let word = |membership: &Membership| match membership {
            Membership::Full => "full",
            Membership::Limited => "limited",
        };
        let rest = rest.iter().map(|membership| format!("ALL={}", word(membership)));
        let ports = ports.iter().map(|(guid, membership)| format!("{guid}={}", word(membership)));
        for (index, member) in rest.chain(ports).enumerate() {
            let flags = if index == 0 { format!(",ipoib,mtu={code}") } else { String::new() };
            let why = if index == 0 { format!("The interfaces of partition {pkey} are on it.") } else { String::new() };
            lines.push(&why, format!("{name}={key}{flags} : {member};"));
        }
    }
    lines
}

fn unit(intent: &ManagerIntent, opensm: &str) -> Result<Ini, RenderError> {
    let ManagerIntent { fabric, guid, .. } = intent;
    let (config, partitions) = (config_path(fabric.as_str()), partitions_path(fabric.as_str()));
    let cache = format!("/var/cache/selvedge-opensm/{fabric}");
    let mut ini = Ini::default();
    ini.section("Unit")
        .push("Description", &format!("Subnet manager of the InfiniBand fabric {fabric}"), "")?
        .push("Documentation", "man:opensm(8)", "")?
        .push(
            "Wants",
            "modprobe@ib_umad.service",
            "A fabric has no hosts on it before this runs: never after network-online.target.",
        )?
        .push("After", "modprobe@ib_umad.service rdma-hw.target", "")?
        .push("Before", "remote-fs-pre.target", "")?
        .push(
            "Conflicts",
            &format!("opensm.service opensm@{guid}.service opensmd.service"),
            "Two managers on one port: the second one can't bind, or worse, can.",
        )?
        .push(
            "StartLimitIntervalSec",
            "0",
            "opensm leaves with status 0 when its port is not there yet: never give up.",
        )?;
    ini.section("Service")
        .push("Type", "simple", "")?
        .push("ExecStart", &format!("{opensm} -F {config} -P {partitions}"), "")?
        .push("ExecReload", "/bin/kill -HUP $MAINPID", "")?
        .push("Environment", &format!("OSM_CACHE_DIR={cache} OSM_TMP_DIR={cache}"), "")?
        .push("CacheDirectory", &format!("selvedge-opensm/{fabric}"), "")?
        .push("CacheDirectoryMode", "0700", "")?
        .push("SyslogIdentifier", &format!("opensm-{fabric}"), "")?
        .push("Restart", "always", "")?
        .push("RestartSec", "5", "")?
        .push("TimeoutStopSec", "15", "")?
        .push("LimitMEMLOCK", "infinity", "")?
        .push("OOMScoreAdjust", "-900", "")?
        .push("NoNewPrivileges", "yes", "")?
        .push("ProtectHome", "yes", "")?
        .push("ProtectSystem", "full", "")?;
    ini.section("Install").push("WantedBy", "multi-user.target", "")?;
    Ok(ini)
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
