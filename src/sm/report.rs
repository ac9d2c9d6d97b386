//! What `selvedge sm status` prints: a table and findings, or JSON.
//!
//! In: what was seen, what is expected, and the findings. Out: text, a value
//! for JSON, and an exit code. No I/O; a key is in none of it.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::mad::NodeType;
use super::mads::path_text;
use super::seen::{Expected, Reading, Says, Seen, SeenPort};
use super::verdict::{Finding, Problem, Severity};
use crate::count::counted;

/// The report, as JSON has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StatusReport {
    /// The fabric's name in the spec.
    pub fabric: String,
    /// The port that asked.
    pub asked_from: AskedFrom,
    /// Those of the spec in its order, then the others.
    pub managers: Vec<ManagerRow>,
    /// What is wrong, the worst first.
    pub findings: Vec<FindingRow>,
    /// `managed`, `no-master`, `two-masters`, `foreign-master`, `primary-not-master` or `unreachable`.
    pub verdict: &'static str,
    /// How much of the fabric was looked at.
    pub looked_at: LookedAt,
}

/// The port that asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AskedFrom {
    /// Its node's text.
    pub node: String,
    /// Its GUID.
    pub port_guid: String,
    /// 0 until a manager gave one.
    pub lid: u16,
    /// Where it was told that the master is; 0 for nowhere.
    pub master_sm_lid: u16,
    /// Of its link.
    pub state: String,
}

/// One manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ManagerRow {
    /// The host by the spec, or the node's text.
    pub node: String,
    /// `primary`, `standby`, or `unknown`: not in the spec.
    pub role: &'static str,
    /// Its port, if it was found.
    pub port_guid: Option<String>,
    /// Its address.
    pub lid: Option<u16>,
    /// Its priority, as it says.
    pub priority: Option<u8>,
    /// `master`, `standby`, `discovering`, `not-active`, `no answer`, `not running`, `not found`.
    pub state: String,
    /// Management packets that it sent.
    pub act_count: Option<u32>,
    /// How many of them between two readings; its answers to us count.
    pub act_count_moved_by: Option<u32>,
    /// The directed route to it.
    pub route: Option<String>,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingRow {
    /// `fail` or `warning`, as verify has it.
    pub severity: &'static str,
    /// A stable name, such as `no-master`.
    pub problem: String,
    /// What it is about.
    pub object: String,
    /// What was seen.
    pub message: String,
    /// What to do next.
    pub next: String,
}

/// How much of the fabric was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LookedAt {
    /// Switches.
    pub switches: usize,
    /// End ports, with port 0 of each switch.
    pub ports: usize,
    /// Those of hosts and routers.
    pub host_ports: usize,
    /// Questions asked.
    pub questions: usize,
    /// Whether that was all of it.
    pub complete: bool,
}

impl StatusReport {
    /// Puts a report together.
    #[must_use]
    pub fn new(seen: &Seen, expected: &Expected, findings: &[Finding]) -> Self {
        let local = &seen.local;
        Self {
            fabric: expected.fabric.to_string(),
            asked_from: AskedFrom {
                node: local.description.to_string(),
                port_guid: local.guid.to_string(),
                lid: local.lid,
                master_sm_lid: local.master_sm_lid,
                state: local.state.to_string(),
            },
            managers: rows(seen, expected),
            findings: findings.iter().map(finding_row).collect(),
            verdict: verdict(findings),
            looked_at: LookedAt {
                switches: seen.coverage.switches,
                ports: seen.ports.len(),
                host_ports: seen.ports.iter().filter(|port| port.node_type != NodeType::Switch).count(),
                questions: seen.coverage.questions,
                complete: seen.coverage.is_complete(),
            },
        }
    }

    /// 3 when the fabric has no master, two, or for good another than the spec's,
    /// or can't be seen from here; 2 when it differs from the spec; else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if self.verdict != "managed" {
            3
        } else if self.findings.is_empty() {
            0
        } else {
            2
        }
    }

    /// For a person: plain text, no colour.
    #[must_use]
    pub fn to_text(&self) -> String {
        let AskedFrom { node, port_guid, lid, master_sm_lid: _, state } = &self.asked_from;
        let mut text = format!("fabric {}, asked from {node} ({port_guid}, LID {lid}, link {state})\n\n", self.fabric);
        let head = ["MANAGER", "ROLE", "PORT GUID", "LID", "PRIORITY", "STATE", "ACTIVITY"].map(str::to_owned);
        let lines: Vec<[String; 7]> = std::iter::once(head).chain(self.managers.iter().map(cells)).collect();
        let width = |column: usize| lines.iter().map(|l| l[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 7] = std::array::from_fn(width);
        for line in &lines {
            let row: Vec<String> = line.iter().zip(widths).map(|(cell, w)| format!("{cell:<w$}")).collect();
            text.push_str(row.join("  ").trim_end());
            text.push('\n');
        }
        if self.managers.iter().any(|manager| manager.act_count.is_some()) {
            text.push_str("ACTIVITY: management packets that it sent (+ those while it was looked at)\n");
        }
        for finding in &self.findings {
            let FindingRow { severity, problem, object: _, message, next } = finding;
            let mark = if *severity == "fail" { "FAIL" } else { "warn" };
            // Writing to a string does not fail.
            let _ = write!(text, "\n{mark} [{problem}]: {message}\n  next: {next}\n");
        }
        let LookedAt { switches, ports: _, host_ports, questions, complete } = &self.looked_at;
        let all = if *complete { "all of it" } else { "not all of it" };
        let _ = writeln!(
            text,
            "\n{}: {} and {} looked at, {all}, with {}",
            self.verdict,
            counted(*switches, "switch"),
            counted(*host_ports, "host port"),
            counted(*questions, "question")
        );
        text
    }
}

fn verdict(findings: &[Finding]) -> &'static str {
    let worst = findings.iter().find(|f| f.severity == Severity::Bad);
    match worst.map(|f| f.problem) {
        None => "managed",
        Some(Problem::NoMaster) => "no-master",
        Some(Problem::TwoMasters) => "two-masters",
        Some(Problem::ForeignMaster) => "foreign-master",
        Some(Problem::PrimaryNotMaster) => "primary-not-master",
        Some(_) => "unreachable",
    }
}

fn rows(seen: &Seen, expected: &Expected) -> Vec<ManagerRow> {
    let mut rows = Vec::new();
    let mut known = Vec::new();
    for (place, manager) in expected.managers.iter().enumerate() {
        let role = if place == 0 { "primary" } else { "standby" };
        let port = seen.port_of(manager);
        known.extend(port.map(|p| p.guid));
        rows.push(row(manager.host.to_string(), role, port));
    }
    let strangers = seen.ports.iter().filter(|p| p.says != Says::Nothing && !known.contains(&p.guid));
    rows.extend(strangers.map(|p| row(p.description.to_string(), "unknown", Some(p))));
    rows
}

fn row(node: String, role: &'static str, port: Option<&SeenPort>) -> ManagerRow {
    let reading = port.and_then(SeenPort::reading);
    let state = match port.map(|p| &p.says) {
        None => "not found".to_owned(),
        Some(Says::Nothing) => "not running".to_owned(),
        Some(Says::Silence) => "no answer".to_owned(),
        Some(Says::Manager(Reading { state, .. })) => state.to_string(),
    };
    ManagerRow {
        node,
        role,
        port_guid: port.map(|p| p.guid.to_string()),
        lid: port.map(|p| p.lid),
        priority: reading.map(|r| r.priority.get()),
        state,
        act_count: reading.map(|r| r.act_count),
        act_count_moved_by: reading.and_then(|r| r.moved_by),
        route: port.map(|p| path_text(&p.path)),
    }
}

fn cells(row: &ManagerRow) -> [String; 7] {
    let number = |n: Option<String>| n.unwrap_or_else(|| "-".to_owned());
    let activity = match (row.act_count, row.act_count_moved_by) {
        (None, _) => "-".to_owned(),
        (Some(count), None) => format!("{count} (second reading: no answer)"),
        (Some(count), Some(moved)) => format!("{count} (+{moved})"),
    };
    let node = if row.node.is_empty() { "-".to_owned() } else { row.node.clone() };
    [
        node,
        row.role.to_owned(),
        number(row.port_guid.clone()),
        number(row.lid.map(|n| n.to_string())),
        number(row.priority.map(|n| n.to_string())),
        row.state.clone(),
        activity,
    ]
}

fn finding_row(finding: &Finding) -> FindingRow {
    let Finding { severity, problem, object, message, next } = finding;
    FindingRow {
        severity: match severity {
            Severity::Bad => "fail",
            Severity::Warning => "warning",
        },
        problem: problem.as_str().to_owned(),
        object: object.clone(),
        message: message.clone(),
        next: next.clone(),
    }
}
