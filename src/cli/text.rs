//! Changes as a person reads them: object, from, to, and why.

use std::fmt::Write;

use crate::count::counted;
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
    lay_out(report, tense, "`selvedge render` with the same arguments")
}

/// Lays out the report of an image, which `render` does not look into.
pub(super) fn plan_of_image(report: &PlanReport, tense: Tense) -> String {
    lay_out(report, tense, "the same with `--format json`")
}

fn lay_out(report: &PlanReport, tense: Tense, texts: &str) -> String {
    let mut out = String::new();
    let node = &report.node;
    let count = report.changes.len();
    let _ = match (count, tense) {
        (0, Tense::Past) if report.undid_earlier => writeln!(out, "{node}: in sync after an earlier apply was undone"),
        (0, Tense::Past) => writeln!(out, "{node}: in sync, nothing was changed"),
        (0, _) => writeln!(out, "{node}: in sync, nothing differs"),
        (_, Tense::Future) => writeln!(out, "{node}: {} to make, in this order", counted(count, "change")),
        (_, Tense::Present) => writeln!(out, "{node}: {} from the spec", counted(count, "difference")),
        (_, Tense::Past) => writeln!(out, "{node}: {} made, each read back", counted(count, "change")),
    };
    let width = width(report.changes.iter().map(|row| &row.change));
    for row in &report.changes {
        out.push_str(&line(&row.change, width, tense));
        // A new file is told by its name here, and in full by `selvedge render`.
        let edited = row.diff.iter().filter(|_| row.change.before != State::Absent);
        for line in edited.flat_map(|diff| diff.lines()) {
            if !line.starts_with("---") && !line.starts_with("+++") {
                let _ = writeln!(out, "      {line}");
            }
        }
    }
    let news = report.changes.iter().filter(|row| row.diff.is_some() && row.change.before == State::Absent).count();
    if news > 0 {
        let news = counted(news, "new file");
        let _ = writeln!(out, "  the text of the {news}: {texts}");
    }
    for deferred in &report.deferred {
        let _ = writeln!(out, "  later: {}; waits until {}", deferred.what, deferred.until);
    }
    for note in &report.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    if count == 0 && tense == Tense::Present {
        out.push_str(CONFIGURATION_ONLY);
    }
    out
}

/// What drift in sync does not say.
const CONFIGURATION_ONLY: &str =
    "  note: this is the configuration of the node; `selvedge verify` looks at the fabric and measures it\n";

/// What is to be done about an apply that waits for its confirmation, `seconds` long and until `deadline`.
pub(super) fn unconfirmed(deadline: u64, seconds: u64, confirm: &str) -> String {
    let until = clock(deadline);
    format!(
        "  UNDONE unless confirmed by {until} on the node's clock, in {seconds} s: look whether you can still reach it, then\n      {confirm}\n"
    )
}

/// The time of day of seconds since the epoch. A deadline is a day away at most.
pub(super) fn clock(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// The day and time of seconds since the epoch.
pub(super) fn date(seconds: u64) -> String {
    let time = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(seconds));
    let text = time.map_or_else(String::new, |time| humantime::format_rfc3339_seconds(time).to_string());
    text.replace('T', " ").replace('Z', " UTC")
}

/// One line while an apply is under way.
pub(super) fn progress(change: &Change) -> String {
    let (_, to) = states(change);
    format!("  {} {} -> {to}", mark(change), change.object)
}

/// The widest line; what would be wider has its reason on a line of its own.
const COLUMNS: usize = 118;
/// Most objects are shorter than this; the few long paths must not push all other lines apart.
const MAX_OBJECT: usize = 40;

fn width<'a>(changes: impl Iterator<Item = &'a Change>) -> usize {
    let lengths = changes.map(|change| change.object.to_string().len());
    lengths.filter(|length| *length <= MAX_OBJECT).max().unwrap_or(0)
}

/// In drift the spec's state is what is wanted, and the other is what was found.
fn line(change: &Change, width: usize, tense: Tense) -> String {
    let (from, to) = states(change);
    let object = change.object.to_string();
    let states = match tense {
        Tense::Present => format!("is {from}, should be {to}"),
        Tense::Future | Tense::Past => format!("{from} -> {to}"),
    };
    let line = format!("  {} {object:width$}  {states:<24}", mark(change));
    let reason = &change.reason.0;
    if line.len() + 2 + reason.len() <= COLUMNS {
        format!("{line}  {reason}\n")
    } else {
        format!("{}\n      {reason}\n", line.trim_end())
    }
}

fn mark(change: &Change) -> char {
    match (&change.before, &change.after) {
        (State::Restarting, State::Stopped) => '-',
        (State::Absent | State::Stopped | State::Failed | State::Restarting, _) => '+',
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
                ("edited".into(), "as rendered".into())
            } else {
                (format!("edited, mode {before:04o}"), format!("as rendered, mode {after:04o}"))
            }
        }
        (_, before, State::File { mode, .. }) => (before.to_string(), format!("there, mode {mode:04o}")),
        (_, State::File { .. }, after) => ("there".into(), after.to_string()),
        (Object::Reload { .. }, _, _) => ("out of date".into(), "read again".into()),
        (_, before, after) => (before.to_string(), after.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::ChangeReport;
    use crate::state::{Blobs, Reason};

    fn change(object: Object, before: State, after: State, reason: &str) -> Change {
        Change {
            object,
            before,
            after,
            reason: Reason(reason.into()),
            disturbs: std::collections::BTreeSet::new(),
            condition: None,
        }
    }

    fn mtu() -> Change {
        let object = Object::LinkMtu { link: "ib0".parse().unwrap() };
        let reason = "[networks.compute] mtu = \"max\"";
        change(object, State::Mtu { bytes: 2044 }, State::Mtu { bytes: 65520 }, reason)
    }

    fn file(blobs: &mut Blobs, before: Option<&str>, after: &str) -> Change {
        let mut state = |text: &str| State::File { digest: blobs.insert(text.into()), mode: 0o644 };
        let before = before.map_or(State::Absent, &mut state);
        let object = Object::File { path: "/etc/systemd/network/10-selvedge-ib0.network".parse().unwrap() };
        change(object, before, state(after), "[[nodes]] config = \"networkd\": keeps ib0 over a reboot")
    }

    fn report(changes: Vec<ChangeReport>) -> PlanReport {
        let node = "node01".parse().unwrap();
        PlanReport { node, changes, deferred: vec![], notes: vec![], undid_earlier: false, confirm_by: None }
    }

    #[test]
    fn each_line_has_object_from_to_and_why() {
        let report = report(vec![ChangeReport { change: mtu(), diff: None }]);
        let text = plan(&report, Tense::Future);
        assert!(text.contains("~ ib0 MTU  2044 -> 65520"), "{text}");
        assert!(text.contains("[networks.compute] mtu = \"max\""), "{text}");
        assert!(plan(&report, Tense::Present).contains("ib0 MTU  is 2044, should be 65520"));
    }

    #[test]
    fn a_long_path_has_its_reason_below_and_pushes_no_other_line() {
        let mut blobs = Blobs::default();
        let edited = file(&mut blobs, Some("mtu = 9\n"), "mtu = 1\n");
        let rows = [edited, mtu()].map(|change| ChangeReport::new(change, &blobs, &blobs));
        let text = plan(&report(rows.to_vec()), Tense::Present);
        let path =
            "  ~ file /etc/systemd/network/10-selvedge-ib0.network  is edited, should be as rendered\n      [[nodes]]";
        assert!(text.contains(path), "{text}");
        assert!(text.contains("      -mtu = 9\n      +mtu = 1\n  ~ ib0 MTU  is"), "{text}");
        assert!(text.lines().all(|line| line.len() <= COLUMNS), "{text}");
    }

    #[test]
    fn what_undid_an_earlier_apply_did_not_do_nothing() {
        let mut report = report(vec![]);
        assert_eq!(plan(&report, Tense::Past), "node01: in sync, nothing was changed\n");
        assert_eq!(
            unconfirmed(1_796_149_958, 120, "selvedge confirm --node node01"),
            "  UNDONE unless confirmed by 18:32:38 UTC on the node's clock, in 120 s: look whether you can still reach it, \
             then\n      selvedge confirm --node node01\n"
        );
        report.undid_earlier = true;
        report.notes.push("an earlier apply was cut off before it was complete and was undone first".into());
        let text = plan(&report, Tense::Past);
        assert!(text.contains("in sync after an earlier apply was undone\n  note: an earlier"), "{text}");
        assert!(!text.contains("nothing"), "{text}");
    }

    #[test]
    fn drift_in_sync_says_that_it_looks_at_configuration_only() {
        let synced = report(vec![]);
        let text = plan(&synced, Tense::Present);
        assert!(
            text.starts_with("node01: in sync, nothing differs\n  note: ") && text.contains("`selvedge verify`"),
            "{text}"
        );
        assert!(!plan(&synced, Tense::Future).contains("verify") && !plan(&synced, Tense::Past).contains("verify"));
        let drifted = report(vec![ChangeReport { change: mtu(), diff: None }]);
        assert!(!plan(&drifted, Tense::Present).contains("verify"));
    }

    #[test]
    fn a_date_reads_as_people_write_it() {
        assert_eq!(date(1_796_149_958), "2026-12-01 18:32:38 UTC");
    }

    #[test]
    fn a_new_file_is_not_spelled_out() {
        let mut blobs = Blobs::default();
        let new = file(&mut blobs, None, "mtu = 1\n");
        let text = plan(&report(vec![ChangeReport::new(new, &blobs, &blobs)]), Tense::Future);
        assert!(text.contains("absent -> there, mode 0644") && !text.contains("mtu = 1"), "{text}");
        assert!(text.contains("1 new file: `selvedge render`"), "{text}");
    }
}
