//! The kernel's text for the rate of a port: `200 Gb/sec (4X HDR)`.

/// A rate as sysfs prints it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Gb/s.
    pub gbps: f64,
    /// Lanes: 1, 2, 4, 8 or 12.
    pub width: u8,
}

/// Reads `rate`; `None` for any other text.
#[must_use]
pub fn parse(text: &str) -> Option<Rate> {
    let (gbps, rest) = text.trim().split_once(" Gb/sec (")?;
    let width = rest.split_once('X')?.0;
    Some(Rate { gbps: gbps.parse().ok()?, width: width.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_as_the_kernel_prints_them() {
        assert_eq!(parse("200 Gb/sec (4X HDR)\n"), Some(Rate { gbps: 200.0, width: 4 }));
        assert_eq!(parse("2.5 Gb/sec (1X SDR)"), Some(Rate { gbps: 2.5, width: 1 }));
        assert_eq!(parse("56 Gb/sec (4X FDR)"), Some(Rate { gbps: 56.0, width: 4 }));
        for text in ["", "200", "200 Gb/sec", "x Gb/sec (4X HDR)", "200 Gb/sec (HDR)"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
