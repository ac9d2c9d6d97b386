//! Single values: from a TOML value to a valid value of its own type, or a fault.

use std::ops::RangeInclusive;
use std::str::FromStr;

use toml::de::DeValue;

use super::words::Words;
use super::{Array, Decoder, Tree, Value, place};
use crate::name::NameError;
use crate::spec::fault::{Code, Fault, Located, Span};
use crate::spec::nearest::did_you_mean;

/// A value as a fault quotes it: control characters escaped, and not too long.
pub(super) fn quote(text: &str) -> String {
    const MOST: usize = 60;
    let short: String = text.chars().take(MOST).collect();
    let more = if short.len() < text.len() { "..." } else { "" };
    format!("`{}{more}`", short.escape_debug())
}

/// A value as the file has it, and not too long: what was read of it may be another number.
pub(super) fn as_written(d: &Decoder<'_>, value: &Value<'_>) -> String {
    let Span { start, end } = place(value);
    let text = quote(d.text.get(start..end).unwrap_or_default());
    text.trim_matches('`').to_owned()
}

fn wrong_type(d: &mut Decoder<'_>, value: &Value<'_>, wanted: &str, help: &str) {
    let found = match value.get_ref() {
        DeValue::Integer(_) => "an integer",
        DeValue::Array(_) => "an array",
        DeValue::String(_) => "a string",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Table(_) => "a table",
    };
    let mut fault = Fault::new(Code::WrongType, place(value), format!("{wanted} should be here, and this is {found}"));
    fault.label = format!("not {wanted}");
    fault.help = (!help.is_empty()).then(|| help.to_owned());
    d.faults.push(fault);
}

pub(super) fn table<'a, 't>(d: &mut Decoder<'t>, value: &'a Value<'t>) -> Option<&'a Tree<'t>> {
    if let DeValue::Table(table) = value.get_ref() {
        return Some(table);
    }
    wrong_type(
        d,
        value,
        "a table",
        "a table starts with a line such as `[verify]`, and its keys follow on their own lines",
    );
    None
}

pub(super) fn array<'a, 't>(d: &mut Decoder<'t>, value: &'a Value<'t>) -> Option<&'a Array<'t>> {
    if let DeValue::Array(array) = value.get_ref() {
        return Some(array);
    }
    let help = match value.get_ref() {
        DeValue::Table(_) => "an array of tables has two brackets: `[[nodes]]`, `[[nodes.ports]]`",
        _ => "an array is written `[\"node02\", \"node03\"]`",
    };
    wrong_type(d, value, "an array", help);
    None
}

pub(super) fn string<'a>(d: &mut Decoder<'_>, value: &'a Value<'_>) -> Option<&'a str> {
    if let DeValue::String(text) = value.get_ref() {
        return Some(text);
    }
    let help = match value.get_ref() {
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) => "write it in quotes",
        _ => "",
    };
    wrong_type(d, value, "a string", help);
    None
}

/// A string that `read` turns into a value; when it can't, the fault it names.
pub(super) fn parsed<T, E>(
    d: &mut Decoder<'_>,
    value: &Value<'_>,
    read: impl FnOnce(&str) -> Result<T, E>,
    fault: impl FnOnce(&str, E, Span) -> Fault,
) -> Option<T> {
    let text = string(d, value)?;
    match read(text) {
        Ok(value) => Some(value),
        Err(e) => {
            d.faults.push(fault(text, e, place(value)));
            None
        }
    }
}

pub(super) fn name<N: FromStr<Err = NameError>>(d: &mut Decoder<'_>, value: &Value<'_>) -> Option<N> {
    let text = string(d, value)?;
    name_at(d, text, place(value))
}

pub(super) fn name_at<N: FromStr<Err = NameError>>(d: &mut Decoder<'_>, text: &str, at: Span) -> Option<N> {
    match text.parse() {
        Ok(name) => Some(name),
        Err(NameError { text: _, kind, rule }) => {
            d.faults.push(
                Fault::new(Code::BadName, at, format!("{} is not {kind}", quote(text)))
                    .label(format!("not {kind}"))
                    .help(rule),
            );
            None
        }
    }
}

/// An array of names, each with its place; those that are bad are left out.
pub(super) fn names<'t, N: FromStr<Err = NameError>>(
    d: &mut Decoder<'t>,
    value: &Value<'t>,
) -> Option<Vec<Located<N>>> {
    let mut all = Vec::new();
    for item in array(d, value)? {
        if let Some(name) = name(d, item) {
            all.push(Located { value: name, span: place(item) });
        }
    }
    Some(all)
}

pub(super) fn word<T: Copy>(d: &mut Decoder<'_>, value: &Value<'_>, words: Words<T>) -> Option<T> {
    let text = string(d, value)?;
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Some(*value);
    }
    unknown_word(d, text, place(value), words.iter().map(|(word, _)| *word));
    None
}

pub(super) fn unknown_word<'w>(
    d: &mut Decoder<'_>,
    text: &str,
    at: Span,
    words: impl Iterator<Item = &'w str> + Clone,
) {
    let help = did_you_mean(text, words, "this key takes");
    d.faults.push(
        Fault::new(Code::UnknownWord, at, format!("{} is not a word that this key takes", quote(text))).help(help),
    );
}

/// An integer of a range.
pub(super) fn integer(d: &mut Decoder<'_>, value: &Value<'_>, range: RangeInclusive<i64>) -> Option<i64> {
    let DeValue::Integer(number) = value.get_ref() else {
        let unquoted = value.get_ref().as_str().filter(|text| text.parse::<i64>().is_ok());
        let help = match unquoted {
            Some(number) => format!("without quotes: `{number}`"),
            None => "a whole number, without quotes, point or unit: `2`".to_owned(),
        };
        wrong_type(d, value, "an integer", &help);
        return None;
    };
    // One that does not fit 64 bits is out of any range.
    let parsed = i64::from_str_radix(number.as_str(), number.radix()).ok();
    if let Some(number) = parsed.filter(|number| range.contains(number)) {
        return Some(number);
    }
    let help = format!("it is {} to {}", range.start(), range.end());
    let written = as_written(d, value);
    d.faults.push(
        Fault::new(Code::NumberOutOfRange, place(value), format!("{written} is out of range"))
            .label("out of range")
            .help(help),
    );
    None
}
