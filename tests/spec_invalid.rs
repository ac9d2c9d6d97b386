//! Each `tests/invalid/<fault>.toml` beside the whole message about it, `<fault>.stderr`.
//!
//! `SELVEDGE_BLESS=1 cargo test --test spec_invalid` writes the messages anew: read the diff.

use std::path::Path;
use std::{env, fs};

use selvedge::spec::{Code, Faults, Look, load};

type Outcome = datatest_stable::Result<()>;

fn faults_of(path: &Path) -> datatest_stable::Result<Faults> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = fs::read_to_string(path)?;
    Ok(match load(&name, &text) {
        Ok(checked) => checked.warnings,
        Err(faults) => faults,
    })
}

/// The message is the golden one, and the file is named for a fault in it.
fn message(path: &Path) -> Outcome {
    let faults = faults_of(path)?;
    let rendered = faults.render(Look::Plain);
    let golden = path.with_extension("stderr");
    if env::var_os("SELVEDGE_BLESS").is_some() {
        fs::write(&golden, &rendered)?;
    }
    let wanted = fs::read_to_string(&golden)?;
    if rendered != wanted {
        return Err(format!("{} has another message now:\n{rendered}\nand had:\n{wanted}", path.display()).into());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let named = |code: &str| stem.strip_prefix(code).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    // The longest code that the name starts with: `bad-name-in-host-list` is a `bad-name`.
    let code = Code::ALL.iter().map(|code| code.as_str()).filter(|code| named(code)).max_by_key(|code| code.len());
    let Some(code) = code else { return Err(format!("{stem} is not named for a fault").into()) };
    let records = faults.records();
    if !records.iter().any(|record| record.code == code) {
        return Err(format!("{stem} has no fault `{code}`: {records:?}").into());
    }
    Ok(())
}

/// Every fault there is has a file; checked where the file of the first one is.
fn every_fault_has_a_file(path: &Path) -> Outcome {
    let folder = path.parent().ok_or("no folder")?;
    let without: Vec<_> =
        Code::ALL.iter().filter(|code| !folder.join(format!("{code}.toml")).exists()).map(|c| c.as_str()).collect();
    if without.is_empty() { Ok(()) } else { Err(format!("no file in tests/invalid for {without:?}").into()) }
}

datatest_stable::harness! {
    { test = message, root = "tests/invalid", pattern = r"\.toml$" },
    { test = every_fault_has_a_file, root = "tests/invalid", pattern = r"^syntax\.toml$" },
}
