//! Who is master, and how soon another takes over.
//!
//! In: a manager's place in the spec. Out: its priority and polling times.
//! Values only; nothing here talks to a manager.
//!
//! The master is the manager with the highest priority, and of equal ones that
//! with the lowest port GUID (IBA 1.4 volume 1, 14.4.1). GUIDs say nothing
//! about what an administrator wants, so priorities are always distinct.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use thiserror::Error;

/// Four bits of `SMInfo:Priority`, 15 the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Priority(u8);

/// Why there is no such priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PriorityError {
    /// Outside the four bits of SMInfo.
    #[error("subnet manager priority {0} is not within 0 to 15")]
    OutOfRange(u8),
    /// More managers than distinct priorities.
    #[error("manager {place} of the fabric has no priority left: {most} managers at most", most = Priority::MOST_MANAGERS)]
    TooMany {
        /// Place in the spec, the primary being 0.
        place: usize,
    },
}

impl Priority {
    /// What the primary gets. 15, the top, is left free: a site that must put a
    /// stand-in manager above the primary for a while, such as one embedded in a
    /// switch, needs room there that no rendered file takes.
    pub const PRIMARY: Self = Self(14);

    /// Distinct priorities from [`Self::PRIMARY`] down to 1. 0 is what an opensm
    /// that nobody configured has, and it must never tie with a standby.
    pub const MOST_MANAGERS: usize = 14;

    /// A priority as SMInfo carries it.
    ///
    /// # Errors
    /// [`PriorityError::OutOfRange`] above 15.
    pub fn new(value: u8) -> Result<Self, PriorityError> {
        if value > 15 { Err(PriorityError::OutOfRange(value)) } else { Ok(Self(value)) }
    }

    /// The priority of a manager by its place in the spec: 0 is the primary,
    /// 1 the first standby.
    ///
    /// # Errors
    /// [`PriorityError::TooMany`] from place 14 on.
    pub fn of_place(place: usize) -> Result<Self, PriorityError> {
        match u8::try_from(place) {
            Ok(n) if place < Self::MOST_MANAGERS => Ok(Self(Self::PRIMARY.0 - n)),
            _ => Err(PriorityError::TooMany { place }),
        }
    }

    /// The four bits of SMInfo; what is above them is cut off.
    #[must_use]
    pub fn from_nibble(bits: u8) -> Self {
        Self(bits & 0x0f)
    }

    /// As a number.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a standby notices that its master is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailoverTiming {
    /// `sminfo_polling_timeout`: between two polls of the master, milliseconds.
    pub polling_timeout_ms: u32,
    /// `polling_retry_number`: unanswered polls before the master counts as dead.
    pub polling_retries: u32,
}

impl Default for FailoverTiming {
    /// A takeover after 4 to 5 seconds. opensm's own default, 10 s and 4, leaves
    /// the fabric without a manager for a minute: longer than the retries of most
    /// RDMA connections. Much shorter and a master busy with a heavy sweep of a
    /// large fabric is taken for dead.
    fn default() -> Self {
        Self { polling_timeout_ms: 1000, polling_retries: 3 }
    }
}

impl FailoverTiming {
    /// The soonest and the latest that a standby takes over after its master
    /// died: one to two polls beyond the retries, measured on opensm 3.3.23.
    #[must_use]
    pub fn takeover(self) -> (Duration, Duration) {
        let poll = Duration::from_millis(u64::from(self.polling_timeout_ms));
        let retries = self.polling_retries;
        (poll * retries.saturating_add(1), poll * retries.saturating_add(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_distinct_and_leave_the_top_and_zero_free() {
        let all: Vec<u8> = (0..Priority::MOST_MANAGERS).map(|n| Priority::of_place(n).unwrap().get()).collect();
        assert_eq!(all, (1..=14).rev().collect::<Vec<u8>>());
        assert_eq!(Priority::of_place(14), Err(PriorityError::TooMany { place: 14 }));
        assert_eq!(Priority::new(16), Err(PriorityError::OutOfRange(16)));
    }

    #[test]
    fn the_default_takes_over_in_about_five_seconds() {
        let (soonest, latest) = FailoverTiming::default().takeover();
        assert_eq!((soonest.as_secs(), latest.as_secs()), (4, 5));
    }
}
