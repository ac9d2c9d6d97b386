//! Kernel modules to load at boot, and their options.
//!
//! `/etc/modules-load.d/selvedge.conf` (modules-load.d(5): one name a line) and
//! `/etc/modprobe.d/selvedge.conf` (modprobe.d(5): `options MODULE NAME=VALUE`).
//! Neither format has a way to quote, so what would need it is refused.

use std::collections::BTreeMap;

use super::layout::LINES;
use super::lines::Lines;
use super::{File, RenderError, one_line};
use crate::name::ModuleName;
use crate::spec::ModuleOption;

/// A module to load and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The module.
    pub name: ModuleName,
    /// What for, one line.
    pub why: String,
}

/// Options by module, and each option's value by parameter.
type Options = BTreeMap<ModuleName, BTreeMap<ModuleName, ModuleOption>>;

/// The list of modules to load at boot.
///
/// # Errors
/// When the template made something else of it.
pub fn load_file(modules: &[Load], header: &[String]) -> Result<File, RenderError> {
    let mut lines = Lines { header: header.to_vec(), ..Lines::default() };
    for module in modules {
        lines.push(&module.why, module.name.as_str());
    }
    Ok(File { path: "/etc/modules-load.d/selvedge.conf".parse()?, content: lines.render(&LINES)?, mode: 0o644 })
}

/// The options of modules; each takes effect when its module is next loaded.
///
/// # Errors
/// When a value would need quoting, or the template made something else of it.
pub fn options_file(options: &Options, header: &[String]) -> Result<File, RenderError> {
    let mut lines = Lines { header: header.to_vec(), ..Lines::default() };
    lines.header.push("An option takes effect when its module is loaded the next time.".to_owned());
    for (module, parameters) in options {
        for (name, value) in parameters {
            lines.push(&format!("[modules.{module}] {name}"), option_line(module, name, value)?);
        }
    }
    Ok(File { path: "/etc/modprobe.d/selvedge.conf".parse()?, content: lines.render(&LINES)?, mode: 0o644 })
}

fn option_line(module: &ModuleName, name: &ModuleName, value: &ModuleOption) -> Result<String, RenderError> {
    one_line(name.as_str(), &value.0)?;
    if !value.0.chars().all(ModuleOption::may_hold) {
        return Err(RenderError::Value {
            value: value.0.escape_debug().to_string(),
            what: format!("the option {name} of {module}"),
            rule: "modprobe.d has no quoting: letters, digits and `-_.:,/+` are allowed",
        });
    }
    Ok(format!("options {module} {name}={}", value.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(value: &str) -> Options {
        let parameter = BTreeMap::from([("p".parse().unwrap(), ModuleOption(value.to_owned()))]);
        BTreeMap::from([("ib_ipoib".parse().unwrap(), parameter)])
    }

    #[test]
    fn a_value_is_one_word() {
        assert!(options_file(&options("512"), &[]).unwrap().content.ends_with("options ib_ipoib p=512\n"));
        for bad in ["", "a b", "a\nb", "\"a\"", "a\\", "a#b", "$x", "1\ninstall ib_ipoib /bin/sh"] {
            assert!(options_file(&options(bad), &[]).is_err(), "{bad:?}");
        }
    }
}
