//! Which nodes are measured against which.

/// Every node sends to its neighbour in a ring, so that each is measured once in each direction.
/// With two nodes that is both directions of their one pair; with one there is nothing to measure.
#[must_use]
pub fn ring(nodes: usize) -> Vec<(usize, usize)> {
    if nodes < 2 { Vec::new() } else { (0..nodes).map(|node| (node, (node + 1) % nodes)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_sends_once_and_receives_once() {
        assert_eq!(ring(0), []);
        assert_eq!(ring(1), []);
        assert_eq!(ring(2), [(0, 1), (1, 0)]);
        assert_eq!(ring(3), [(0, 1), (1, 2), (2, 0)]);
    }
}
