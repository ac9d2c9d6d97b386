//! No text makes `load` or its messages panic, or the messages long.

use proptest::prelude::*;
use selvedge::spec::{Look, load};

const SEEDS: &[&str] = &[
    include_str!("../examples/quickstart.toml"),
    include_str!("../examples/lab.toml"),
    include_str!("invalid/bad-module-option.toml"),
    include_str!("invalid/number-collision-racks.toml"),
    include_str!("invalid/mtu-below-ip.toml"),
];

/// What one fault may take: its words, and a few lines of the text around each place.
const MOST_BYTES_OF_A_FAULT: usize = 16_000;

fn bounded(faults: &selvedge::spec::Faults) {
    for look in [Look::Plain, Look::Terminal { columns: 80 }] {
        let rendered = faults.render(look);
        let most = MOST_BYTES_OF_A_FAULT * (faults.faults.len().min(100) + 1);
        assert!(rendered.len() <= most, "{} bytes for {} faults", rendered.len(), faults.faults.len());
        assert!(rendered.lines().all(|line| line.len() < 4_000), "a long line:\n{rendered}");
    }
    for record in faults.records() {
        assert!(record.message.len() + record.help.map_or(0, |help| help.len()) < 3_000, "{}", record.message);
    }
}

fn survive(text: &str) {
    match load("fuzz.toml", text) {
        Ok(checked) => {
            let _ = (checked.warnings.render(Look::Plain), checked.warnings.records());
        }
        Err(faults) => {
            assert!(!faults.faults.is_empty(), "refused without a fault:\n{text}");
            let _ = (faults.render(Look::Plain), faults.render(Look::Terminal { columns: 80 }));
            for record in faults.records() {
                assert!(record.line >= 1 && record.column >= 1);
            }
        }
    }
}

/// A place of a text, on a character's border.
fn border(text: &str, at: prop::sample::Index) -> usize {
    let mut at = at.index(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        // A case that fails belongs in tests/invalid, where its message is held too.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn anything_like_toml(text in "([a-z.\\[\\]=\"'{}, 0-9\n-]|é|\u{0}|version = 1\n|\\[fabrics\\.|\\[\\[nodes\\]\\]\n){0,60}") {
        survive(&text);
    }

    #[test]
    fn a_mutated_example(
        seed in prop::sample::select(SEEDS),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), "\\PC{0,3}|[\"=\\[\\]\n]|9999999999999999999|é|"), 1..4),
    ) {
        let mut text = seed.to_owned();
        for (at, len, with) in cuts {
            let start = border(&text, at);
            let end = border(&text, len).clamp(start, (start + 40).min(text.len()));
            let end = (start..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(start);
            text.replace_range(start..end, &with);
        }
        survive(&text);
    }

    #[test]
    fn an_example_with_a_long_line(
        seed in prop::sample::select(SEEDS),
        at in any::<prop::sample::Index>(),
        chunk in "[a-z\\[\\]=\"'{}, 0-9\n-]{1,4}|node[0-9]{3},|é|\t|\u{1b}|漢|\r",
        times in prop::sample::select(&[100_usize, 3_000, 66_000][..]),
    ) {
        let mut text = seed.to_owned();
        text.insert_str(border(&text, at), &chunk.repeat(times / chunk.len()));
        match load("fuzz.toml", &text) {
            Ok(checked) => bounded(&checked.warnings),
            Err(faults) => bounded(&faults),
        }
    }

    #[test]
    fn lines_of_examples_in_any_order(lines in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let all: Vec<_> = SEEDS.iter().flat_map(|seed| seed.lines()).collect();
        let text: Vec<_> = lines.iter().map(|line| *line.get(&all)).collect();
        survive(&text.join("\n"));
    }
}

/// Each made the messages panic, or echo the whole line.
#[test]
fn lines_longer_than_any_screen() {
    let quickstart = SEEDS[0];
    let hosts: Vec<String> = (1..9_000).map(|number| format!("node{number:05}")).collect();
    let hosts = format!("hosts = \"{},node00042\"", hosts.join(","));
    for text in [
        format!("x = \"{}\" \"", "x".repeat(65_530)),
        quickstart.replace("hosts = \"node[01-02]\"", &hosts),
        format!("version = {}", "[".repeat(70_000)),
        format!("version = {}1", "0".repeat(70_000)),
        format!("{} = 1\nversion = 1", "k".repeat(70_000)),
        format!("version = 1\na.{}", "\t".repeat(70_000)),
        quickstart.replace("\"HDR\"", &format!("\"{}\"", "é".repeat(70_000))),
    ] {
        let faults = load("long.toml", &text).unwrap_err();
        bounded(&faults);
    }
}
