//! A file of plain lines as a document: blocks, each with what it is for.
//!
//! For formats without sections and without quoting of their own: what a line
//! may hold is checked by the module that makes it, that it is one line here.
//! All of them take `#` at a line's start for a comment.

use serde::Serialize;

use super::layout::Layout;
use super::{RenderError, one_line};

/// A document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// Comments at its top, without the comment sign.
    pub header: Vec<String>,
    /// Its blocks in order.
    pub blocks: Vec<Block>,
}

/// Lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Comments above it, without the comment sign.
    pub why: Vec<String>,
    /// Its lines.
    pub lines: Vec<String>,
}

impl Lines {
    /// Adds a line; an empty `why` is no comment.
    pub fn push(&mut self, why: &str, line: impl Into<String>) {
        let why = if why.is_empty() { Vec::new() } else { vec![why.to_owned()] };
        self.blocks.push(Block { why, lines: vec![line.into()] });
    }

    /// Lays the document out, and reads it back: its lines and no others, in order.
    ///
    /// # Errors
    /// When a line is more than one, or a comment; when the template fails, or
    /// made something else of it.
    pub fn render(&self, layout: &Layout) -> Result<String, RenderError> {
        for comment in self.header.iter().chain(self.blocks.iter().flat_map(|block| &block.why)) {
            one_line("a comment", comment)?;
        }
        let meant: Vec<&str> = self.blocks.iter().flat_map(|block| &block.lines).map(String::as_str).collect();
        for line in &meant {
            one_line("a line", line)?;
            if line.starts_with(['#', ';']) {
                let rule = "a line that starts so is a comment";
                return Err(RenderError::Value { value: (*line).to_owned(), what: "a line".to_owned(), rule });
            }
        }
        let text = layout.lay_out(self)?;
        let made: Vec<&str> = statements(&text).collect();
        match (0..meant.len().max(made.len())).find(|&index| meant.get(index) != made.get(index)) {
            Some(index) => {
                let what = meant.get(index).or(made.get(index)).map(|line| (*line).to_owned()).unwrap_or_default();
                Err(RenderError::Meaning { template: layout.name, what })
            }
            None => Ok(text),
        }
    }
}

fn statements(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
}

#[cfg(test)]
mod tests {
    use super::super::layout::LINES;
    use super::*;

    fn document() -> Lines {
        let mut lines = Lines { header: vec!["who".to_owned()], ..Lines::default() };
        lines.push("what for", "a 1");
        lines.push("", "b 2");
        lines
    }

    #[test]
    fn a_template_may_comment_but_not_add_drop_or_change() {
        assert_eq!(document().render(&LINES).unwrap(), "# who\n\n# what for\na 1\n\nb 2\n");
        assert!(document().render(&Layout::new("test", "# more\na 1\nb 2\n")).is_ok());
        for wrong in ["a 1\n", "a 1\nb 2\nc 3\n", "a 1\nb 3\n", "#a 1\nb 2\n", "b 2\na 1\n"] {
            let got = document().render(&Layout::new("test", wrong));
            assert!(matches!(got, Err(RenderError::Meaning { .. })), "{wrong}");
        }
        let unknown = document().render(&Layout::new("test", "{{no_such_thing}}"));
        assert!(matches!(unknown, Err(RenderError::Template { .. })));
        assert!(matches!(document().render(&Layout::new("test", "{{#each")), Err(RenderError::Template { .. })));
    }

    #[test]
    fn what_is_not_one_line_is_refused() {
        for bad in ["", "a\nb", " a", "# a", ";a"] {
            let mut lines = document();
            lines.push("", bad);
            assert!(lines.render(&LINES).is_err(), "{bad:?}");
        }
        let mut lines = document();
        lines.push("a\nb", "c");
        assert!(lines.render(&LINES).is_err());
    }
}
