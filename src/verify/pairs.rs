//! Which nodes are measured against which.

/// For each end whether it is a limited member of the network's partition; the pairs to measure, as (from, to).
///
/// Every full member sends to its neighbour in a ring, so that each is measured once in each direction. With two that
/// is both directions of their one pair; with one there is nothing to measure. Limited members reach full ones only:
/// each is paired with one of these, in turn, in both directions.
#[must_use]
pub fn of(limited: &[bool]) -> Vec<(usize, usize)> {
    let are = |wanted: bool| (0..limited.len()).filter(|end| limited.get(*end) == Some(&wanted)).collect::<Vec<_>>();
    let (full, limited) = (are(false), are(true));
    let next = full.iter().cycle().skip(1);
    let ring = full.iter().zip(next).filter(|(from, to)| from != to).map(|(from, to)| (*from, *to));
    let spokes = limited.iter().zip(full.iter().cycle()).flat_map(|(one, other)| [(*one, *other), (*other, *one)]);
    ring.chain(spokes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_sends_once_and_receives_once() {
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[false]), []);
        assert_eq!(of(&[false; 2]), [(0, 1), (1, 0)]);
        assert_eq!(of(&[false; 3]), [(0, 1), (1, 2), (2, 0)]);
    }

    #[test]
    fn limited_members_are_never_paired_with_each_other() {
        assert_eq!(of(&[true; 3]), [], "there is nobody whom they may reach");
        assert_eq!(of(&[true, false]), [(0, 1), (1, 0)]);
        let servers = of(&[false, true, true, false, true]);
        let spokes = [(1, 0), (0, 1), (2, 3), (3, 2), (4, 0), (0, 4)];
        assert_eq!(servers, [[(0, 3), (3, 0)].as_slice(), &spokes].concat());
    }
}
