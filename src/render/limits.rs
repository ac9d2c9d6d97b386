//! Limits and settings of the system that RDMA needs: drop-ins of units, and sysctl.d.

use super::ini::{self, Ini};
use super::layout::{INI, LINES};
use super::lines::Lines;
use super::{File, RenderError};
use crate::name::UnitName;
use crate::state::SysctlKey;

/// A setting, its value and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The setting.
    pub key: SysctlKey,
    /// Its value.
    pub value: u64,
    /// Why, one line.
    pub why: String,
}

/// Where the drop-in of a unit is that takes its limit of locked memory away.
#[must_use]
pub fn memlock_path(unit: &UnitName) -> String {
    format!("/etc/systemd/system/{unit}.d/selvedge-memlock.conf")
}

/// The drop-in itself.
///
/// # Errors
/// When the template made something else of it.
pub fn memlock_file(unit: &UnitName, header: &[String]) -> Result<File, RenderError> {
    let mut ini = Ini::default();
    let why = "Memory that is registered for RDMA is locked; limits.conf does not reach services.";
    ini.section("Service").push("LimitMEMLOCK", "infinity", why)?;
    Ok(File { path: memlock_path(unit).parse()?, content: ini::render(&INI, header, &ini)?, mode: 0o644 })
}

/// What PAM gives a session by ssh, whatever sshd itself may lock: Debian's pam_limits starts from the limits of
/// process 1, 64 MiB with systemd 252, and not from those of sshd. `*` is everybody but root (limits.conf(5)).
///
/// # Errors
/// When the template made something else of it.
pub fn sessions_file(header: &[String]) -> Result<File, RenderError> {
    let mut lines = Lines { header: header.to_vec(), ..Lines::default() };
    lines.push("Sessions by ssh; services have drop-ins.", "* - memlock unlimited");
    lines.push("", "root - memlock unlimited");
    let path = "/etc/security/limits.d/90-selvedge-memlock.conf".parse()?;
    Ok(File { path, content: lines.render(&LINES)?, mode: 0o644 })
}

/// The settings, for systemd-sysctl at boot and for udev when a link appears (99-systemd.rules runs it for that
/// link's own). After what distributions bring, before a site's own 99-*.conf, which has the last word.
///
/// # Errors
/// When the template made something else of it.
pub fn sysctl_file(settings: &[Setting], header: &[String]) -> Result<File, RenderError> {
    let mut lines = Lines { header: header.to_vec(), ..Lines::default() };
    let mut last = "";
    for Setting { key, value, why } in settings {
        lines.push(if why == last { "" } else { why }, format!("{key} = {value}"));
        last = why;
    }
    Ok(File { path: "/etc/sysctl.d/90-selvedge.conf".parse()?, content: lines.render(&LINES)?, mode: 0o644 })
}
