//! The report as a person reads it: the verdict first, then what is wrong, then everything.

use std::fmt::Write;

use super::model::{Check, Report, Verdict};
use crate::count::counted;

/// Lays the report out. `all` shows the checks that passed as well.
#[must_use]
pub fn render(report: &Report, all: bool) -> String {
    let mut out = String::new();
    let failed = report.checks().filter(|check| check.verdict == Verdict::Fail).count();
    let checks = report.checks().count();
    let nodes = counted(report.nodes.len() + report.unreachable.len(), "node");
    let pairs = counted(report.pairs.len(), "pair");
    let verdict = match report.verdict {
        Verdict::Pass => "verified",
        Verdict::Warning => "verified, with warnings",
        Verdict::Skipped => "not fully verified: some checks could not be made",
        Verdict::Fail => "NOT verified",
    };
    let _ =
        writeln!(out, "{}: {verdict}: {nodes}, {pairs}, {}, {failed} failed", report.cluster, counted(checks, "check"));
    for note in &report.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    for threshold in &report.thresholds {
        let _ = writeln!(out, "  threshold: {threshold}");
    }
    for node in &report.unreachable {
        let _ = writeln!(out, "\n{}: unreachable\n  {}", node.node, node.why);
    }
    for node in &report.nodes {
        section(&mut out, node.node.as_str(), &node.checks, all);
    }
    for fabric in &report.fabrics {
        section(&mut out, &format!("fabric {}", fabric.fabric), &fabric.checks, all);
    }
    for pair in &report.pairs {
        section(&mut out, &format!("{} -> {} on {}", pair.from, pair.to, pair.network), &pair.checks, all);
    }
    out
}

fn section(out: &mut String, title: &str, checks: &[Check], all: bool) {
    let of = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let summary = match (of(Verdict::Fail), of(Verdict::Skipped), of(Verdict::Warning)) {
        (0, 0, 0) => "ok".to_owned(),
        (0, 0, warnings) => format!("ok, with {}", counted(warnings, "warning")),
        (0, skipped, _) => format!("{skipped} not looked at"),
        (failed, ..) => format!("{failed} failed"),
    };
    let _ = writeln!(out, "\n{title}: {summary}");
    let shown = |check: &&Check| all || check.verdict != Verdict::Pass;
    for check in checks.iter().filter(shown) {
        let mark = match check.verdict {
            Verdict::Pass => "ok  ",
            Verdict::Skipped => "skip",
            Verdict::Warning => "warn",
            Verdict::Fail => "FAIL",
        };
        let Check { check: name, object, expected, seen, next, verdict } = check;
        if *verdict == Verdict::Pass {
            let _ = writeln!(out, "  {mark} {name:<15} {object}: {seen}");
        } else {
            let _ = writeln!(out, "  {mark} {name:<15} {object}: {seen}");
            let _ = writeln!(out, "       expected: {expected}");
            let _ = writeln!(out, "       next: {next}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::model::FabricReport;

    #[test]
    fn what_is_wrong_has_seen_expected_and_next_on_lines_of_their_own() {
        let words = ["one master".to_owned(), "none, LID 1".to_owned(), "start one".to_owned()];
        let check = Check::new("subnet-managers", "fabric compute", false, words);
        let report = Report {
            cluster: "lab".parse().unwrap(),
            thresholds: vec![],
            notes: vec!["nothing is measured".to_owned()],
            nodes: vec![],
            fabrics: vec![FabricReport { fabric: "compute".parse().unwrap(), checks: vec![check] }],
            pairs: vec![],
            unreachable: vec![],
            verdict: Verdict::Fail,
        };
        assert_eq!(
            render(&report, false),
            "\
lab: NOT verified: 0 nodes, 0 pairs, 1 check, 1 failed
  note: nothing is measured

fabric compute: 1 failed
  FAIL subnet-managers fabric compute: none, LID 1
       expected: one master
       next: start one
"
        );
    }
}
