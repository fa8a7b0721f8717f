//! Moments and pauses as flex needs them; how they are kept from panicking is said in
//! [`bringup_contract::bounds`].

use std::time::Duration;

use bringup_contract::bounds::{self, TimeMath as _};
use jiff::{SignedDuration, Timestamp};

/// The longest pause that Azure can ask for.
pub const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(1);

/// A moment so much later; at most the last one that there is.
pub fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.plus(by)
}

/// A pause that Azure asks for, at most the longest.
pub fn pause(asked: Option<Duration>) -> Option<SignedDuration> {
    asked.map(|wait| SignedDuration::try_from(bounds::wait(wait)).unwrap_or(LONGEST_PAUSE))
}
