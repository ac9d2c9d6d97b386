//! A spec to start from, filled from what hosts have: what `selvedge init --from-host` and its like write.
//!
//! Facts by host come in, the commented text of a spec goes out that `check` takes, whatever the facts. What no host can
//! know, such as the cluster's addresses, is a placeholder marked `CHECK`. Nothing here asks a host or writes a file.

mod blocks;
mod natural;
mod numbers;
mod rails;
mod survey;
#[cfg(test)]
mod tests;
mod text;

use thiserror::Error;

use crate::facts::by_host::FactsByHost;

/// The placeholder networks, each of 16 bits, have a number for so many hosts.
const MOST_HOSTS: usize = 10_000;

/// Why there is no spec.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InitError {
    /// No host answered, or none was asked.
    #[error("there are no facts of any host to make a spec of")]
    NoFacts,
    /// More than the placeholder networks are for.
    #[error("these are the facts of {0} hosts, and {MOST_HOSTS} is the most that a spec is made of")]
    TooMany(usize),
}

/// The text of a spec for these hosts.
///
/// # Errors
/// When there are no facts, or those of too many hosts.
pub fn spec_of(found: &FactsByHost) -> Result<String, InitError> {
    let hosts = survey::hosts(found);
    match hosts.len() {
        0 => return Err(InitError::NoFacts),
        count if count > MOST_HOSTS => return Err(InitError::TooMany(count)),
        _ => {}
    }
    let rails = rails::Rails::of(&hosts);
    let blocks = blocks::blocks(&hosts);
    let numbered = numbers::numbered(&blocks);
    Ok(text::spec(&text::Found { hosts: &hosts, silent: survey::silent(found), rails, blocks, numbered }))
}
