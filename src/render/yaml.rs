//! The part of YAML that we write, read and quoted.
//!
//! Mappings by indentation, plain and double-quoted words, flow lists of words,
//! whole-line comments. Text that uses more is refused and not guessed at: the
//! reader is there to see what a template made, and must not be fooled.

use std::collections::BTreeMap;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A word, its quotes taken off.
    Word(String),
    /// A list of words.
    List(Vec<String>),
    /// A mapping.
    Map(BTreeMap<String, Value>),
}

/// What was not understood: the line, from 1, and why.
pub type Fault = (usize, &'static str);

/// Words that YAML 1.1, which netplan reads, takes for something else than text.
const SPECIAL: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"];

/// A word that reads back as itself, quoted where that is needed.
#[must_use]
pub fn word(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !SPECIAL.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
}

/// A list of words, all quoted.
#[must_use]
pub fn list(words: &[String]) -> String {
    let quoted: Vec<String> =
        words.iter().map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    format!("[{}]", quoted.join(", "))
}

/// Reads a document whose top is a mapping.
///
/// # Errors
/// With the first line that is outside the part of YAML that is read here.
pub fn parse(text: &str) -> Result<Value, Fault> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let body = line.trim_start_matches(' ');
        if body.trim().is_empty() || body.starts_with('#') || (index == 0 && body.trim_end() == "---") {
            continue;
        }
        if body.contains('\t') {
            return Err((number, "it has a tab"));
        }
        lines.push(Line { number, indent: line.len() - body.len(), body: body.trim_end() });
    }
    let mut rest = lines.as_slice();
    let top = rest.first().map_or(0, |line| line.indent);
    let map = mapping(&mut rest, top)?;
    match rest.first() {
        Some(line) => Err((line.number, "it is indented less than the top")),
        None => Ok(map),
    }
}

struct Line<'a> {
    number: usize,
    indent: usize,
    body: &'a str,
}

fn mapping(rest: &mut &[Line], indent: usize) -> Result<Value, Fault> {
    let mut map = BTreeMap::new();
    while let Some((line, after)) = rest.split_first().filter(|(line, _)| line.indent >= indent) {
        let fault = |why| (line.number, why);
        if line.indent > indent {
            return Err(fault("it is indented more than its neighbours"));
        }
        *rest = after;
        let (key, value) = line.body.split_once(':').ok_or_else(|| fault("it is no `key: value`"))?;
        let key = scalar(key.trim()).ok_or_else(|| fault("its key is not a word"))?;
        let value = match value.strip_prefix(' ').map(str::trim) {
            Some(value) if value.starts_with('[') => {
                Value::List(words(value).ok_or_else(|| fault("it is no list of words"))?)
            }
            Some(value) if !value.is_empty() => {
                Value::Word(scalar(value).ok_or_else(|| fault("its value is not a word"))?)
            }
            None if !value.is_empty() => return Err(fault("no blank follows the colon")),
            _ => match rest.first().filter(|next| next.indent > indent) {
                Some(next) => {
                    let inner = next.indent;
                    mapping(rest, inner)?
                }
                None => return Err(fault("it has no value")),
            },
        };
        if map.insert(key, value).is_some() {
            return Err(fault("its key is there twice"));
        }
    }
    Ok(Value::Map(map))
}

/// `["a", "b"]`
fn words(text: &str) -> Option<Vec<String>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?.trim();
    if inner.is_empty() { Some(Vec::new()) } else { inner.split(',').map(|one| scalar(one.trim())).collect() }
}

/// A plain or double-quoted word without escapes, anchors, tags or blanks.
fn scalar(text: &str) -> Option<String> {
    if let Some(inner) = text.strip_prefix('"') {
        let inner = inner.strip_suffix('"')?;
        return (!inner.contains(['"', '\\'])).then(|| inner.to_owned());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    (!text.is_empty() && !text.starts_with('-') && text.chars().all(plain)).then(|| text.to_owned())
}

impl Value {
    /// The value at a path of keys.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, key| match value {
            Self::Map(map) => map.get(*key),
            Self::Word(_) | Self::List(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_as_themselves() {
        for text in ["ib0", "on", "1e3", "0x10", "null", "10.0.0.1/16", "fd00::1/64", "rail-0.8001"] {
            assert_eq!(scalar(&word(text)), Some(text.to_owned()), "{text}");
        }
        assert_eq!(word("on"), "\"on\"");
        assert_eq!(word("1e3"), "\"1e3\"");
        assert_eq!(word("ib0"), "ib0");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let text = "# c\na:\n  b: 1\n  \"c\": [\"x\", \"y\"]\nd: []\n";
        let value = parse(text).unwrap();
        assert_eq!(value.at(&["a", "c"]), Some(&Value::List(vec!["x".into(), "y".into()])));
        assert_eq!(value.at(&["d"]), Some(&Value::List(vec![])));
        for bad in [
            "a",
            "a: &x 1",
            "a: !t 1",
            "- a",
            "a:1",
            "a: 1 # c",
            "a: |\n  b",
            "a: 1\n  b: 2",
            "a: 1\na: 2",
            "a:\n",
            "  a: 1\nb: 2",
            "a: 'x'",
            "a: [b: c]",
            "a: {b: c}",
            "\ta: 1",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
