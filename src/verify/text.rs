//! The report as a person reads it: the verdict first, then what is wrong, then everything.

use std::fmt::Write;

use super::model::{Check, Report, Verdict};

/// Lays the report out. `all` shows the checks that passed as well.
#[must_use]
pub fn render(report: &Report, all: bool) -> String {
    let mut out = String::new();
    let failed = report.checks().filter(|check| check.verdict == Verdict::Fail).count();
    let checks = report.checks().count();
    let nodes = report.nodes.len() + report.unreachable.len();
    let verdict = match report.verdict {
        Verdict::Pass => "verified",
        Verdict::Warning => "verified, with warnings",
        Verdict::Skipped => "not fully verified: some checks could not be made",
        Verdict::Fail => "NOT verified",
    };
    let _ = writeln!(
        out,
        "{}: {verdict}: {nodes} nodes, {} pairs, {checks} checks, {failed} failed",
        report.cluster,
        report.pairs.len()
    );
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
    let failed = checks.iter().filter(|check| check.verdict == Verdict::Fail).count();
    let summary = if failed == 0 { "ok".to_owned() } else { format!("{failed} failed") };
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
            let _ = writeln!(out, "  {mark} {name:<15} {object}: {seen}, expected {expected}");
            let _ = writeln!(out, "       next: {next}");
        }
    }
}
