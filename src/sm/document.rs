//! opensm's configuration as a document: keys and values in order.
//!
//! In: keys and values. Out: lines that opensm reads back as they were meant,
//! or the rule that one of them breaks. No files are read or written.
//!
//! opensm takes a line's first word as the key and the rest as the value, drops
//! what follows `#` at the start, strips one pair of quotes, and only prints a
//! line about what it does not understand before it runs on with defaults. So
//! whatever it could misread is refused here.

use thiserror::Error;

use crate::render::lines::Lines;

/// The longest value that we write, in bytes; opensm reads lines of 1,024.
const LONGEST_VALUE: usize = 900;

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document {
    lines: Lines,
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
        if self.entries().any(|(other, _)| other == key) {
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
        self.lines.push(why, format!("{key} {value}"));
        Ok(())
    }

    /// The keys and values in order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lines.blocks.iter().flat_map(|block| &block.lines).filter_map(|line| line.split_once(' '))
    }

    /// The lines, with comments at their top.
    #[must_use]
    pub fn into_lines(mut self, header: Vec<String>) -> Lines {
        self.lines.header = header;
        self.lines
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
}
