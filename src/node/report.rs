//! What plan, apply and drift report, for people and as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use crate::name::HostName;
use crate::plan::Deferred;
use crate::state::{Blobs, Change, State};

/// The changes of one node: to be made, made, or found by drift.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanReport {
    /// The node.
    pub node: HostName,
    /// In the order in which they are made; empty when the node is in sync.
    pub changes: Vec<ChangeReport>,
    /// What can only be known once the changes above are made.
    pub deferred: Vec<Deferred>,
    /// Choices that were made for the reader, and why.
    pub notes: Vec<String>,
    /// Whether an earlier apply, cut off or not confirmed in time, was undone first; the notes say which.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub undid_earlier: bool,
    /// Unless `selvedge confirm` comes by then, seconds since the epoch, all is undone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub confirm_by: Option<u64>,
}

/// A change, and for a text file what changes in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeReport {
    /// The change.
    #[serde(flatten)]
    pub change: Change,
    /// The lines that change, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diff: Option<String>,
}

impl ChangeReport {
    /// Adds the text difference, where both contents are at hand and text.
    #[must_use]
    pub fn new(change: Change, before: &Blobs, after: &Blobs) -> Self {
        let text = |state: &State, blobs: &Blobs| match state {
            State::Absent => Some(String::new()),
            State::File { digest, .. } => String::from_utf8(blobs.get(digest)?.to_vec()).ok(),
            _ => None,
        };
        let is_file = matches!(change.before, State::File { .. }) || matches!(change.after, State::File { .. });
        let diff = match (is_file, text(&change.before, before), text(&change.after, after)) {
            (true, Some(before), Some(after)) => Some(unified(&before, &after)),
            _ => None,
        };
        Self { change, diff }
    }
}

fn unified(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(2).to_string()
}
