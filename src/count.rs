//! Numbers of things in words: `1 node`, `2 switches`.

/// A number and its noun, in the plural but for one.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        noun if noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let said =
            [(0, "node"), (1, "node"), (2, "node"), (1, "switch"), (2, "switch")].map(|(n, noun)| counted(n, noun));
        assert_eq!(said, ["0 nodes", "1 node", "2 nodes", "1 switch", "2 switches"]);
    }
}
