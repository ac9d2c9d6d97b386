//! Lays the manager's files out by templates, ours or a site's.
//!
//! In: templates and what they are to say. Out: text that was read back and
//! says just that, or an error that names the template. No I/O.

use handlebars::Handlebars;
use serde::Serialize;
use thiserror::Error;

use super::document::{Document, DocumentError, Entry};
use crate::rdma::{Guid, IPOIB_HEADER_BYTES};
use crate::spec::FabricMtu;

const CONFIG: &str = "opensm.conf.hbs";
const PARTITIONS: &str = "opensm-partitions.conf.hbs";
const UNIT: &str = "opensm.service.hbs";

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

/// Why a template gave no text.
#[derive(Debug, Error)]
pub enum LayoutError {
    /// It does not render.
    #[error("the template {template} can't be rendered")]
    Template {
        /// Its file name.
        template: &'static str,
        /// What handlebars said.
        #[source]
        source: Box<handlebars::RenderError>,
    },
    /// opensm would misread what it made.
    #[error("what the template {template} makes can't be read back")]
    ReadBack {
        /// Its file name.
        template: &'static str,
        /// The line's fault.
        #[source]
        source: DocumentError,
    },
    /// It changed the meaning.
    #[error("the template {template} says something else than the spec: {what}")]
    Meaning {
        /// Its file name.
        template: &'static str,
        /// What is missing or different.
        what: &'static str,
    },
}

#[derive(Serialize)]
struct ConfigData<'a> {
    fabric: &'a str,
    entries: &'a [Entry],
}

#[derive(Serialize)]
struct PartitionData<'a> {
    fabric: &'a str,
    mtu_code: u8,
    mtu_bytes: u32,
    datagram_bytes: u32,
}

/// What the unit says.
#[derive(Debug, Serialize)]
pub(super) struct UnitData<'a> {
    fabric: &'a str,
    guid: String,
    opensm: &'a str,
    config: &'a str,
    partitions: &'a str,
}

impl<'a> UnitData<'a> {
    pub(super) fn new(fabric: &'a str, guid: Guid, opensm: &'a str, config: &'a str, partitions: &'a str) -> Self {
        Self { fabric, guid: guid.to_string(), opensm, config, partitions }
    }
}

/// opensm's configuration.
pub(super) fn config(templates: &Templates, fabric: &str, document: &Document) -> Result<String, LayoutError> {
    let text = render(CONFIG, &templates.config, &ConfigData { fabric, entries: document.entries() })?;
    let read_back = Document::parse(&text).map_err(|source| LayoutError::ReadBack { template: CONFIG, source })?;
    if !read_back.says_the_same(document) {
        return Err(LayoutError::Meaning { template: CONFIG, what: "a key or value was dropped, added or changed" });
    }
    Ok(text)
}

/// The partitions: the default one, with the MTU of its IPoIB broadcast group.
pub(super) fn partitions(templates: &Templates, fabric: &str, mtu: FabricMtu) -> Result<String, LayoutError> {
    // The codes of IBA 1.4 volume 1, 14.2.5.6 (`NeighborMTU`).
    let mtu_code = match mtu {
        FabricMtu::B2048 => 4,
        FabricMtu::B4096 => 5,
    };
    let mtu_bytes = mtu.bytes();
    let data = PartitionData { fabric, mtu_code, mtu_bytes, datagram_bytes: mtu_bytes - IPOIB_HEADER_BYTES };
    let text = render(PARTITIONS, &templates.partitions, &data)?;
    // A partition file that opensm can't parse is replaced by its default one, and only a log line says so.
    let wanted = format!("mtu={mtu_code}");
    let keeps = |line: &str| {
        let flags = line.strip_prefix("Default=0x7fff,").and_then(|l| l.split_once(':'));
        flags.is_some_and(|(flags, members)| {
            flags.split(',').any(|f| f.trim() == wanted)
                && flags.split(',').any(|f| f.trim() == "ipoib")
                && members.trim_end().ends_with(';')
        })
    };
    if !text.lines().any(keeps) {
        return Err(LayoutError::Meaning { template: PARTITIONS, what: "the default partition lost ipoib or its MTU" });
    }
    Ok(text)
}

/// The systemd unit.
pub(super) fn unit(templates: &Templates, data: &UnitData<'_>) -> Result<String, LayoutError> {
    let text = render(UNIT, &templates.unit, data)?;
    let start = format!("ExecStart={} -F {} -P {}", data.opensm, data.config, data.partitions);
    if text.lines().filter(|l| l.starts_with("ExecStart=")).ne([start.as_str()]) {
        return Err(LayoutError::Meaning { template: UNIT, what: "its ExecStart is another" });
    }
    Ok(text)
}

fn render<T: Serialize>(template: &'static str, text: &str, data: &T) -> Result<String, LayoutError> {
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(handlebars::no_escape);
    handlebars
        .render_template(text, data)
        .map_err(|source| LayoutError::Template { template, source: Box::new(source) })
}
