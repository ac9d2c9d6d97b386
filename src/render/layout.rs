//! The templates, each parsed once in a process and only when a file needs it.

use std::sync::OnceLock;

use handlebars::Handlebars;
use serde::Serialize;

use super::RenderError;

/// Sections of `key=value`: networkd, NetworkManager, systemd units.
pub static INI: Layout = Layout::new("ini.hbs", include_str!("../../templates/ini.hbs"));

/// Plain lines: udev rules, module lists and options, opensm's files.
pub static LINES: Layout = Layout::new("lines.hbs", include_str!("../../templates/lines.hbs"));

/// Shell variables: the ifcfg files of Red Hat and of SUSE.
pub static IFCFG: Layout = Layout::new("ifcfg.hbs", include_str!("../../templates/ifcfg.hbs"));

/// netplan's YAML.
pub static NETPLAN: Layout = Layout::new("netplan.hbs", include_str!("../../templates/netplan.hbs"));

/// A template and its name.
#[derive(Debug)]
pub struct Layout {
    /// File name in `templates/`.
    pub name: &'static str,
    text: &'static str,
    parsed: OnceLock<Handlebars<'static>>,
}

impl Layout {
    /// A template that is not parsed yet.
    #[must_use]
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, parsed: OnceLock::new() }
    }

    /// Lays out `data`.
    ///
    /// # Errors
    /// When the template is none, or asks for something that is not in the data.
    pub(super) fn lay_out<T: Serialize>(&self, data: &T) -> Result<String, RenderError> {
        let failed = |source| RenderError::Template { template: self.name, source: Box::new(source) };
        let parsed = match self.parsed.get() {
            Some(parsed) => parsed,
            None => {
                let mut parsed = Handlebars::new();
                parsed.set_strict_mode(true);
                parsed.register_escape_fn(handlebars::no_escape);
                parsed.register_template_string(self.name, self.text).map_err(|error| failed(error.into()))?;
                self.parsed.get_or_init(|| parsed)
            }
        };
        parsed.render(self.name, data).map_err(failed)
    }
}
