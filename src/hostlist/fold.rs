//! From names to the folded list that stands for them: `node01`, `node02`, `node04` are `node[01-02,04]`.
//!
//! Names come in, in any order; the text of a list goes out that has each of them once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::name::HostName;

/// As many digits as a number in a list may have.
const MOST_DIGITS: usize = 18;

/// The names around a number: what is before it, what is behind it, and to how many digits it is padded (0: not).
type Family<'a> = (&'a str, &'a str, usize);

/// The list of these names: those without a number first, the others in the order of what is before it, and of it.
///
/// The number that is folded is the one that addresses are made of: the last in a name's part before the first dot.
#[must_use]
pub fn fold<'a>(names: impl IntoIterator<Item = &'a HostName>) -> String {
    let mut parts: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    let mut alone = BTreeSet::new();
    for name in names {
        match split(name.as_str()) {
            Some((before, digits, after)) => drop(parts.entry((before, after)).or_default().insert(digits)),
            None => drop(alone.insert(name.as_str())),
        }
    }
    let mut terms: Vec<String> = alone.into_iter().map(str::to_owned).collect();
    for ((before, after), digits) in parts {
        for (family, numbers) in families(before, after, &digits) {
            terms.push(term(family, &numbers));
        }
    }
    terms.join(",")
}

/// What is before a name's number, its digits, and what is behind them; `None` without a number of a list's length.
fn split(name: &str) -> Option<(&str, &str, &str)> {
    let short = name.split('.').next().unwrap_or(name);
    let end = short.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = short.get(..end)?.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |last| last + 1);
    let digits = name.get(start..end).filter(|digits| digits.len() <= MOST_DIGITS)?;
    Some((name.get(..start)?, digits, name.get(end..)?))
}

/// Numbers that are written alike: one with zeros before it has a width of its own, and one without goes with the
/// widest of those that it is not narrower than, as 100 does with 01.
fn families<'a>(before: &'a str, after: &'a str, digits: &BTreeSet<&str>) -> BTreeMap<Family<'a>, BTreeSet<u64>> {
    let padded = |digits: &str| digits.len() > 1 && digits.starts_with('0');
    let widths: BTreeSet<usize> = digits.iter().filter(|digits| padded(digits)).map(|digits| digits.len()).collect();
    let mut families: BTreeMap<Family<'a>, BTreeSet<u64>> = BTreeMap::new();
    for digits in digits {
        let pad = widths.range(..=digits.len()).next_back().copied().unwrap_or(0);
        let numbers = families.entry((before, after, pad)).or_default();
        numbers.extend(digits.parse::<u64>());
    }
    families
}

fn term((before, after, pad): Family<'_>, numbers: &BTreeSet<u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(number) => *end = number,
            _ => ranges.push((number, number)),
        }
    }
    match ranges.as_slice() {
        [(only, end)] if only == end => format!("{before}{only:0pad$}{after}"),
        ranges => {
            let mut list = String::new();
            for (start, end) in ranges {
                let comma = if list.is_empty() { "" } else { "," };
                // Writing to a string can't fail.
                let _ = write!(list, "{comma}{start:0pad$}");
                if start != end {
                    let _ = write!(list, "-{end:0pad$}");
                }
            }
            format!("{before}[{list}]{after}")
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hostlist::HostList;

    fn folded(names: &[&str]) -> String {
        let names: Vec<HostName> = names.iter().map(|name| name.parse().unwrap()).collect();
        fold(&names)
    }

    #[test]
    fn names_are_folded_by_the_number_that_addresses_are_made_of() {
        assert_eq!(folded(&["node04", "node01", "node02"]), "node[01-02,04]");
        assert_eq!(folded(&["gpu9", "gpu10", "gpu8"]), "gpu[8-10]");
        assert_eq!(folded(&["n099", "n100", "n098"]), "n[098-100]");
        assert_eq!(folded(&["n99", "n100", "n01"]), "n[01,99-100]");
        assert_eq!(folded(&["n1", "n01"]), "n1,n01");
        assert_eq!(folded(&["rack1-n1", "rack1-n2", "rack2-n1"]), "rack1-n[1-2],rack2-n1");
        assert_eq!(folded(&["gpu1.site2.example", "gpu2.site2.example"]), "gpu[1-2].site2.example");
        assert_eq!(folded(&["login", "n1a", "n2a"]), "login,n[1-2]a");
        assert_eq!(
            folded(&["n9999999999999999999", "n999999999999999999"]),
            "n9999999999999999999,n999999999999999999"
        );
        assert_eq!(folded(&["17"]), "17");
        assert_eq!(folded(&[]), "");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_folded_list_has_each_name_once(names in prop::collection::btree_set("[a-b]{0,2}[0-2]{0,3}(-[a0-1]{1,2})?(\\.s1)?", 1..40)) {
            let names: BTreeSet<HostName> = names.iter().filter_map(|name| name.parse().ok()).collect();
            prop_assume!(!names.is_empty());
            let text = fold(&names);
            let list: HostList = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            prop_assert_eq!(list.iter().collect::<BTreeSet<_>>(), names.clone(), "{}", text);
            prop_assert_eq!(list.count(), names.len());
        }
    }
}
