//! Kernel modules to load at boot, and their options.
//!
//! `/etc/modules-load.d/selvedge.conf` (modules-load.d(5): one name a line) and
//! `/etc/modprobe.d/selvedge.conf` (modprobe.d(5): `options MODULE NAME=VALUE`).
//! Neither format has a way to quote, so what would need it is refused.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{File, RenderError, Template, lay_out, one_line};
use crate::name::ModuleName;
use crate::spec::ModuleOption;

/// The layout of the list.
pub const LOAD: Template =
    Template { name: "modules-load.conf.hbs", text: include_str!("../../templates/modules-load.conf.hbs") };

/// The layout of the options.
pub const OPTIONS: Template =
    Template { name: "modprobe.conf.hbs", text: include_str!("../../templates/modprobe.conf.hbs") };

/// A module to load and what for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Load {
    /// The module.
    pub name: ModuleName,
    /// What for, one line.
    pub why: String,
}

/// Options by module, and each option's value by parameter.
type Options = BTreeMap<ModuleName, BTreeMap<ModuleName, ModuleOption>>;

#[derive(Serialize)]
struct Data<'a, T> {
    header: &'a [String],
    modules: T,
}

/// The list of modules to load at boot.
///
/// # Errors
/// When the template made something else of it.
pub fn load_file(modules: &[Load], header: &[String]) -> Result<File, RenderError> {
    for module in modules {
        one_line("a comment", &module.why)?;
    }
    let content = lay_out(LOAD, &Data { header, modules })?;
    let made: Vec<&str> = lines(&content).map(|(_, line)| line).collect();
    match modules.iter().find(|module| !made.contains(&module.name.as_str())) {
        Some(missing) => Err(RenderError::Meaning { template: LOAD.name, what: missing.name.to_string() }),
        None => Ok(File { path: "/etc/modules-load.d/selvedge.conf".parse()?, content, mode: 0o644 }),
    }
}

/// The options of modules; each takes effect when its module is next loaded.
///
/// # Errors
/// When a value would need quoting, or the template made something else of it.
pub fn options_file(options: &Options, header: &[String]) -> Result<File, RenderError> {
    let mut meant: Vec<OptionLine> = Vec::new();
    for (module, parameters) in options {
        for (name, value) in parameters {
            meant.push(option_line(module, name, value)?);
        }
    }
    let content = lay_out(OPTIONS, &Data { header, modules: &meant })?;
    let made = parse_options(&content)?;
    match meant.iter().find(|line| made.get(&(line.module.as_str(), line.name.as_str())) != Some(&line.value.as_str()))
    {
        Some(OptionLine { module, name, value }) => {
            Err(RenderError::Meaning { template: OPTIONS.name, what: format!("options {module} {name}={value}") })
        }
        None => Ok(File { path: "/etc/modprobe.d/selvedge.conf".parse()?, content, mode: 0o644 }),
    }
}

#[derive(Serialize)]
struct OptionLine {
    module: ModuleName,
    name: ModuleName,
    value: String,
}

fn option_line(module: &ModuleName, name: &ModuleName, value: &ModuleOption) -> Result<OptionLine, RenderError> {
    one_line(name.as_str(), &value.0)?;
    if !value.0.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:,/+".contains(c)) {
        return Err(RenderError::Value {
            value: value.0.escape_debug().to_string(),
            what: format!("the option {name} of {module}"),
            rule: "modprobe.d has no quoting: letters, digits and `-_.:,/+` are allowed",
        });
    }
    Ok(OptionLine { module: module.clone(), name: name.clone(), value: value.0.clone() })
}

/// The last value of each parameter, as the kernel takes it.
fn parse_options(text: &str) -> Result<BTreeMap<(&str, &str), &str>, RenderError> {
    let mut options = BTreeMap::new();
    for (line, text) in lines(text) {
        let wrong = |rule| RenderError::Syntax { template: OPTIONS.name, line, rule };
        let mut words = text.split_whitespace();
        if words.next() != Some("options") {
            continue;
        }
        let module = words.next().ok_or_else(|| wrong("it names no module"))?;
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(|| wrong("an option is NAME=VALUE"))?;
            options.insert((module, name), value);
        }
    }
    Ok(options)
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';']))
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
