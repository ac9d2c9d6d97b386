//! systemd's file format as a document: sections of keys and values.
//!
//! In: sections, keys, values and why. Out: a document that systemd reads back
//! as it was meant, and the same from text, to compare with what a template
//! made. See systemd.syntax(7): a line is a key, `=` and the rest; `\` at its
//! end joins the next; `#` and `;` start a comment only at a line's start; `%`
//! starts a specifier in units.

use serde::Serialize;

use super::layout::Layout;
use super::{RenderError, one_line};

/// A document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ini {
    /// Its sections in order.
    pub sections: Vec<Section>,
}

/// A section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// `Match` for `[Match]`.
    pub name: String,
    /// Its entries in order; a key can be there several times.
    pub entries: Vec<Entry>,
}

/// A key and a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// Why, one line; empty for no comment.
    pub why: String,
}

impl Ini {
    /// Starts a section; entries go to the last one.
    pub fn section(&mut self, name: &str) -> &mut Section {
        let index = self.sections.len();
        self.sections.push(Section { name: name.to_owned(), entries: Vec::new() });
        &mut self.sections[index]
    }

    /// Reads a document from text.
    ///
    /// # Errors
    /// When a line is none of a section, an entry and a comment.
    pub fn parse(layout: &Layout, text: &str) -> Result<Self, RenderError> {
        let mut ini = Self::default();
        for (index, line) in text.lines().enumerate() {
            let wrong = |rule| RenderError::Syntax { template: layout.name, line: index + 1, rule };
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                ini.sections.push(Section { name: name.to_owned(), entries: Vec::new() });
                continue;
            }
            let (key, value) = line.split_once('=').ok_or_else(|| wrong("it is no section, entry or comment"))?;
            if value.ends_with('\\') {
                return Err(wrong("it runs on in the next line"));
            }
            let section = ini.sections.last_mut().ok_or_else(|| wrong("it stands before any section"))?;
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            section.entries.push(Entry { key, value, why: String::new() });
        }
        Ok(ini)
    }

    /// Checks that `made` says all that this document says. Keys that this one
    /// does not set are the template's own affair.
    ///
    /// # Errors
    /// With the first entry that is missing, different, or there more often.
    pub fn is_said_by(&self, layout: &Layout, made: &Self) -> Result<(), RenderError> {
        for section in &self.sections {
            for entry in &section.entries {
                if self.values(&section.name, &entry.key) != made.values(&section.name, &entry.key) {
                    let what = format!("[{}] {}={}", section.name, entry.key, entry.value);
                    return Err(RenderError::Meaning { template: layout.name, what });
                }
            }
        }
        Ok(())
    }

    fn values(&self, section: &str, key: &str) -> Vec<&str> {
        let sections = self.sections.iter().filter(|one| one.name == section);
        sections
            .flat_map(|one| &one.entries)
            .filter(|entry| entry.key == key)
            .map(|entry| entry.value.as_str())
            .collect()
    }
}

impl Section {
    /// Adds an entry.
    ///
    /// # Errors
    /// When systemd would read it back as something else.
    pub fn push(&mut self, key: &str, value: &str, why: &str) -> Result<&mut Self, RenderError> {
        one_line(key, value)?;
        if !why.is_empty() {
            one_line(key, why)?;
        }
        let refuse = |rule| Err(RenderError::Value { value: value.to_owned(), what: key.to_owned(), rule });
        if value.ends_with('\\') {
            return refuse("`\\` at the end of a line joins the next one");
        }
        if value.contains('%') {
            return refuse("`%` starts a specifier");
        }
        self.entries.push(Entry { key: key.to_owned(), value: value.to_owned(), why: why.to_owned() });
        Ok(self)
    }
}

/// What an ini template is given.
#[derive(Serialize)]
struct Data<'a> {
    header: &'a [String],
    sections: &'a [Section],
}

/// Lays the document out and reads it back.
///
/// # Errors
/// When the template fails, or made something else of it.
pub fn render(layout: &Layout, header: &[String], ini: &Ini) -> Result<String, RenderError> {
    for line in header {
        one_line("a comment", line)?;
    }
    let text = layout.lay_out(&Data { header, sections: &ini.sections })?;
    ini.is_said_by(layout, &Ini::parse(layout, &text)?)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "{{#each sections}}\n[{{name}}]\n{{#each entries}}\n{{key}}={{value}}\n{{/each}}\n{{/each}}\n";

    fn document() -> Ini {
        let mut ini = Ini::default();
        let section = ini.section("Network");
        section.push("Address", "10.0.0.1/16", "").unwrap().push("Address", "fd00::1/64", "").unwrap();
        ini
    }

    fn made_by(text: &'static str) -> Result<String, RenderError> {
        render(&Layout::new("test", text), &[], &document())
    }

    #[test]
    fn a_template_may_say_more_but_not_less_or_else() {
        assert_eq!(made_by(PLAIN).unwrap(), "[Network]\nAddress=10.0.0.1/16\nAddress=fd00::1/64\n");
        assert!(made_by("[Network]\nAddress=10.0.0.1/16\nAddress=fd00::1/64\nLLMNR=no\n").is_ok());
        for wrong in [
            "[Network]\nAddress=10.0.0.1/16\n",
            "[Network]\nAddress=10.0.0.1/16\nAddress=fd00::1/64\nAddress=fd00::2/64\n",
            "[Link]\nAddress=10.0.0.1/16\nAddress=fd00::1/64\n",
            "[Network]\n#Address=10.0.0.1/16\nAddress=fd00::1/64\n",
        ] {
            assert!(matches!(made_by(wrong), Err(RenderError::Meaning { .. })), "{wrong}");
        }
        assert!(matches!(made_by("[Network]\nAddress=10.0.0.1/16 \\\n"), Err(RenderError::Syntax { line: 2, .. })));
        assert!(matches!(made_by("{{nothing}}"), Err(RenderError::Template { .. })));
    }

    #[test]
    fn what_systemd_would_misread_is_refused() {
        for bad in ["", " a", "a\nb", "a\\", "%h", "\u{7f}"] {
            assert!(Ini::default().section("S").push("Key", bad, "").is_err(), "{bad:?}");
            assert!(
                bad.is_empty()
                    || bad.contains(['\\', '%'])
                    || Ini::default().section("S").push("Key", "v", bad).is_err()
            );
        }
    }
}
