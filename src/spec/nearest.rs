//! "Did you mean": the nearest of some words.

/// The word nearest to `wrong`, if one is near enough to be what was meant.
///
/// Letters of the wrong case and `_` for `-` count for nothing; otherwise one
/// edit for each three characters, and at least one.
pub(super) fn nearest<'w>(wrong: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // Names are at most 253 bytes; a longer text is no typing mistake, and the distance is quadratic.
    if wrong.len() > 253 {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let wrong = plain(wrong);
    let most = 1 + wrong.len() / 3;
    words
        .into_iter()
        .filter(|word| word.len().abs_diff(wrong.len()) <= most)
        .map(|word| (strsim::damerau_levenshtein(&wrong, &plain(word)), word))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, word)| word)
}

/// ``did you mean `x`?``, or else the words there are.
pub(super) fn did_you_mean<'w>(wrong: &str, words: impl IntoIterator<Item = &'w str> + Clone, are: &str) -> String {
    match nearest(wrong, words.clone()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("{are}: {}", list(words)),
    }
}

/// The words in backticks with commas; after ten, how many more.
pub(super) fn list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    const MOST: usize = 10;
    let mut words = words.into_iter();
    let shown: Vec<_> = words.by_ref().take(MOST).map(|word| format!("`{word}`")).collect();
    if shown.is_empty() {
        return "none".to_owned();
    }
    match words.count() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_find_their_word() {
        let keys = ["cidr", "fabric", "mode", "mtu", "min-bandwidth"];
        assert_eq!(nearest("cdir", keys), Some("cidr"));
        assert_eq!(nearest("MTU", keys), Some("mtu"));
        assert_eq!(nearest("min_bandwidth", keys), Some("min-bandwidth"));
        assert_eq!(nearest("gateway", keys), None);
    }
}
