//! opensm's configuration as a document: keys and values in order.
//!
//! In: keys and values. Out: entries that opensm reads back as they were meant,
//! or the rule that one of them breaks; and the same from text, for comparing
//! what a template made of them. No files are read or written.
//!
//! opensm takes a line's first word as the key and the rest as the value, drops
//! what follows `#` at the start, strips one pair of quotes, and only prints a
//! line about what it does not understand before it runs on with defaults. So
//! whatever it could misread is refused here.

use serde::Serialize;
use thiserror::Error;

/// The longest value that we write, in bytes; opensm reads lines of 1,024.
const LONGEST_VALUE: usize = 900;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The key, `[a-z][a-z0-9_]*`.
    pub key: String,
    /// The value, printable ASCII without quotes.
    pub value: String,
    /// Why this value, one line; empty for none.
    pub why: String,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Document {
    entries: Vec<Entry>,
}

/// What opensm would misread.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// Not a key.
    #[error("`{0}` is not an opensm key: lower-case letters, digits and `_`")]
    Key(String),
    /// A key twice: opensm takes the last one.
    #[error("the opensm key `{0}` is there twice")]
    Twice(String),
    /// Not a value.
    #[error("the value of `{key}` can't be written: {rule}")]
    Value {
        /// The key it belongs to.
        key: String,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// A line that is neither a comment nor an entry.
    #[error("line {0} has a key without a value")]
    Line(usize),
}

impl Document {
    /// Adds an entry at the end.
    ///
    /// # Errors
    /// When opensm would read it back as something else.
    pub fn push(&mut self, key: &str, value: &str, why: &str) -> Result<(), DocumentError> {
        let head = key.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        if !head || !key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') {
            return Err(DocumentError::Key(key.escape_debug().to_string()));
        }
        if self.entries.iter().any(|e| e.key == key) {
            return Err(DocumentError::Twice(key.to_owned()));
        }
        let refuse = |rule| Err(DocumentError::Value { key: key.to_owned(), rule });
        if value.is_empty() || value.trim() != value {
            return refuse("it is empty, or blank at an end");
        }
        if value.len() > LONGEST_VALUE {
            return refuse("it is longer than 900 bytes");
        }
        if !value.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            return refuse("it has a line break, a control character, or text outside ASCII");
        }
        if value.contains(['"', '\'', '#', '\\', '{', '}']) {
            return refuse("it has a quote, `#`, `\\`, `{` or `}`");
        }
        if why.contains(|c: char| c.is_control()) {
            return refuse("its comment has a line break or a control character");
        }
        self.entries.push(Entry { key: key.to_owned(), value: value.to_owned(), why: why.to_owned() });
        Ok(())
    }

    /// The entries in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|e| e.key == key).map(|e| e.value.as_str())
    }

    /// Reads a configuration file as opensm does; comments are dropped.
    ///
    /// # Errors
    /// When a line is not one that [`Self::push`] takes.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let mut document = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once([' ', '\t']).ok_or(DocumentError::Line(index + 1))?;
            document.push(key, value.trim(), "")?;
        }
        Ok(document)
    }

    /// Whether two documents say the same, comments and order aside.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let sorted = |d: &Self| {
            let mut pairs: Vec<_> = d.entries.iter().map(|e| (e.key.clone(), e.value.clone())).collect();
            pairs.sort();
            pairs
        };
        sorted(self) == sorted(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_opensm_would_misread_is_refused() {
        let mut document = Document::default();
        for value in ["", " x", "x ", "a\nguid 0x1", "a\"b", "a'b", "a#b", "a\\b", "\u{e9}", "a\tb", "{{x}}"] {
            let got = document.push("guid", value, "");
            assert!(matches!(got, Err(DocumentError::Value { .. })), "{value:?}");
        }
        for key in ["", "Guid", "a b", "#x", "1a", "a\n"] {
            assert!(matches!(document.push(key, "1", ""), Err(DocumentError::Key(_))), "{key:?}");
        }
        assert!(document.push("guid", "1", "why\nsm_priority 15").is_err());
        document.push("guid", "0x1", "").unwrap();
        assert_eq!(document.push("guid", "0x2", ""), Err(DocumentError::Twice("guid".into())));
    }

    #[test]
    fn parsing_gives_back_what_was_pushed() {
        let text = "# comment\nguid 0x0002c90000a00001\n\n  sm_priority\t14\n";
        let document = Document::parse(text).unwrap();
        assert_eq!(document.get("sm_priority"), Some("14"));
        assert_eq!(document.entries().len(), 2);
        assert_eq!(Document::parse("guid\n"), Err(DocumentError::Line(1)));
    }
}
