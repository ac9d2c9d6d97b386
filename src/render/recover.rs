//! The unit that undoes an interrupted apply before the network starts.
//!
//! It does nothing unless a journal is open: see `apply::store`.

use super::ini::{self, Ini};
use super::layout::INI;
use super::{File, RenderError};
use crate::state::{FilePath, RECOVER_ENABLEMENT, RECOVER_UNIT};

/// Where the unit is.
pub const PATH: &str = RECOVER_UNIT;

/// The link that enables it.
pub const ENABLEMENT: &str = RECOVER_ENABLEMENT;

/// There while a transaction is open.
pub const OPEN_JOURNALS: &str = "/var/lib/selvedge/journal/*.open";

/// The unit; `selvedge` is this program.
///
/// # Errors
/// When the program's path would need quoting in a unit.
pub fn file(selvedge: &FilePath, header: &[String]) -> Result<File, RenderError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    if !selvedge.as_str().chars().all(plain) {
        let rule = "a program in a unit has letters, digits and `/._+-` in its path";
        return Err(RenderError::Value { value: selvedge.to_string(), what: "ExecStart".to_owned(), rule });
    }
    let content = ini::render(&INI, header, &document(selvedge)?)?;
    Ok(File { path: PATH.parse()?, content, mode: 0o644 })
}

fn document(selvedge: &FilePath) -> Result<Ini, RenderError> {
    let mut ini = Ini::default();
    let unit = ini.section("Unit");
    unit.push("Description", "Undo an interrupted selvedge apply", "")?
        .push("DefaultDependencies", "no", "Early, before anything reads the files that may have to go back.")?
        .push("RequiresMountsFor", "/var/lib/selvedge", "")?
        .push("After", "local-fs.target systemd-remount-fs.service", "")?
        .push(
            "Before",
            "sysinit.target network-pre.target systemd-networkd.service NetworkManager.service shutdown.target",
            "Nothing that the files start may start before they are back.",
        )?
        .push("Conflicts", "shutdown.target", "")?
        .push("Wants", "network-pre.target", "")?
        .push("ConditionPathExistsGlob", OPEN_JOURNALS, "There exactly while a transaction is open.")?;
    let service = ini.section("Service");
    service.push("Type", "oneshot", "")?.push("ExecStart", &format!("{selvedge} recover --boot"), "")?.push(
        "TimeoutStartSec",
        "120",
        "A boot is not held up for ever.",
    )?;
    ini.section("Install").push("WantedBy", "sysinit.target", "")?;
    Ok(ini)
}
