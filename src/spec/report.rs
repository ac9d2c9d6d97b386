//! Faults as people and programs read them.
//!
//! A text and its faults come in; a message with file, line, column, the text
//! and a help line goes out, or a value for JSON. Nothing is printed here.

use std::fmt;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use serde::Serialize;

use super::Faults;
use super::fault::{Fault, Severity, Span};

/// How messages are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// ASCII without colours: for files, serial consoles, and `NO_COLOR`.
    Plain,
    /// With colours and box-drawing characters, wrapped, for a terminal.
    Terminal {
        /// The terminal's width.
        columns: usize,
    },
}

/// How many faults the text form shows in full: who has more mends those first.
const MOST_SHOWN: usize = 100;

/// A fault as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultRecord {
    /// Its kind, such as `unknown-key`.
    pub code: &'static str,
    /// `error` or `warning`.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What to do.
    pub help: Option<String>,
}

impl Faults {
    /// The messages, one after the other, and a line that counts them.
    #[must_use]
    pub fn render(&self, look: Look) -> String {
        let handler = match look {
            // Wrapping would break `rack[1-4]` at its hyphen, and a line of a log where a search expects it whole.
            Look::Plain => GraphicalReportHandler::new_themed(GraphicalTheme::none()).with_wrap_lines(false),
            Look::Terminal { columns } => {
                GraphicalReportHandler::new_themed(GraphicalTheme::unicode()).with_width(columns.max(40))
            }
        };
        let handler = handler.with_links(false);
        let source = NamedSource::new(&self.name, self.text.clone());
        let mut out = String::new();
        for fault in self.faults.iter().take(MOST_SHOWN) {
            // Writing to a string can't fail; what miette can't read of the source is left out.
            let _ = handler.render_report(&mut out, &Shown { fault, source: &source, text: &self.text });
            out.push('\n');
        }
        out.push_str(&self.summary());
        out
    }

    fn summary(&self) -> String {
        let count = |severity| self.faults.iter().filter(|fault| fault.severity() == severity).count();
        let plural = |count: usize, word: &str| match count {
            0 => None,
            1 => Some(format!("1 {word}")),
            _ => Some(format!("{count} {word}s")),
        };
        let counts = [plural(count(Severity::Error), "error"), plural(count(Severity::Warning), "warning")];
        let counts: Vec<_> = counts.into_iter().flatten().collect();
        if counts.is_empty() {
            return String::new();
        }
        let shown = if self.faults.len() > MOST_SHOWN {
            format!(", the first {MOST_SHOWN} of them shown")
        } else {
            String::new()
        };
        format!("{}: {}{shown}\n", self.name, counts.join(", "))
    }

    /// The faults for `--format json`.
    #[must_use]
    pub fn records(&self) -> Vec<FaultRecord> {
        let mut lines = vec![0];
        lines.extend(self.text.match_indices('\n').map(|(at, _)| at + 1));
        self.faults.iter().map(|fault| self.record(fault, &lines)).collect()
    }

    fn record(&self, fault: &Fault, lines: &[usize]) -> FaultRecord {
        let line = lines.partition_point(|start| *start <= fault.span.start);
        let start = line.checked_sub(1).and_then(|index| lines.get(index)).copied().unwrap_or(0);
        let before = self.text.get(start..fault.span.start).unwrap_or_default();
        FaultRecord {
            code: fault.code.as_str(),
            severity: fault.severity(),
            message: fault.message.clone(),
            file: self.name.clone(),
            line,
            column: before.chars().count() + 1,
            help: fault.help.clone(),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Look::Plain))
    }
}

impl std::error::Error for Faults {}

/// One fault with its text, as miette takes it.
#[derive(Debug)]
struct Shown<'a> {
    fault: &'a Fault,
    source: &'a NamedSource<String>,
    text: &'a str,
}

impl Shown<'_> {
    fn labelled(&self, span: Span, label: &str) -> LabeledSpan {
        let end = span.end.min(self.text.len());
        let start = span.start.min(end);
        // A place of several lines would draw them all: its first line says where it is.
        let first_line = self.text.get(start..end).and_then(|text| text.lines().next()).map_or(0, str::len);
        LabeledSpan::new(Some(label.to_owned()), start, first_line)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fault.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.fault.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.fault.severity() {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.fault.help.as_ref()?;
        Some(Box::new(help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let own = self.labelled(self.fault.span, &self.fault.label);
        let own = LabeledSpan::new_primary_with_span(own.label().map(str::to_owned), *own.inner());
        let also = self.fault.also.iter().map(|(span, label)| self.labelled(*span, label));
        Some(Box::new(std::iter::once(own).chain(also)))
    }
}
