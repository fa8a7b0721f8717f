//! Times and pauses that cannot panic; see [`bringup_contract::bounds`].

use std::time::Duration;

use bringup_contract::bounds::{self, TimeMath as _};
use jiff::{SignedDuration, Timestamp};

/// The longest pause that bringup accepts from Azure.
pub const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(1);

/// The time after a pause, at most the last one that can be represented.
pub fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.plus(by)
}

/// The pause in `Retry-After`, limited to [`LONGEST_PAUSE`].
pub fn pause(asked: Option<Duration>) -> Option<SignedDuration> {
    asked.map(|wait| SignedDuration::try_from(bounds::wait(wait)).unwrap_or(LONGEST_PAUSE))
}
