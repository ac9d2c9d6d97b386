//! Times and bandwidths as people write them: `5us`, `92%`, `23 GB/s`.
//!
//! Text comes in, numbers in one unit go out. Bytes and bits are never mixed
//! up: `B` is bytes, `b` is bits, and each prefix is a power of ten.

use std::time::Duration;

use thiserror::Error;

use super::model::MinBandwidth;

/// What `max-latency` is when the spec does not say: a RDMA READ on one switch takes 4.5 to 5 us with margin.
pub const DEFAULT_LATENCY: Duration = Duration::from_micros(5);

/// Why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// No number to start with.
    #[error("it starts with a number")]
    NoNumber,
    /// A number and nothing more.
    #[error("it has no unit")]
    NoUnit,
    /// An unknown unit.
    #[error("its unit is not known")]
    UnknownUnit,
    /// Zero.
    #[error("it is more than zero")]
    Zero,
    /// More than 100 %.
    #[error("it is at most 100%")]
    AboveAll,
    /// More than the type holds.
    #[error("it is too much")]
    TooMuch,
}

/// Reads `500ns`, `5us`, `2.5us`, `1ms`, `2s`.
///
/// # Errors
/// When it is not such a text, zero, or over a day.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "" => return Err(QuantityError::NoUnit),
        "ns" => number * 1e-9,
        "us" => number * 1e-6,
        "ms" => number * 1e-3,
        "s" => number,
        _ => return Err(QuantityError::UnknownUnit),
    };
    if seconds > 86_400.0 {
        return Err(QuantityError::TooMuch);
    }
    // A float of seconds is not exact to the nanosecond: round, so that `5us` is 5000 ns.
    let nanoseconds = (seconds * 1e9).round();
    if nanoseconds < 1.0 {
        return Err(QuantityError::Zero);
    }
    Ok(Duration::from_nanos(whole(nanoseconds)))
}

/// Reads `92%`, `23 GB/s` and `200 Gb/s`.
///
/// # Errors
/// When it is not such a text, zero, or above 100 %.
pub fn bandwidth(text: &str) -> Result<MinBandwidth, QuantityError> {
    let (number, unit) = split(text)?;
    if number <= 0.0 {
        return Err(QuantityError::Zero);
    }
    let bytes_per_second = match unit {
        "" => return Err(QuantityError::NoUnit),
        "%" if number > 100.0 => return Err(QuantityError::AboveAll),
        "%" => return Ok(MinBandwidth::Percent(number)),
        "kB/s" => number * 1e3,
        "MB/s" => number * 1e6,
        "GB/s" => number * 1e9,
        "TB/s" => number * 1e12,
        "Mb/s" => number * 1e6 / 8.0,
        "Gb/s" => number * 1e9 / 8.0,
        "Tb/s" => number * 1e12 / 8.0,
        _ => return Err(QuantityError::UnknownUnit),
    };
    Ok(MinBandwidth::BytesPerSecond(bytes_per_second))
}

/// A number of up to 15 digits, a space or none, and the rest.
fn split(text: &str) -> Result<(f64, &str), QuantityError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end).ok_or(QuantityError::NoNumber)?;
    if !number.starts_with(|c: char| c.is_ascii_digit()) || number.ends_with('.') {
        return Err(QuantityError::NoNumber);
    }
    if number.len() > 16 {
        return Err(QuantityError::TooMuch);
    }
    let number = number.parse().map_err(|_| QuantityError::NoNumber)?;
    Ok((number, unit.strip_prefix(' ').unwrap_or(unit)))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 8.64e13, seen just before")]
fn whole(nanoseconds: f64) -> u64 {
    nanoseconds as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(duration("5us"), Ok(Duration::from_micros(5)));
        assert_eq!(duration("2.5 us"), Ok(Duration::from_nanos(2500)));
        assert_eq!(duration("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(duration("5"), Err(QuantityError::NoUnit));
        assert_eq!(duration("5 m"), Err(QuantityError::UnknownUnit));
        assert_eq!(duration("-5us"), Err(QuantityError::NoNumber));
        assert_eq!(duration("0us"), Err(QuantityError::Zero));
        assert_eq!(duration("9999999s"), Err(QuantityError::TooMuch));
        assert_eq!(duration("5.us"), Err(QuantityError::NoNumber));
        assert_eq!(duration("1.2.3us"), Err(QuantityError::NoNumber));
    }

    #[test]
    fn bytes_are_not_bits() {
        assert_eq!(bandwidth("92%"), Ok(MinBandwidth::Percent(92.0)));
        assert_eq!(bandwidth("23 GB/s"), Ok(MinBandwidth::BytesPerSecond(23e9)));
        assert_eq!(bandwidth("200Gb/s"), Ok(MinBandwidth::BytesPerSecond(25e9)));
        assert_eq!(bandwidth("23 GiB/s"), Err(QuantityError::UnknownUnit));
        assert_eq!(bandwidth("23 gb/s"), Err(QuantityError::UnknownUnit));
        assert_eq!(bandwidth("101%"), Err(QuantityError::AboveAll));
        assert_eq!(bandwidth("0%"), Err(QuantityError::Zero));
        assert_eq!(bandwidth("23"), Err(QuantityError::NoUnit));
    }
}
