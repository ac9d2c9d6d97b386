//! From text to terms: syntax, limits, then duplicates.
//!
//! Counts are known before anything is expanded, so that a list of a trillion
//! hosts costs no more to refuse than a list of two.

use std::collections::{BTreeMap, HashSet};
use std::marker::PhantomData;
use std::str::FromStr;

use super::range::{Group, Part, Range, Term};
use super::{MOST_NAMES, NameList, NameListError, NameListFault as Fault};
use crate::name::NameError;

/// 18 digits: every such number and a step beyond it fit 64 bits.
const MOST_DIGITS: usize = 18;

pub(super) fn parse<N: FromStr<Err = NameError>>(text: &str) -> Result<NameList<N>, NameListError> {
    let mut terms = Vec::new();
    let mut total = 0u128;
    for (at, piece) in split_terms(text)? {
        let mut term = parse_term(at, piece)?;
        // What follows the limit is never indexed, so a saturated index is never read.
        term.first = usize::try_from(total).unwrap_or(usize::MAX);
        check_name::<N>(&term)?;
        total = total.saturating_add(term.count());
        terms.push(term);
    }
    let count = match usize::try_from(total) {
        Ok(count) if total <= MOST_NAMES => count,
        _ => return Err(error(0, text.len(), Fault::TooMany { count: total, most: MOST_NAMES })),
    };
    let mut by_prefix: BTreeMap<Box<str>, Vec<usize>> = BTreeMap::new();
    for (index, term) in terms.iter().enumerate() {
        by_prefix.entry(term.prefix().into()).or_default().push(index);
    }
    let list = NameList { text: text.to_owned(), terms, count, by_prefix, name: PhantomData };
    refuse_duplicates(&list)?;
    Ok(list)
}

fn error(at: usize, len: usize, kind: Fault) -> NameListError {
    NameListError { at, len, kind }
}

/// Splits at the commas outside brackets, each piece with its offset.
fn split_terms(text: &str) -> Result<Vec<(usize, &str)>, NameListError> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut open: Option<usize> = None;
    for (at, byte) in text.bytes().enumerate() {
        match (byte, open) {
            (b'[', None) => open = Some(at),
            (b']', Some(_)) => open = None,
            (b']', None) => return Err(error(at, 1, Fault::Unopened)),
            (b',', None) => {
                pieces.push((start, text.get(start..at).unwrap_or_default()));
                start = at + 1;
            }
            _ => {}
        }
    }
    if let Some(at) = open {
        return Err(error(at, 1, Fault::Unclosed));
    }
    pieces.push((start, text.get(start..).unwrap_or_default()));
    match pieces.iter().find(|(_, piece)| piece.is_empty()) {
        Some((at, _)) => Err(error(*at, 0, Fault::Missing)),
        None => Ok(pieces),
    }
}

/// Reads a term whose brackets are known to pair.
fn parse_term(at: usize, piece: &str) -> Result<Term, NameListError> {
    let mut parts = Vec::new();
    let mut rest = piece;
    let mut here = at;
    while !rest.is_empty() {
        let (text, more) = rest.split_once('[').map_or((rest, None), |(text, more)| (text, Some(more)));
        if !text.is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
        let Some((inside, after)) = more.and_then(|more| more.split_once(']')) else { break };
        let bracket = here + text.len();
        let ranges = parse_ranges(bracket + 1, inside)?;
        let mut group = Group { at: bracket, ranges, fixed_width: None };
        if after.starts_with(|c: char| c == '[' || c.is_ascii_digit()) {
            group.fixed_width = Some(one_width(&group, inside.len() + 2)?);
        }
        parts.push(Part::Group(group));
        here = bracket + inside.len() + 2;
        rest = after;
    }
    Ok(Term { at, len: piece.len(), first: 0, parts })
}

/// Where a digit follows a group, only numbers of one width can be told from it.
fn one_width(group: &Group, len: usize) -> Result<usize, NameListError> {
    let mut widths = group.ranges.iter().flat_map(|range| {
        let (shortest, longest) = range.widths();
        [shortest, longest]
    });
    let first = widths.next().unwrap_or(0);
    if widths.all(|width| width == first) { Ok(first) } else { Err(error(group.at, len, Fault::Ambiguous)) }
}

fn parse_ranges(at: usize, inside: &str) -> Result<Vec<Range>, NameListError> {
    let mut ranges = Vec::new();
    let mut here = at;
    for piece in inside.split(',') {
        ranges.push(parse_range(here, piece)?);
        here += piece.len() + 1;
    }
    Ok(ranges)
}

fn parse_range(at: usize, piece: &str) -> Result<Range, NameListError> {
    let (span, step) = piece.split_once('/').map_or((piece, None), |(span, step)| (span, Some(step)));
    let (low, high) = span.split_once('-').unwrap_or((span, span));
    let bad = |kind| Err(error(at, piece.len(), kind));
    for number in [low, high].into_iter().chain(step) {
        if number.is_empty() {
            return bad(Fault::EmptyRange);
        }
        if !number.bytes().all(|b| b.is_ascii_digit()) {
            return bad(Fault::NotANumber(piece.escape_debug().to_string()));
        }
        if number.len() > MOST_DIGITS {
            return bad(Fault::TooManyDigits { most: MOST_DIGITS });
        }
    }
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    let (start, end, step) = (number(low), number(high), step.map_or(1, number));
    if step == 0 {
        return bad(Fault::ZeroStep);
    }
    if start > end {
        return bad(Fault::Backwards { start, end });
    }
    let padded = |text: &str| text.len() > 1 && text.starts_with('0');
    let unclear = (padded(low) || padded(high)) && low.len() != high.len();
    // `[01-100]`: padded to two digits, and 100 simply has three.
    let grows = padded(low) && !padded(high) && high.len() > low.len();
    if unclear && !grows {
        return bad(Fault::Padding { start: low.to_owned(), end: high.to_owned() });
    }
    Ok(Range { start, end, step, pad: if padded(low) { low.len() } else { 0 } })
}

/// All names of a term have the same characters but for digits, so its longest name stands for all.
fn check_name<N: FromStr<Err = NameError>>(term: &Term) -> Result<(), NameListError> {
    match term.longest_name().parse::<N>() {
        Ok(_) => Ok(()),
        Err(e) => Err(error(term.at, term.len, Fault::BadName(e))),
    }
}

fn refuse_duplicates<N>(list: &NameList<N>) -> Result<(), NameListError> {
    // One term whose ranges lie apart can't repeat itself, and is what most specs have.
    if let [term] = list.terms.as_slice()
        && !term.groups().any(Group::overlaps_itself)
    {
        return Ok(());
    }
    let mut all = String::new();
    let mut ends = Vec::with_capacity(list.count);
    for term in &list.terms {
        for index in 0..usize::try_from(term.count()).unwrap_or(0) {
            term.write_nth(index, &mut all);
            ends.push((all.len(), term.at, term.len));
        }
    }
    let mut seen = HashSet::with_capacity(list.count);
    let mut start = 0;
    for (end, at, len) in ends {
        let name = all.get(start..end).unwrap_or_default();
        if !seen.insert(name) {
            return Err(error(at, len, Fault::Duplicate(name.to_owned())));
        }
        start = end;
    }
    Ok(())
}
