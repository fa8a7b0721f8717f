//! Time, as an argument: everything in this crate that waits, waits on a [`Clock`].

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

/// Says what time it is, and waits.
#[async_trait]
pub trait Clock: Send + Sync + fmt::Debug {
    /// The present moment.
    fn now(&self) -> Timestamp;

    /// Waits until `moment` has come. Dropped, it has had no effect.
    async fn reach(&self, moment: Timestamp);
}

/// The clock on the wall.
#[derive(Debug, Clone, Copy, Default)]
pub struct WallClock;

/// The wall clock can be set during a wait. A wait then lasts at most this much too long.
const LONGEST_NAP: Duration = Duration::from_mins(1);

#[async_trait]
impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn reach(&self, moment: Timestamp) {
        loop {
            let missing = self.now().duration_until(moment);
            if missing <= SignedDuration::ZERO {
                return;
            }
            tokio::time::sleep(missing.unsigned_abs().min(LONGEST_NAP)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_moment_that_has_passed_is_reached_at_once() {
        WallClock.reach(Timestamp::UNIX_EPOCH).await;
    }
}
