//! The order in which people count: node2 before node10.

/// A piece of a name: digits are compared by what they count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    /// How long it is without the zeros before it, and then its digits.
    Number(usize, &'a str),
}

/// What to sort a name by.
pub(super) fn key(name: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let digits = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (piece, more) = rest.split_at(end);
        let plain = piece.trim_start_matches('0');
        pieces.push(if digits { Piece::Number(plain.len(), plain) } else { Piece::Text(piece) });
        rest = more;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_comes_before_ten() {
        let mut names = ["mlx5_10", "mlx5_2", "mlx5_0", "mlx4_11", "n010", "n9", "n", "9n", "n99999999999999999999999"];
        names.sort_by_key(|name| key(name));
        assert_eq!(
            names,
            ["mlx4_11", "mlx5_0", "mlx5_2", "mlx5_10", "n", "n9", "n010", "n99999999999999999999999", "9n"]
        );
    }
}
