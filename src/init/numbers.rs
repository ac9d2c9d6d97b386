//! Where the numbers of hosts come from, so that each has an address of its own in each network.

use std::collections::BTreeSet;

use super::blocks::Block;
use crate::addressing::number_in_name;

/// The last host of a placeholder network: the one after it is the broadcast address.
const LAST: u64 = 65_534;

/// The numbers of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// In the hosts' names.
    Name,
    /// Places in the list, after so many others.
    Position {
        /// `offset`
        offset: u64,
    },
}

/// For each block. Names give the numbers where they can; the others come after those.
pub(super) fn numbered(blocks: &[Block<'_>]) -> Vec<Numbers> {
    let mut taken = BTreeSet::new();
    let named: Vec<bool> = blocks.iter().map(|block| takes(block, &mut taken)).collect();
    let rest = || blocks.iter().zip(&named).filter(|(_, named)| !**named).map(|(block, _)| block.hosts.len() as u64);
    let last = taken.last().copied().unwrap_or(0);
    if last + rest().sum::<u64>() <= LAST {
        return offsets(blocks, last, |index| named.get(index) == Some(&true));
    }
    // The highest number leaves no room behind it.
    offsets(blocks, 0, |_| false)
}

/// Whether the names of a block give numbers that no other host has; they are taken then.
fn takes(block: &Block<'_>, taken: &mut BTreeSet<u64>) -> bool {
    // Without ports there are no addresses to be made.
    if block.ports.is_empty() {
        return true;
    }
    let number = |name: &str| number_in_name(name).filter(|number| (1..=LAST).contains(number));
    let numbers: Option<BTreeSet<u64>> = block.hosts.iter().map(|host| number(host.name.as_str())).collect();
    let Some(numbers) = numbers.filter(|numbers| numbers.len() == block.hosts.len() && numbers.is_disjoint(taken))
    else {
        return false;
    };
    taken.extend(numbers);
    true
}

fn offsets(blocks: &[Block<'_>], mut offset: u64, named: impl Fn(usize) -> bool) -> Vec<Numbers> {
    let of_block = |(index, block): (usize, &Block<'_>)| {
        if named(index) {
            return Numbers::Name;
        }
        let own = offset;
        offset += block.hosts.len() as u64;
        Numbers::Position { offset: own }
    };
    blocks.iter().enumerate().map(of_block).collect()
}
