//! The arithmetic of one folded term: `rack[1-4]-n[01-16]`.
//!
//! Parts that were parsed come in; counts, the n-th name and the place of a
//! name go out. Nothing is ever expanded here.

use std::fmt::Write;

/// One term between commas.
#[derive(Debug, Clone)]
pub(super) struct Term {
    /// Where in the string it starts, in bytes, and how long it is.
    pub(super) at: usize,
    pub(super) len: usize,
    /// The index of its first name in the whole list.
    pub(super) first: usize,
    pub(super) parts: Vec<Part>,
}

/// A piece of a term.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Text(String),
    Group(Group),
}

/// One pair of brackets.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// Where its `[` is.
    pub(super) at: usize,
    pub(super) ranges: Vec<Range>,
    /// Set where a digit follows: all numbers have this many digits.
    pub(super) fixed_width: Option<usize>,
}

/// `start-end/step`, padded with zeros to `pad` digits (0: not padded).
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) step: u64,
    pub(super) pad: usize,
}

impl Range {
    pub(super) fn count(self) -> u128 {
        u128::from((self.end - self.start) / self.step) + 1
    }

    /// The last number that is really reached: 9 in `1-10/2`.
    fn last(self) -> u64 {
        self.end - (self.end - self.start) % self.step
    }

    /// How many characters its shortest and its longest number have.
    pub(super) fn widths(self) -> (usize, usize) {
        (digits(self.start).max(self.pad), digits(self.last()).max(self.pad))
    }

    fn position(self, number: u64, width: usize) -> Option<u128> {
        let inside = (self.start..=self.end).contains(&number);
        let written_so = width == digits(number).max(self.pad);
        let distance = number.checked_sub(self.start)?;
        (inside && written_so && distance.is_multiple_of(self.step)).then(|| u128::from(distance / self.step))
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

impl Group {
    pub(super) fn count(&self) -> u128 {
        self.ranges.iter().fold(0, |sum, range| sum.saturating_add(range.count()))
    }

    fn write_nth(&self, mut index: u128, out: &mut String) {
        for range in &self.ranges {
            if index < range.count() {
                let steps = u64::try_from(index).unwrap_or(u64::MAX);
                let number = range.start.saturating_add(steps.saturating_mul(range.step));
                // Writing to a string can't fail.
                let _ = write!(out, "{number:0pad$}", pad = range.pad);
                return;
            }
            index -= range.count();
        }
    }

    /// The number at the start of `text`: its index and how long it is.
    fn position(&self, text: &str) -> Option<(u128, usize)> {
        let run = text.bytes().take_while(u8::is_ascii_digit).count();
        let width = self.fixed_width.unwrap_or(run);
        let number = text.get(..width)?.parse().ok()?;
        let mut before = 0u128;
        for range in &self.ranges {
            if let Some(index) = range.position(number, width) {
                return Some((before + index, width));
            }
            before += range.count();
        }
        None
    }

    /// The index of its longest number, to check the length of names.
    pub(super) fn longest(&self) -> u128 {
        let mut before = 0u128;
        let mut best = (0, 0u128);
        for range in &self.ranges {
            let last = before + range.count() - 1;
            if range.widths().1 > best.0 {
                best = (range.widths().1, last);
            }
            before += range.count();
        }
        best.1
    }

    /// Whether a number may be in it twice: two of its ranges overlap.
    pub(super) fn overlaps_itself(&self) -> bool {
        let mut ranges: Vec<_> = self.ranges.iter().map(|r| (r.start, r.end)).collect();
        ranges.sort_unstable();
        ranges.windows(2).any(|pair| matches!(pair, [a, b] if b.0 <= a.1))
    }
}

impl Term {
    pub(super) fn groups(&self) -> impl DoubleEndedIterator<Item = &Group> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Group(group) => Some(group),
        })
    }

    pub(super) fn count(&self) -> u128 {
        self.groups().fold(1, |product, group| product.saturating_mul(group.count()))
    }

    /// The text before the first bracket; all of it, if there is none.
    pub(super) fn prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    pub(super) fn write_nth(&self, index: usize, out: &mut String) -> bool {
        let mut rest = index as u128;
        if rest >= self.count() {
            return false;
        }
        // The last group runs fastest: find each group's own index from the right.
        let mut indices = Vec::new();
        for group in self.groups().rev() {
            indices.push(rest % group.count());
            rest /= group.count();
        }
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(group) => group.write_nth(indices.pop().unwrap_or(0), out),
            }
        }
        true
    }

    /// The longest name of this term.
    pub(super) fn longest_name(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(group) => group.write_nth(group.longest(), &mut out),
            }
        }
        out
    }

    /// The index of `text` in the whole list.
    pub(super) fn position(&self, text: &str) -> Option<usize> {
        let mut rest = text;
        let mut index = 0u128;
        for part in &self.parts {
            match part {
                Part::Text(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Part::Group(group) => {
                    let (own, width) = group.position(rest)?;
                    index = index.saturating_mul(group.count()).saturating_add(own);
                    rest = rest.get(width..)?;
                }
            }
        }
        if !rest.is_empty() {
            return None;
        }
        self.first.checked_add(usize::try_from(index).ok()?)
    }
}
