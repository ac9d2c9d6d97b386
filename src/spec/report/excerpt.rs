//! The part of a text that a fault is shown with.
//!
//! A text and the places of a fault come in; the lines around them go out, with
//! their numbers. However long the text's lines are and however far apart the
//! places, an excerpt stays small: a long line is cut to what is around its
//! places, and lines between two places that are far apart are left out.

use std::collections::BTreeSet;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::spec::fault::Span;

/// A line of up to so many bytes is shown whole.
const WHOLE_BYTES: usize = 240;
/// What is shown of a longer one around a place, bytes on each side.
const AROUND_BYTES: usize = 40;
/// What is shown of a long place, bytes.
const PLACE_BYTES: usize = 120;
/// What is shown of a long line without a place, bytes.
const CONTEXT_BYTES: usize = 160;
/// Places so many lines apart are shown with all that is between them.
const MOST_BETWEEN: usize = 12;
/// Stands for what was cut out of a line.
const CUT: &str = "...";

/// Lines of a text, and where in them the places of a fault are.
#[derive(Debug)]
pub(super) struct Excerpt<'a> {
    name: &'a str,
    text: String,
    lines: Vec<Line>,
    /// In the order in which the places were given.
    pub(super) places: Vec<Place>,
}

/// A line of the excerpt.
#[derive(Debug)]
struct Line {
    /// Its number in the whole text, from 0.
    number: usize,
    /// Where it starts in the excerpt.
    start: usize,
}

/// Where a place of the whole text is in the excerpt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// In the excerpt, bytes.
    pub(super) span: Span,
    /// The line in the whole text, from 0.
    line: usize,
    /// The column there in characters, from 0.
    column: usize,
}

/// Where each line of a text starts.
pub(super) fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// The line that `at` is in, from 0.
pub(super) fn line_of(starts: &[usize], at: usize) -> usize {
    starts.partition_point(|start| *start <= at).saturating_sub(1)
}

impl<'a> Excerpt<'a> {
    /// `starts` are the [`line_starts`] of `text`. Of a place of several lines its first one counts.
    pub(super) fn new(name: &'a str, text: &str, starts: &[usize], spans: &[Span]) -> Self {
        let line = |number: usize| {
            let start = starts.get(number).copied().unwrap_or(text.len());
            let end = starts.get(number + 1).map_or(text.len(), |next| next - 1);
            let line = text.get(start..end).unwrap_or_default();
            (start, line.strip_suffix('\r').unwrap_or(line))
        };
        let within = |span: &Span| {
            let at = text.floor_char_boundary(span.start);
            let number = line_of(starts, at);
            let (start, line) = line(number);
            let from = (at - start).min(line.len());
            let to = text.floor_char_boundary(span.end).saturating_sub(start).clamp(from, line.len());
            (number, Span { start: from, end: to })
        };
        let wanted: Vec<(usize, Span)> = spans.iter().map(within).collect();
        let mut places: Vec<Option<Place>> = vec![None; wanted.len()];
        let mut excerpt = Self { name, text: String::new(), lines: Vec::new(), places: Vec::new() };
        for number in kept(wanted.iter().map(|(number, _)| *number), starts.len()) {
            let (_, whole) = line(number);
            let of_line = || wanted.iter().enumerate().filter(move |(_, (of, _))| *of == number);
            let (cut, found) = cut(whole, &of_line().map(|(_, (_, span))| *span).collect::<Vec<_>>());
            let start = excerpt.text.len();
            for ((index, (_, span)), found) in of_line().zip(found) {
                let column = whole.get(..span.start).unwrap_or_default().chars().count();
                let span = Span { start: start + found.start, end: start + found.end };
                places[index] = Some(Place { span, line: number, column });
            }
            excerpt.lines.push(Line { number, start });
            excerpt.text.push_str(&cut);
            if number + 1 < starts.len() {
                excerpt.text.push('\n');
            }
        }
        excerpt.places = places.into_iter().flatten().collect();
        excerpt
    }

    fn index_at(&self, at: usize) -> usize {
        self.lines.partition_point(|line| line.start <= at).saturating_sub(1)
    }

    /// Whether a line follows the one before it in the whole text too.
    fn joins(&self, index: usize) -> bool {
        index > 0 && index < self.lines.len() && self.lines[index].number == self.lines[index - 1].number + 1
    }
}

/// The lines to show: those of the places, one before and after each, and what is between near ones.
fn kept(of_places: impl Iterator<Item = usize>, count: usize) -> BTreeSet<usize> {
    let of_places: BTreeSet<usize> = of_places.collect();
    let mut kept = BTreeSet::new();
    let mut last = None;
    for number in of_places {
        let from = match last {
            Some(last) if number - last <= MOST_BETWEEN => last,
            _ => number.saturating_sub(1),
        };
        kept.extend(from..=(number + 1).min(count.saturating_sub(1)));
        last = Some(number);
    }
    kept
}

/// The line as it is shown, and the places in it.
fn cut(line: &str, places: &[Span]) -> (String, Vec<Span>) {
    let mut shown = String::new();
    let mut found = vec![Span::default(); places.len()];
    let mut end = 0;
    for window in windows(line, places) {
        if window.start > end {
            shown.push_str(CUT);
        }
        let base = shown.len();
        for (place, found) in places.iter().zip(&mut found) {
            if window.start <= place.start && place.start <= window.end {
                let at = |offset: usize| base + offset.min(window.end) - window.start;
                *found = Span { start: at(place.start), end: at(place.end) };
            }
        }
        shown.extend(line.get(window.start..window.end).unwrap_or_default().chars().flat_map(harmless));
        end = window.end;
    }
    if end < line.len() {
        shown.push_str(CUT);
    }
    (shown, found)
}

/// A terminal takes orders by control characters: each of their bytes is shown as `?`.
fn harmless(c: char) -> impl Iterator<Item = char> {
    let is_order = c.is_control() && c != '\t';
    std::iter::repeat_n(if is_order { '?' } else { c }, if is_order { c.len_utf8() } else { 1 })
}

/// What is shown of a line, in bytes, from left to right and apart from each other.
fn windows(line: &str, places: &[Span]) -> Vec<Span> {
    if line.len() <= WHOLE_BYTES {
        return vec![Span { start: 0, end: line.len() }];
    }
    if places.is_empty() {
        return vec![Span { start: 0, end: line.floor_char_boundary(CONTEXT_BYTES) }];
    }
    let around = |place: &Span| {
        let end = place.end.min(place.start + PLACE_BYTES) + AROUND_BYTES;
        let start = line.floor_char_boundary(place.start.saturating_sub(AROUND_BYTES));
        Span { start, end: line.ceil_char_boundary(end) }
    };
    let mut all: Vec<Span> = places.iter().map(around).collect();
    all.sort_by_key(|window| window.start);
    let mut apart: Vec<Span> = Vec::new();
    for window in all {
        match apart.last_mut() {
            Some(last) if window.start <= last.end + CUT.len() => last.end = last.end.max(window.end),
            _ => apart.push(window),
        }
    }
    apart
}

impl SourceCode for Excerpt<'_> {
    fn read_span<'s>(
        &'s self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'s> + 's>, MietteError> {
        let last = (span.offset() + span.len()).saturating_sub(1).max(span.offset());
        let (mut first, mut end) = (self.index_at(span.offset()), self.index_at(last));
        // Over what was left out nothing is joined: miette then shows both sides on their own.
        if self.lines.is_empty() || (first + 1..=end).any(|index| !self.joins(index)) {
            return Err(MietteError::OutOfBounds);
        }
        for _ in 0..before {
            first -= usize::from(self.joins(first));
        }
        for _ in 0..after {
            end += usize::from(self.joins(end + 1));
        }
        // Miette asks for a place without lines around it to name its line and column.
        let place = self.places.iter().find(|place| before == 0 && place.span.start == span.offset());
        let start = if before == 0 { span.offset() } else { self.lines[first].start };
        let stop = self.lines.get(end + 1).map_or(self.text.len(), |next| next.start).max(start);
        let data = self.text.as_bytes().get(start..stop).ok_or(MietteError::OutOfBounds)?;
        let (line, column) = place.map_or((self.lines[first].number, 0), |place| (place.line, place.column));
        // What follows without a gap can be shown as one with this.
        let joined = (first + 1..self.lines.len()).take_while(|index| self.joins(*index)).count() + 1;
        let contents = MietteSpanContents::new_named(
            self.name.to_owned(),
            data,
            (start, stop - start).into(),
            line,
            column,
            joined,
        );
        Ok(Box::new(contents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt<'a>(text: &str, spans: &[(usize, usize)]) -> Excerpt<'a> {
        let spans: Vec<Span> = spans.iter().map(|&(start, end)| Span { start, end }).collect();
        Excerpt::new("a.toml", text, &line_starts(text), &spans)
    }

    fn shown(excerpt: &Excerpt<'_>, place: usize) -> String {
        let Span { start, end } = excerpt.places[place].span;
        excerpt.text[start..end].to_owned()
    }

    #[test]
    fn a_long_line_is_cut_to_what_is_around_its_place() {
        let text = format!("a = 1\n{}WRONG{}\nb = 2\n", "é".repeat(500), "y".repeat(70_000));
        let at = text.find("WRONG").unwrap();
        let excerpt = excerpt(&text, &[(at, at + 5)]);
        assert_eq!(shown(&excerpt, 0), "WRONG");
        assert_eq!((excerpt.places[0].line, excerpt.places[0].column), (1, 500));
        let line = excerpt.text.lines().nth(1).unwrap();
        assert!(line.starts_with("...é") && line.ends_with("y...") && line.len() < WHOLE_BYTES, "{line}");
        assert!(excerpt.text.starts_with("a = 1\n") && excerpt.text.ends_with("b = 2\n"), "{}", excerpt.text);
    }

    #[test]
    fn places_far_apart_on_one_line_are_both_shown() {
        let text = format!("FIRST{}SECOND{}", "-".repeat(5000), "-".repeat(5000));
        let excerpt = excerpt(&text, &[(5005, 5011), (0, 5)]);
        assert_eq!((shown(&excerpt, 0), shown(&excerpt, 1)), ("SECOND".to_owned(), "FIRST".to_owned()));
        assert_eq!(excerpt.places[0].column, 5005);
        assert_eq!(excerpt.text.matches(CUT).count(), 2, "{}", excerpt.text);
    }

    #[test]
    fn what_is_between_far_lines_is_left_out() {
        let text = (0..1000).map(|number| format!("line {number}\n")).collect::<String>();
        let at = |line: &str| text.find(line).map(|at| (at, at + line.len())).unwrap();
        let far = excerpt(&text, &[at("line 900"), at("line 5")]);
        assert_eq!(far.text.lines().collect::<Vec<_>>().join(","), "line 4,line 5,line 6,line 899,line 900,line 901");
        let near = excerpt(&text, &[at("line 9"), at("line 5")]);
        assert_eq!(near.text.lines().count(), 7);
    }

    #[test]
    fn a_long_place_is_cut_and_orders_to_a_terminal_are_not_passed_on() {
        let text = format!("\x1b[2J\u{9b}{}", "x".repeat(1000));
        let excerpt = excerpt(&text, &[(0, text.len())]);
        assert!(shown(&excerpt, 0).starts_with("?[2J??xxx"), "{}", excerpt.text);
        assert!(shown(&excerpt, 0).len() <= PLACE_BYTES + AROUND_BYTES);
    }
}
