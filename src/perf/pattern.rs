//! What is written into memory so that its arrival can be checked.
//!
//! A seed comes in, a sequence of words goes out that repeats nowhere, so that
//! a page in the wrong place is seen as well as one that never came.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The word at a place: splitmix64 of the place and the seed.
#[must_use]
pub fn word(seed: u64, at: u64) -> u64 {
    let mut z = seed.wrapping_add(at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// All words of a seed.
pub fn words(seed: u64) -> impl Iterator<Item = u64> {
    (0..).map(move |at| word(seed, at))
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Checked {
    /// Bytes compared.
    pub bytes: u32,
    /// Bytes that differ.
    pub wrong_bytes: u32,
    /// The offset of the first of them.
    pub first_wrong: Option<u32>,
}

impl Checked {
    /// Whether every byte arrived.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.wrong_bytes == 0
    }
}

/// Compares the first `bytes` bytes of memory, as little-endian words, with the
/// pattern. Memory that is shorter counts as wrong to its end.
#[must_use]
pub fn check(memory: impl Iterator<Item = u64>, seed: u64, bytes: u32) -> Checked {
    let mut checked = Checked { bytes, wrong_bytes: 0, first_wrong: None };
    let mut memory = memory.map(Some).chain(std::iter::repeat(None));
    for (at, expected) in (0..bytes.div_ceil(8)).zip(words(seed)) {
        let found = memory.next().flatten();
        for byte in 0..(bytes - at * 8).min(8) {
            let same = found.is_some_and(|word| (word >> (8 * byte)) & 0xff == (expected >> (8 * byte)) & 0xff);
            if !same {
                checked.wrong_bytes += 1;
                checked.first_wrong.get_or_insert(at * 8 + byte);
            }
        }
    }
    checked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_memory_is_right_whatever_follows_it() {
        for bytes in [0, 1, 2, 7, 8, 9, 4096] {
            let whole = (bytes / 8) as usize;
            let tail = word(9, whole as u64) & ((1_u64 << (8 * (bytes % 8))) - 1);
            let memory = words(9).take(whole).chain([tail, 0]);
            assert!(check(memory, 9, bytes).is_right(), "{bytes}");
        }
    }

    #[test]
    fn a_wrong_byte_a_missing_page_and_another_seed_are_seen() {
        let flipped = words(9).enumerate().map(|(at, w)| if at == 3 { w ^ 0x1_0000 } else { w });
        assert_eq!(check(flipped, 9, 64), Checked { bytes: 64, wrong_bytes: 1, first_wrong: Some(26) });
        let short = check(words(9).take(512), 9, 8192);
        assert_eq!((short.wrong_bytes, short.first_wrong), (4096, Some(4096)));
        assert!(check(words(8), 9, 4096).wrong_bytes > 4000);
        let shifted = words(9).skip(512);
        assert!(!check(shifted, 9, 4096).is_right());
    }
}
