//! The gate for times and durations from outside: Azure, Kubernetes objects, files of a node.
//!
//! A timestamp may be any that can be written, `9999-12-30T22:00:00Z` among them, and `+` on such a
//! one panics. So every time that enters goes through [`time`] or [`wait`], and what is added to it is
//! added by [`TimeMath`], which stops at the first and last moment there is. `+` and `-` on times are
//! refused by a lint (`clippy::arithmetic_side_effects`) in every crate that handles them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The first moment that is believed: 2000-01-01.
const FIRST: Timestamp = Timestamp::constant(946_684_800, 0);
/// The last one: 2200-01-01.
const LAST: Timestamp = Timestamp::constant(7_258_118_400, 0);
/// The longest wait that another party can ask for.
pub const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// A time from outside, between the years 2000 and 2200.
#[must_use]
pub fn time(at: Timestamp) -> Timestamp {
    at.clamp(FIRST, LAST)
}

/// A wait that another party asks for, of at most [`LONGEST_WAIT`].
#[must_use]
pub fn wait(asked: Duration) -> Duration {
    asked.min(LONGEST_WAIT)
}

/// Sums of times that never panic: they stop at the first and the last moment there is.
pub trait TimeMath {
    /// So much later.
    #[must_use]
    fn plus(self, by: SignedDuration) -> Self;
    /// So much earlier.
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
