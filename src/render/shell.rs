//! Shell variables as a document: what ifcfg files are made of.
//!
//! In: names, values and why. Out: a document that a POSIX shell which sources
//! it, and the readers of NetworkManager and wicked which imitate one, take
//! literally. A plain word stands as it is; anything else is in single quotes,
//! where none of them substitutes anything. A single quote would need
//! `'\''`, of which each reader makes its own: it is refused.

use serde::Serialize;

use super::layout::Layout;
use super::{RenderError, one_line};

/// A document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shell {
    /// Its assignments in order.
    pub entries: Vec<Entry>,
}

/// An assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The variable.
    pub key: String,
    /// The value, without quotes.
    pub value: String,
    /// Why, one line; empty for no comment.
    pub why: String,
}

/// An assignment as the template is given it.
#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    /// Quoted.
    value: String,
    why: &'a str,
}

impl<'a> Line<'a> {
    fn of(Entry { key, value, why }: &'a Entry) -> Self {
        Self { key, value: quote(value), why }
    }
}

#[derive(Serialize)]
struct Data<'a> {
    header: &'a [String],
    entries: Vec<Line<'a>>,
}

impl Shell {
    /// Adds an assignment.
    ///
    /// # Errors
    /// When a reader would take it for something else.
    pub fn push(&mut self, key: &str, value: &str, why: &str) -> Result<&mut Self, RenderError> {
        let refuse =
            |rule| Err(RenderError::Value { value: value.escape_debug().to_string(), what: key.to_owned(), rule });
        if !is_name(key) {
            return refuse("the key is no shell variable");
        }
        one_line(key, value)?;
        if !why.is_empty() {
            one_line(key, why)?;
        }
        if value.contains('\'') {
            return refuse("it has a single quote, which the readers of ifcfg files do not agree about");
        }
        self.entries.push(Entry { key: key.to_owned(), value: value.to_owned(), why: why.to_owned() });
        Ok(self)
    }

    /// Reads a document from text: comments and assignments of one word, and nothing that a shell would act on.
    ///
    /// # Errors
    /// With the first line that is something else.
    pub fn parse(layout: &Layout, text: &str) -> Result<Self, RenderError> {
        let mut shell = Self::default();
        for (index, line) in text.lines().enumerate() {
            let wrong = |rule| RenderError::Syntax { template: layout.name, line: index + 1, rule };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').filter(|(key, _)| is_name(key)).ok_or_else(|| {
                wrong("it is no comment and no assignment to a shell variable, and a shell would run it")
            })?;
            let value =
                unquote(value).ok_or_else(|| wrong("its value is not one word that a shell takes literally"))?;
            shell.entries.push(Entry { key: key.to_owned(), value: value.to_owned(), why: String::new() });
        }
        Ok(shell)
    }

    /// Lays the document out and reads it back: a variable of ours is set once, as we meant it. Others beside them are
    /// the template's own affair.
    ///
    /// # Errors
    /// When the template fails, or made something else of it.
    pub fn render(&self, layout: &Layout, header: &[String]) -> Result<String, RenderError> {
        for line in header {
            one_line("a comment", line)?;
        }
        let entries = self.entries.iter().map(Line::of).collect();
        let text = layout.lay_out(&Data { header, entries })?;
        let made = Self::parse(layout, &text)?;
        for entry in &self.entries {
            let values = |shell: &Self| -> Vec<String> {
                let same = shell.entries.iter().filter(|one| one.key == entry.key);
                same.map(|one| one.value.clone()).collect()
            };
            if values(self) != values(&made) {
                let what = format!("{}={}", entry.key, quote(&entry.value));
                return Err(RenderError::Meaning { template: layout.name, what });
            }
        }
        Ok(text)
    }
}

fn is_name(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a shell takes the text as one word, and as it is.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/,+@".contains(c))
}

fn quote(value: &str) -> String {
    if is_plain(value) { value.to_owned() } else { format!("'{value}'") }
}

fn unquote(word: &str) -> Option<&str> {
    let inside = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
    match (inside('\''), inside('"')) {
        (Some(text), _) => Some(text).filter(|text| !text.contains('\'')),
        (_, Some(text)) => Some(text).filter(|text| !text.contains(['"', '$', '`', '\\'])),
        _ => Some(word).filter(|word| is_plain(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::IFCFG;
    use super::*;

    fn document() -> Shell {
        let mut shell = Shell::default();
        shell.push("A", "1", "why").unwrap().push("B", "b c", "").unwrap();
        shell
    }

    #[test]
    fn a_template_may_say_more_but_not_less_or_else() {
        assert_eq!(document().render(&IFCFG, &["who".to_owned()]).unwrap(), "# who\n\n# why\nA=1\nB='b c'\n");
        for same in ["B=\"b c\"\nA='1'\n", "A=1\nB='b c'\nZONE=trusted\n"] {
            assert!(document().render(&Layout::new("test", same), &[]).is_ok(), "{same}");
        }
        for wrong in ["A=1\n", "A=1\nB='b c'\nA=2\n", "A=2\nB='b c'\n", "#A=1\nB='b c'\n", "A=1\nB='b d'\n"] {
            let got = document().render(&Layout::new("test", wrong), &[]);
            assert!(matches!(got, Err(RenderError::Meaning { .. })), "{wrong}");
        }
    }

    #[test]
    fn what_a_shell_would_act_on_is_no_document() {
        let bad = ["A=b c", "A=$x", "A=`x`", "A=\"$x\"", "A=b;c", "rm x", "A B=1", "A='b'c'", "A=b\\", "export A=1"];
        for bad in bad.map(|bad| format!("{bad}\n")) {
            assert!(matches!(Shell::parse(&IFCFG, &bad), Err(RenderError::Syntax { line: 1, .. })), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        for bad in ["", " a", "a\nb", "a'b", "\u{7f}", "a\0"] {
            assert!(Shell::default().push("KEY", bad, "").is_err(), "{bad:?}");
        }
        for bad in ["", "a b", "A-B", "1A", "A=1"] {
            assert!(Shell::default().push(bad, "v", "").is_err(), "{bad:?}");
        }
        assert!(Shell::default().push("KEY", "v", "a\nB=1").is_err());
    }
}
