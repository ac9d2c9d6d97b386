//! Host lists as ClusterShell and Slurm write them: `gpu[001-128,200]`.
//!
//! A string comes in; a folded list goes out that counts its hosts, finds one
//! by name or by index, and walks over all of them. It is never expanded as a
//! whole into memory, except to look for duplicates after the count was seen
//! to be small enough.

mod fold;
mod parse;
mod range;
#[cfg(test)]
mod tests;

pub use fold::fold;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use thiserror::Error;

use crate::name::{DeviceName, HostName, NameError};
use range::Term;

/// The most names that one list may stand for.
pub const MOST_NAMES: u128 = 1_000_000;

/// A list of hosts.
pub type HostList = NameList<HostName>;

/// A list of RDMA devices, such as `mlx5_[0-7]`.
pub type DeviceList = NameList<DeviceName>;

/// A folded list of names of the kind `N`, each valid and none twice.
///
/// The order is that of the text; in a term with several brackets the last one
/// runs fastest, as in ClusterShell and Slurm.
#[derive(Clone)]
pub struct NameList<N> {
    text: String,
    terms: Vec<Term>,
    count: usize,
    /// From the text before a term's first bracket (all of it, if there is
    /// none) to the terms that start so: `position` looks at these alone.
    by_prefix: BTreeMap<Box<str>, Vec<usize>>,
    name: PhantomData<fn() -> N>,
}

/// Why a string is not a list of names.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{kind}")]
pub struct NameListError {
    /// Where in the string, in bytes.
    pub at: usize,
    /// How many bytes from there on are meant.
    pub len: usize,
    /// What is wrong.
    pub kind: NameListFault,
}

/// What can be wrong with a list of names.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameListFault {
    /// Nothing, or nothing between two commas.
    #[error("a name is missing here")]
    Missing,
    /// `[` without `]`.
    #[error("this `[` is never closed")]
    Unclosed,
    /// `]` without `[`.
    #[error("this `]` closes nothing")]
    Unopened,
    /// `[]`, `[1,]` or `[1-]`.
    #[error("a number is missing here")]
    EmptyRange,
    /// Something else than digits within brackets.
    #[error("`{0}` is not a range: brackets hold numbers, as in `[01-16,20]` or `[0-10/2]`")]
    NotANumber(String),
    /// More digits than a number here may have.
    #[error("a number has at most {most} digits here")]
    TooManyDigits {
        /// The most digits.
        most: usize,
    },
    /// `[9-1]`.
    #[error("this range runs backwards: {start} is more than {end}")]
    Backwards {
        /// The first number.
        start: u64,
        /// The last number.
        end: u64,
    },
    /// `[1-9/0]`.
    #[error("a step is at least 1")]
    ZeroStep,
    /// `[01-100]` is read as padded to two digits; `[1-010]` or `[001-10]` is not clear.
    #[error("`{start}` and `{end}` are padded with zeros to different widths")]
    Padding {
        /// The first number as written.
        start: String,
        /// The last number as written.
        end: String,
    },
    /// `a[1-10][1-10]`: `a111` would be two of them.
    #[error("digits follow a range whose numbers have different widths, so where its number ends is not clear")]
    Ambiguous,
    /// A name that is not one of its kind.
    #[error(transparent)]
    BadName(#[from] NameError),
    /// More names than [`MOST_NAMES`].
    #[error("this list stands for {} names, and {most} is the most", Count(*.count))]
    TooMany {
        /// How many; `u128::MAX` when that or more.
        count: u128,
        /// The most.
        most: u128,
    },
    /// A name twice.
    #[error("`{0}` is in this list twice")]
    Duplicate(String),
}

/// A count in which `u128::MAX` stands for anything above.
struct Count(u128);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u128::MAX { f.write_str("more than 10^38") } else { self.0.fmt(f) }
    }
}

impl<N> NameList<N> {
    /// How many names.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The list as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Appends the name at `index` to `out`; false and nothing beyond the end.
    pub fn write_nth(&self, index: usize, out: &mut String) -> bool {
        let term = self.terms.partition_point(|term| term.first <= index).checked_sub(1);
        let Some(term) = term.and_then(|i| self.terms.get(i)) else { return false };
        term.write_nth(index - term.first, out)
    }

    /// The index of the name `text`, found by arithmetic and not by expansion.
    #[must_use]
    pub fn position_of(&self, text: &str) -> Option<usize> {
        let starts = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at);
        starts.chain([text.len()]).find_map(|end| {
            let terms = self.by_prefix.get(text.get(..end)?)?;
            terms.iter().find_map(|&i| self.terms.get(i)?.position(text))
        })
    }
}

impl<N: FromStr> NameList<N> {
    /// The name at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<N> {
        let mut text = String::new();
        if self.write_nth(index, &mut text) { text.parse().ok() } else { None }
    }

    /// All names in order.
    pub fn iter(&self) -> impl Iterator<Item = N> + '_ {
        (0..self.count).filter_map(|index| self.get(index))
    }
}

impl<N: AsRef<str>> NameList<N> {
    /// Whether `name` is in the list.
    #[must_use]
    pub fn contains(&self, name: &N) -> bool {
        self.position(name).is_some()
    }

    /// The index of `name`, from 0.
    #[must_use]
    pub fn position(&self, name: &N) -> Option<usize> {
        self.position_of(name.as_ref())
    }
}

impl<N: FromStr<Err = NameError>> FromStr for NameList<N> {
    type Err = NameListError;
    fn from_str(text: &str) -> Result<Self, NameListError> {
        parse::parse(text)
    }
}

impl<N> fmt::Display for NameList<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl<N> fmt::Debug for NameList<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NameList({:?}, {} names)", self.text, self.count)
    }
}

/// Two lists are equal when they are written alike.
impl<N> PartialEq for NameList<N> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<N> Eq for NameList<N> {}
