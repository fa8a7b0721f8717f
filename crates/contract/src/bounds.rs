//! Bounds for times and durations from outside: Azure, Kubernetes objects, files of a node.
//!
//! A timestamp from outside may be as late as `9999-12-30T22:00:00Z`, and adding to such a timestamp with `+`
//! panics. So every time from outside passes through [`time`] or [`wait`], and [`TimeMath`] does the
//! arithmetic: its results are limited to the first and last possible moment. A lint
//! (`clippy::arithmetic_side_effects`) forbids `+` and `-` on times in every crate that handles them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The earliest accepted time: 2000-01-01.
const FIRST: Timestamp = Timestamp::constant(946_684_800, 0);
/// The latest accepted time: 2200-01-01.
const LAST: Timestamp = Timestamp::constant(7_258_118_400, 0);
/// The longest wait that an external system can request.
pub const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Limits a time from outside to the years 2000 to 2200.
#[must_use]
pub fn time(at: Timestamp) -> Timestamp {
    at.clamp(FIRST, LAST)
}

/// Limits a wait that an external system requests to [`LONGEST_WAIT`].
#[must_use]
pub fn wait(asked: Duration) -> Duration {
    asked.min(LONGEST_WAIT)
}

/// Arithmetic on times that never panics: results are limited to the first and last possible moment.
pub trait TimeMath {
    /// The time plus a duration.
    #[must_use]
    fn plus(self, by: SignedDuration) -> Self;
    /// The time minus a duration.
    #[must_use]
    fn minus(self, by: SignedDuration) -> Self;
}

impl TimeMath for Timestamp {
    fn plus(self, by: SignedDuration) -> Self {
        let end = if by.is_negative() { Self::MIN } else { Self::MAX };
        self.checked_add(by).unwrap_or(end)
    }

    fn minus(self, by: SignedDuration) -> Self {
        let end = if by.is_negative() { Self::MAX } else { Self::MIN };
        self.checked_sub(by).unwrap_or(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_at_the_ends_of_time() {
        let (day, ever) = (SignedDuration::from_hours(24), SignedDuration::MAX);
        assert_eq!(Timestamp::MAX.plus(day), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.minus(day), Timestamp::MIN);
        assert_eq!(Timestamp::UNIX_EPOCH.plus(ever), Timestamp::MAX);
        assert_eq!(Timestamp::UNIX_EPOCH.minus(ever), Timestamp::MIN);
        assert_eq!(Timestamp::UNIX_EPOCH.plus(SignedDuration::MIN), Timestamp::MIN);
        assert_eq!(Timestamp::UNIX_EPOCH.minus(SignedDuration::MIN), Timestamp::MAX);
        assert_eq!(Timestamp::UNIX_EPOCH.plus(day).minus(day), Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn a_time_from_outside_is_one_that_can_be() {
        let far: Timestamp = "9999-12-30T22:00:00Z".parse().unwrap();
        let now: Timestamp = "2026-01-27T14:30:02Z".parse().unwrap();
        assert_eq!(time(far).to_string(), "2200-01-01T00:00:00Z");
        assert_eq!(time(Timestamp::MIN).to_string(), "2000-01-01T00:00:00Z");
        assert_eq!(time(now), now);
        assert_eq!(wait(Duration::from_secs(999_999_999_999)), LONGEST_WAIT);
        assert_eq!(wait(Duration::from_secs(7)), Duration::from_secs(7));
    }
}
