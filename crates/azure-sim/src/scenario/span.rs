//! A simulated duration in the form `90s`, `15m`, `1h 30m`.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration that is never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span(pub Duration);

impl Span {
    /// This many whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// This many whole minutes.
    pub const fn minutes(minutes: u64) -> Self {
        Self(Duration::from_secs(minutes * 60))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse::<SignedDuration>()
            .ok()
            .and_then(|span| Duration::try_from(span).ok())
            .map(Self)
            .ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "`{text}` is not a length of time: expected one such as 90s, 15m or 1h 30m"
                ))
            })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = SignedDuration::try_from(self.0).unwrap_or(SignedDuration::MAX);
        write!(formatter, "{span:#}")
    }
}
