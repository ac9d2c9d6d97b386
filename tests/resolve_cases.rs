//! Golden cases: spec, facts and a node's name in; files and plan, or the whole message, out.
//!
//! `tests/cases/CASE/` has `spec.toml` (or a link to an example), `facts.json`
//! and `node`; `expected/plan.txt` and `expected/files/`, or
//! `expected/fault.txt`. `SELVEDGE_BLESS=1 cargo test --test resolve_cases`
//! writes them anew: read the diff.

#[path = "resolve/case.rs"]
mod case;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use case::Case;
use selvedge::plan::Desired;
use selvedge::state::{Change, Object, Observed, Owned, State};

type Outcome = datatest_stable::Result<()>;

fn golden(facts: &Path) -> Outcome {
    let folder = facts.parent().ok_or("no folder")?;
    let made = match Case::read(folder)?.resolve() {
        Ok(desired) => texts(&desired),
        Err(message) => BTreeMap::from([(PathBuf::from("fault.txt"), message + "\n")]),
    };
    let expected = folder.join("expected");
    if env::var_os("SELVEDGE_BLESS").is_some() {
        fs::remove_dir_all(&expected).or_else(|error| if expected.exists() { Err(error) } else { Ok(()) })?;
        for (path, text) in &made {
            let path = expected.join(path);
            fs::create_dir_all(path.parent().ok_or("no folder")?)?;
            fs::write(path, text)?;
        }
    }
    let mut wanted = BTreeMap::new();
    read_tree(&expected, &expected, &mut wanted)?;
    for path in made.keys().chain(wanted.keys()) {
        let (made, wanted) = (made.get(path).map_or("", String::as_str), wanted.get(path).map_or("", String::as_str));
        if made != wanted {
            return Err(format!("{}: {} is now\n{made}\nand was\n{wanted}", folder.display(), path.display()).into());
        }
    }
    Ok(())
}

/// Once all is as it was asked, there is nothing left to do.
fn a_second_plan_is_empty(facts: &Path) -> Outcome {
    let folder = facts.parent().ok_or("no folder")?;
    let Ok(desired) = Case::read(folder)?.resolve() else { return Ok(()) };
    let states = desired.items.iter().map(|(object, wanted)| (object.clone(), wanted.state.clone())).collect();
    let observed = Observed { states, ..Observed::default() };
    let changes = desired.changes(&observed, &Owned::default());
    if changes.is_empty() { Ok(()) } else { Err(format!("{changes:?}").into()) }
}

/// The plan of a host that has nothing of it, and each file.
fn texts(desired: &Desired) -> BTreeMap<PathBuf, String> {
    let nothing = desired.items.keys().map(|object| (object.clone(), State::Absent)).collect();
    let observed = Observed { states: nothing, ..Observed::default() };
    let mut plan = String::new();
    let mut texts = BTreeMap::new();
    for change in desired.changes(&observed, &Owned::default()) {
        plan += &change_text(&change, desired);
        if let (Object::File { path }, State::File { digest, .. }) = (&change.object, &change.after) {
            let content = String::from_utf8_lossy(desired.blobs.get(digest).unwrap_or_default()).into_owned();
            texts.insert(Path::new("files").join(path.as_str().trim_start_matches('/')), content);
        }
    }
    for deferred in &desired.deferred {
        let _ = writeln!(plan, "\nlater: {}\n  once {}", deferred.what, deferred.until);
    }
    for note in &desired.notes {
        let _ = writeln!(plan, "\nnote: {note}");
    }
    texts.insert(PathBuf::from("plan.txt"), plan);
    texts
}

/// A change without the digest, which says nothing to a reader of the diff.
fn change_text(change: &Change, desired: &Desired) -> String {
    let after = match &change.after {
        State::File { mode, .. } => format!("mode {mode:04o}"),
        state => state.to_string(),
    };
    let mut text = format!("{}: {after}\n  {}\n", change.object, change.reason);
    for link in &change.disturbs {
        let _ = writeln!(text, "  can disturb {link}");
    }
    if let Some(condition) = &change.condition {
        let _ = writeln!(text, "  only if {condition:?}");
    }
    if let Some(leaving) = desired.items.get(&change.object).and_then(|wanted| wanted.leaving.as_ref()) {
        let _ = writeln!(text, "  taken away only if {leaving:?}");
    }
    text
}

fn read_tree(top: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, String>) -> Outcome {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_tree(top, &path, found)?;
        } else {
            found.insert(path.strip_prefix(top)?.to_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

datatest_stable::harness! {
    { test = golden, root = "tests/cases", pattern = r"/facts\.json$" },
    { test = a_second_plan_is_empty, root = "tests/cases", pattern = r"/facts\.json$" },
}
