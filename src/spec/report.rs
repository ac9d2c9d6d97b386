//! Faults as people and programs read them.
//!
//! A text and its faults come in; a message with file, line, column, the text
//! and a help line goes out, or a value for JSON. Nothing is printed here.

mod excerpt;

use std::fmt;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use schemars::JsonSchema;
use serde::Serialize;

use self::excerpt::{Excerpt, line_of, line_starts};
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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
        let starts = line_starts(&self.text);
        let mut out = String::new();
        for fault in self.faults.iter().take(MOST_SHOWN) {
            let spans: Vec<Span> = fault.places().map(|(span, _)| span).collect();
            let source = Excerpt::new(&self.name, &self.text, &starts, &spans);
            // Writing to a string can't fail; what miette can't read of the source is left out.
            let _ = handler.render_report(&mut out, &Shown { fault, source: &source });
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
        let starts = line_starts(&self.text);
        self.faults.iter().map(|fault| self.record(fault, &starts)).collect()
    }

    fn record(&self, fault: &Fault, starts: &[usize]) -> FaultRecord {
        let line = line_of(starts, fault.span.start);
        let start = starts.get(line).copied().unwrap_or(0);
        let before = self.text.get(start..fault.span.start).unwrap_or_default();
        FaultRecord {
            code: fault.code.as_str(),
            severity: fault.severity(),
            message: fault.message.clone(),
            file: self.name.clone(),
            line: line + 1,
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
    source: &'a Excerpt<'a>,
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
        let labelled = self.source.places.iter().zip(self.fault.places()).enumerate();
        Some(Box::new(labelled.map(|(index, (place, (_, label)))| {
            let (label, place) = (Some(label.to_owned()), (place.span.start, place.span.end - place.span.start));
            // The fault's own place comes first.
            if index == 0 {
                LabeledSpan::new_primary_with_span(label, place)
            } else {
                LabeledSpan::new_with_span(label, place)
            }
        })))
    }
}
