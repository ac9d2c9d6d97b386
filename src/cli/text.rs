//! Changes as a person reads them: object, from, to, and why.

use std::fmt::Write;

use crate::node::PlanReport;
use crate::state::{Change, Object, State};

/// When the changes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tense {
    /// A plan.
    Future,
    /// Drift.
    Present,
    /// An apply.
    Past,
}

/// Lays out a report.
pub(super) fn plan(report: &PlanReport, tense: Tense) -> String {
    let mut out = String::new();
    let node = &report.node;
    let count = report.changes.len();
    let s = if count == 1 { "" } else { "s" };
    let _ = match (count, tense) {
        (0, Tense::Past) => writeln!(out, "{node}: in sync, nothing was changed"),
        (0, _) => writeln!(out, "{node}: in sync, nothing differs"),
        (_, Tense::Future) => writeln!(out, "{node}: {count} change{s} to make, in this order"),
        (_, Tense::Present) => writeln!(out, "{node}: {count} difference{s} from the spec"),
        (_, Tense::Past) => writeln!(out, "{node}: {count} change{s} made, each read back"),
    };
    let width = report.changes.iter().map(|row| row.change.object.to_string().len()).max().unwrap_or(0).min(44);
    for row in &report.changes {
        let _ = writeln!(out, "{}", line(&row.change, width, tense));
        for line in row
            .diff
            .iter()
            .flat_map(|diff| diff.lines())
            .filter(|line| !line.starts_with("---") && !line.starts_with("+++"))
        {
            let _ = writeln!(out, "      {line}");
        }
    }
    for deferred in &report.deferred {
        let _ = writeln!(out, "  later: {}; waits until {}", deferred.what, deferred.until);
    }
    for note in &report.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    if report.confirm_by.is_some() {
        let _ = writeln!(
            out,
            "  UNDONE unless you give `selvedge confirm` in time: look whether you can still reach this node, then confirm"
        );
    }
    out
}

/// One line while an apply is under way.
pub(super) fn progress(change: &Change) -> String {
    let (_, to) = states(change);
    format!("  {} {} -> {to}", mark(change), change.object)
}

/// In drift the spec's state is what is wanted, and the other is what was found.
fn line(change: &Change, width: usize, tense: Tense) -> String {
    let (from, to) = states(change);
    let object = change.object.to_string();
    let states = match tense {
        Tense::Present => format!("is {from}, should be {to}"),
        Tense::Future | Tense::Past => format!("{from} -> {to}"),
    };
    format!("  {} {object:width$}  {states:<28}  {}", mark(change), change.reason)
}

fn mark(change: &Change) -> char {
    match (&change.before, &change.after) {
        (State::Absent | State::Stopped | State::Failed, _) => '+',
        (_, State::Absent | State::Stopped) => '-',
        _ => '~',
    }
}

/// From and to in words; two contents of a file by what changes, not by their digests.
fn states(change: &Change) -> (String, String) {
    match (&change.object, &change.before, &change.after) {
        (_, State::File { digest: old, mode: before }, State::File { digest: new, mode: after }) => {
            if old == new {
                (format!("mode {before:04o}"), format!("mode {after:04o}"))
            } else if before == after {
                ("other content".into(), "as rendered".into())
            } else {
                (format!("other content, mode {before:04o}"), format!("as rendered, mode {after:04o}"))
            }
        }
        (_, before, State::File { mode, .. }) => (before.to_string(), format!("written, mode {mode:04o}")),
        (_, State::File { .. }, after) => ("there".into(), after.to_string()),
        (Object::LinkMtu { .. }, State::Mtu { bytes: before }, State::Mtu { bytes: after }) => {
            (before.to_string(), after.to_string())
        }
        (_, before, after) => (before.to_string(), after.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::ChangeReport;
    use crate::state::Reason;

    #[test]
    fn each_line_has_object_from_to_and_why() {
        let change = Change {
            object: Object::LinkMtu { link: "ib0".parse().unwrap() },
            before: State::Mtu { bytes: 2044 },
            after: State::Mtu { bytes: 65520 },
            reason: Reason("[networks.compute] mtu = \"max\"".into()),
            disturbs: None,
            condition: None,
        };
        let report = PlanReport {
            node: "node01".parse().unwrap(),
            changes: vec![ChangeReport { change, diff: None }],
            deferred: vec![],
            notes: vec!["n".into()],
            confirm_by: None,
        };
        let text = plan(&report, Tense::Future);
        assert!(text.contains("~ ib0 MTU  2044 -> 65520"), "{text}");
        assert!(text.contains("[networks.compute] mtu = \"max\""), "{text}");
        assert!(plan(&report, Tense::Present).contains("ib0 MTU  is 2044, should be 65520"));
    }
}
