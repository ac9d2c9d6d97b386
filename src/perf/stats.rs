//! Latency statistics, exact: samples in nanoseconds come in, microseconds go out.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A latency measurement: whole round trips of RDMA READs, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Latency {
    /// The size of one message, in bytes.
    pub message_bytes: u32,
    /// How many were measured; the first READ is not among them.
    pub samples: u64,
    /// perftest's `t_min`.
    pub min_us: f64,
    /// perftest's `t_typical`: the median.
    pub typical_us: f64,
    /// perftest's `t_avg`.
    pub average_us: f64,
    /// The 99th percentile, by nearest rank.
    pub p99_us: f64,
    /// The 99.9th percentile, by nearest rank.
    pub p999_us: f64,
    /// perftest's `t_max`.
    pub max_us: f64,
}

impl Latency {
    /// Sorts the samples and summarises them; `None` if there are none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are far more than a measurement has")]
    pub fn summarise(message_bytes: u32, samples_ns: &mut [u64]) -> Option<Self> {
        samples_ns.sort_unstable();
        let count = samples_ns.len();
        let us = |ns: u64| ns as f64 / 1e3;
        // The smallest sample that at least `per_mille` of all do not exceed.
        let rank = |per_mille: usize| samples_ns.get((count * per_mille).div_ceil(1000).max(1) - 1).copied();
        let (lower, upper) = (samples_ns.get(count.checked_sub(1)? / 2)?, samples_ns.get(count / 2)?);
        let sum: u128 = samples_ns.iter().map(|ns| u128::from(*ns)).sum();
        Some(Self {
            message_bytes,
            samples: count as u64,
            min_us: us(*samples_ns.first()?),
            typical_us: f64::midpoint(us(*lower), us(*upper)),
            average_us: sum as f64 / count as f64 / 1e3,
            p99_us: us(rank(990)?),
            p999_us: us(rank(999)?),
            max_us: us(*samples_ns.last()?),
        })
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message_bytes, samples, min_us, typical_us, average_us, p99_us, p999_us, max_us } = self;
        write!(
            f,
            "t_typical {typical_us:.2} us (min {min_us:.2}, average {average_us:.2}, 99% {p99_us:.2}, \
             99.9% {p999_us:.2}, max {max_us:.2}), {samples} READs of {message_bytes} bytes"
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_thousand_even_samples_have_their_textbook_quantiles() {
        let mut samples: Vec<u64> = (1..=1000).rev().map(|n| n * 1000).collect();
        let latency = Latency::summarise(2, &mut samples).unwrap();
        assert_eq!((latency.min_us, latency.max_us), (1.0, 1000.0));
        assert_eq!((latency.typical_us, latency.average_us), (500.5, 500.5));
        assert_eq!((latency.p99_us, latency.p999_us), (990.0, 999.0));
    }

    #[test]
    fn few_samples_have_quantiles_too() {
        assert_eq!(Latency::summarise(2, &mut []), None);
        let one = Latency::summarise(2, &mut [1500]).unwrap();
        assert_eq!((one.min_us, one.typical_us, one.p99_us, one.p999_us, one.samples), (1.5, 1.5, 1.5, 1.5, 1));
        let three = Latency::summarise(2, &mut [3000, 1000, 2000]).unwrap();
        assert_eq!((three.typical_us, three.p99_us), (2.0, 3.0));
    }

    proptest! {
        #[test]
        fn the_quantiles_are_in_order(mut samples in prop::collection::vec(0..10_000_000_000_u64, 1..300)) {
            let l = Latency::summarise(2, &mut samples).unwrap();
            prop_assert!(l.min_us <= l.typical_us && l.typical_us <= l.max_us);
            prop_assert!(l.min_us <= l.p99_us && l.p99_us <= l.p999_us && l.p999_us <= l.max_us);
            prop_assert!(l.min_us <= l.average_us + 1e-6 && l.average_us <= l.max_us + 1e-6);
        }
    }
}
