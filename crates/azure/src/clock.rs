//! Time as an argument: all waits in this crate use a [`Clock`].

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

/// A source of the present time, and of waits.
#[async_trait]
pub trait Clock: Send + Sync + fmt::Debug {
    /// The present time.
    fn now(&self) -> Timestamp;

    /// Waits until `moment`. Dropping the future has no effect.
    async fn reach(&self, moment: Timestamp);
}

/// The wall clock of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct WallClock;

/// The wall clock can be set back during a wait. Then the wait lasts at most this much too long.
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
