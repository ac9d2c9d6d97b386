//! What the values of a spec say about each other.
//!
//! A draft comes in, all faults of its relations go out. A value that is
//! absent has been reported by the decoder and is passed over, so that one
//! mistake is one fault. Hosts are looked at once each, not once for each port.

mod addresses;
mod exceptions;
mod fabrics;
mod hosts;
mod networks;
mod partitions;
mod ports;

use super::draft::Draft;
use super::fault::Fault;
use super::nearest::did_you_mean;
use crate::name::Label;
use hosts::Roster;

/// How many faults get a "did you mean": a search for each of thousands would take longer than all else.
const MOST_SEARCHES: usize = 50;

/// The draft being checked, and what was found so far.
struct Check<'d> {
    draft: &'d Draft,
    faults: Vec<Fault>,
    searches: usize,
}

pub(super) fn check(draft: &Draft) -> Vec<Fault> {
    let mut c = Check { draft, faults: Vec::new(), searches: 0 };
    fabrics::check(&mut c);
    networks::check(&mut c);
    partitions::check(&mut c);
    ports::check(&mut c);
    if let Some(roster) = Roster::gather(&mut c) {
        let index = hosts::check(&mut c, &roster);
        let exceptions = exceptions::check(&mut c, &roster, &index);
        addresses::check(&mut c, &roster, &exceptions);
        partitions::members(&mut c, &roster, &index);
    }
    c.faults
}

impl Check<'_> {
    /// The help line for a name that is not among `words`.
    fn suggest<'w>(&mut self, wrong: &str, words: impl IntoIterator<Item = &'w str> + Clone, are: &str) -> String {
        self.searches += 1;
        if self.searches > MOST_SEARCHES {
            return "it is not in the spec".to_owned();
        }
        did_you_mean(wrong, words, are)
    }
}

fn names<V>(map: &std::collections::BTreeMap<Label, V>) -> impl Iterator<Item = &str> + Clone {
    map.keys().map(Label::as_str)
}
