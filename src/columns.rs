//! Tables as a person reads them: cells in columns, each as wide as its widest cell.

/// The titles, and a line for each row.
#[must_use]
pub fn columns<const N: usize>(titles: [&str; N], rows: &[[String; N]]) -> String {
    let titles = titles.map(str::to_owned);
    let all = || std::iter::once(&titles).chain(rows);
    let mut widths = [0; N];
    for row in all() {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut out = String::new();
    for row in all() {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_its_widest_cell() {
        let rows = [["a", "10"], ["long", "1"]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(["x", "wide"], &rows), "x     wide\na     10\nlong  1\n");
    }
}
