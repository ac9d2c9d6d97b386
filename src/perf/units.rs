//! Bandwidth in both of the field's units, always labelled.
//!
//! Bytes and a time come in, GB/s (10^9) and perftest's MiB/s (2^20) go out.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measured bandwidth, one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bandwidth {
    /// The size of one message, in bytes.
    pub message_bytes: u32,
    /// Messages sent and acknowledged.
    pub messages: u64,
    /// From the first post to the last completion, in nanoseconds.
    pub elapsed_ns: u64,
}

impl Bandwidth {
    /// Payload bytes in all.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.messages.saturating_mul(u64::from(self.message_bytes))
    }

    /// GB/s, 10^9 bytes a second: what a link's data rate is compared with.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are far more than a measurement has")]
    pub fn gb_per_s(&self) -> f64 {
        // Bytes a nanosecond are GB a second.
        if self.elapsed_ns == 0 { 0.0 } else { self.bytes() as f64 / self.elapsed_ns as f64 }
    }

    /// MiB/s, 2^20 bytes a second: what perftest prints as `BW average[MB/sec]`.
    #[must_use]
    pub fn mib_per_s(&self) -> f64 {
        self.gb_per_s() * 1e9 / f64::from(1 << 20)
    }

    /// Messages a second, in millions: perftest's `MsgRate[Mpps]`.
    #[must_use]
    pub fn message_rate_mpps(&self) -> f64 {
        if self.message_bytes == 0 { 0.0 } else { self.gb_per_s() * 1e3 / f64::from(self.message_bytes) }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message_bytes, messages, elapsed_ns } = self;
        write!(
            f,
            "{:.3} GB/s ({:.2} MiB/s as perftest counts), {messages} messages of {message_bytes} bytes in {:.2} s",
            self.gb_per_s(),
            self.mib_per_s(),
            Duration::from_nanos(*elapsed_ns).as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_units_are_right_and_labelled() {
        let hdr = Bandwidth { message_bytes: 65_536, messages: 367_992, elapsed_ns: 1_000_000_000 };
        assert!((hdr.gb_per_s() - 24.117).abs() < 0.001, "{}", hdr.gb_per_s());
        assert!((hdr.mib_per_s() - 22_999.5).abs() < 0.1, "{}", hdr.mib_per_s());
        assert!((hdr.message_rate_mpps() - 0.367_992).abs() < 1e-6);
        assert_eq!(
            hdr.to_string(),
            "24.117 GB/s (22999.50 MiB/s as perftest counts), 367992 messages of 65536 bytes in 1.00 s"
        );
    }

    #[test]
    fn no_time_is_no_infinity() {
        let nothing = Bandwidth { message_bytes: 0, messages: 5, elapsed_ns: 0 };
        assert_eq!((nothing.gb_per_s(), nothing.message_rate_mpps()), (0.0, 0.0));
    }
}
