//! The simulated clock. The state machine never reads it: every call passes the current moment.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

/// How simulated time moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Only when a test or a client of the control endpoint advances it.
    Manual,
    /// With the wall clock, plus all jumps.
    Real,
    /// This many times faster than the wall clock.
    Times(f64),
}

/// A `--clock` value that is none of `manual`, `real`, `xN`.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a clock: expected manual, real, or xN with N above 0, such as x60")]
pub struct UnknownPace(String);

impl FromStr for Pace {
    type Err = UnknownPace;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "manual" => Ok(Self::Manual),
            "real" => Ok(Self::Real),
            _ => text
                .strip_prefix('x')
                .and_then(|factor| factor.parse().ok())
                .filter(|factor: &f64| factor.is_finite() && *factor > 0.0)
                .map(Self::Times)
                .ok_or_else(|| UnknownPace(text.to_owned())),
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manual => formatter.write_str("manual"),
            Self::Real => formatter.write_str("real"),
            Self::Times(factor) => write!(formatter, "x{factor}"),
        }
    }
}

/// Simulated time: a start, a pace, and the sum of all jumps.
///
/// # Guarantees
/// `now` never goes back, whatever the pace.
#[derive(Debug)]
pub struct Clock {
    pace: Pace,
    start: Timestamp,
    began: Instant,
    jumped: Mutex<SignedDuration>,
    moved: Notify,
}

impl Clock {
    /// A clock that shows `start` now.
    pub fn new(pace: Pace, start: Timestamp) -> Self {
        Self {
            pace,
            start,
            began: Instant::now(),
            jumped: Mutex::new(SignedDuration::ZERO),
            moved: Notify::new(),
        }
    }

    /// How fast this clock moves.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The current moment in whole milliseconds, the resolution of ARM's timestamps.
    pub fn now(&self) -> Timestamp {
        let ran = self.began.elapsed();
        let ran = match self.pace {
            Pace::Manual => Duration::ZERO,
            Pace::Real => ran,
            Pace::Times(factor) => ran.mul_f64(factor),
        };
        let passed = SignedDuration::try_from(ran).unwrap_or(SignedDuration::MAX);
        let moment = self
            .start
            .saturating_add(passed.saturating_add(self.jumped()))
            .unwrap_or(Timestamp::MAX);
        Timestamp::from_millisecond(moment.as_millisecond()).unwrap_or(moment)
    }

    /// The sum of all jumps. A program under test that follows this clock adds it to the wall time.
    pub fn jumped(&self) -> SignedDuration {
        *self.jumped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Jumps forward and returns the new time.
    pub fn advance(&self, by: Duration) -> Timestamp {
        {
            let mut jumped = self.jumped.lock().unwrap_or_else(PoisonError::into_inner);
            *jumped =
                jumped.saturating_add(SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX));
        }
        self.moved.notify_waiters();
        self.now()
    }

    /// Waits until the clock reaches `moment`, by jumps or by itself.
    pub async fn reach(&self, moment: Timestamp) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // Registered before the clock is read, so that no jump in between is missed.
            moved.as_mut().enable();
            let missing = self.now().duration_until(moment);
            if missing <= SignedDuration::ZERO {
                return;
            }
            let missing = missing.unsigned_abs();
            match self.pace {
                Pace::Manual => moved.await,
                Pace::Real => drop(tokio::time::timeout(missing, moved).await),
                Pace::Times(factor) => {
                    drop(tokio::time::timeout(missing.div_f64(factor), moved).await);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Timestamp {
        "2026-01-27T14:30:00Z".parse().unwrap()
    }

    #[test]
    fn a_manual_clock_moves_only_when_advanced() {
        let clock = Clock::new(Pace::Manual, start());
        assert_eq!(clock.now(), start());
        clock.advance(Duration::from_mins(15));
        assert_eq!(clock.now(), start() + SignedDuration::from_mins(15));
    }

    #[test]
    fn a_pace_parses_what_it_displays() {
        for text in ["manual", "real", "x60", "x0.5"] {
            assert_eq!(text.parse::<Pace>().unwrap().to_string(), text);
        }
        for text in ["", "x", "x0", "x-1", "xNaN", "fast"] {
            let refused = text.parse::<Pace>().unwrap_err().to_string();
            assert!(refused.contains("expected manual, real, or xN"), "{refused}");
        }
    }

    #[tokio::test]
    async fn waiting_ends_when_the_clock_jumps_past_the_moment() {
        let clock = std::sync::Arc::new(Clock::new(Pace::Manual, start()));
        let waiter = tokio::spawn({
            let clock = clock.clone();
            async move { clock.reach(start() + SignedDuration::from_secs(10)).await }
        });
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(10));
        waiter.await.unwrap();
    }
}
