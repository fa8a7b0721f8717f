//! One token bucket, stored as two times.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::later;

/// A rate and a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The time for one token.
    every: Duration,
    pub(crate) burst: u64,
    /// The number of tokens that Azure adds at once; 0 if it adds them steadily.
    step: u64,
}

impl Limit {
    /// A limit of `rate` a second with a burst. 0 counts as 1, because a limit of 0 would block forever.
    pub(crate) fn per_second(rate: u32, burst: u32) -> Self {
        let every = Duration::from_secs(1).div_f64(f64::from(rate.max(1)));
        // Rounded up, so that the sum of many periods does not exceed the rate.
        Self {
            every: every.saturating_add(Duration::from_nanos(1)),
            burst: u64::from(burst.max(1)),
            step: 0,
        }
    }

    /// A bucket of the Compute provider, which gets `refill` tokens once a minute, up to `cap`.
    ///
    /// Azure does not document at which second of the minute. A steady bucket that starts with one refill
    /// less than the cap never exceeds the stepwise one, wherever its steps are.
    pub(crate) fn per_minute(refill: u32, cap: u32) -> Self {
        let every = Duration::from_mins(1) / refill.max(1);
        let burst = u64::from(cap.saturating_sub(refill).max(1));
        Self {
            every: every.saturating_add(Duration::from_nanos(1)),
            burst,
            step: u64::from(refill),
        }
    }

    fn span(self, tokens: u64) -> Duration {
        self.every.saturating_mul(u32::try_from(tokens).unwrap_or(u32::MAX))
    }
}

/// The state of one bucket. It contains as many tokens as periods have passed since it was empty, up to the
/// burst, so the time at which it was empty is enough.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    empty: Timestamp,
    not_before: Timestamp,
    /// Tokens that Azure reported as available, which may be more than this bucket counts.
    spare: u64,
    /// Requests that Azure may not have counted yet.
    under_way: u64,
}

impl Meter {
    pub(crate) fn full(limit: Option<Limit>, now: Timestamp) -> Self {
        let empty = limit.map_or(now, |limit| earlier(now, limit.span(limit.burst)));
        Self { empty, not_before: Timestamp::MIN, spare: 0, under_way: 0 }
    }

    pub(crate) fn ready_at(&self, limit: Option<Limit>, now: Timestamp) -> Timestamp {
        let token = match limit {
            Some(limit) if self.spare == 0 => later(self.empty, limit.every),
            _ => now,
        };
        token.max(self.not_before).max(now)
    }

    pub(crate) fn not_before(&self) -> Timestamp {
        self.not_before
    }

    pub(crate) fn take(&mut self, limit: Option<Limit>, now: Timestamp) {
        self.under_way += 1;
        self.spare = self.spare.saturating_sub(1);
        if let Some(limit) = limit {
            // Tokens above the cap are lost.
            let full = earlier(now, limit.span(limit.burst));
            self.empty = later(self.empty.max(full), limit.every);
        }
    }

    pub(crate) fn give_back(&mut self, limit: Option<Limit>) {
        self.ended();
        if let Some(limit) = limit {
            self.empty = earlier(self.empty, limit.every);
        }
    }

    pub(crate) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Applies the number of tokens that Azure reports; requests in flight may still reduce it.
    ///
    /// If Azure adds tokens in steps, the next step may be a minute away, and tokens that this bucket counts
    /// steadily are not available yet. Of the reported tokens, half may be used at once: other clients read
    /// the same machines.
    pub(crate) fn lower(&mut self, limit: Limit, left: u64, now: Timestamp) {
        let left = left.saturating_sub(self.under_way);
        if limit.step > 0 {
            self.spare = left.div_ceil(2);
        }
        let lowered = later(earlier(now, limit.span(left)), limit.span(limit.step));
        self.empty = self.empty.max(lowered);
    }

    /// Blocks until the given time, and then starts with one token.
    pub(crate) fn stop(&mut self, limit: Option<Limit>, until: Timestamp) {
        self.not_before = self.not_before.max(until);
        self.spare = 0;
        if let Some(limit) = limit {
            self.empty = self.empty.max(earlier(until, limit.every));
        }
    }

    pub(crate) fn set_back(&mut self, by: Duration) {
        self.empty = earlier(self.empty, by);
        self.not_before = earlier(self.not_before, by);
    }

    pub(crate) fn left(&self, limit: Limit, now: Timestamp) -> u64 {
        if self.not_before > now {
            return 0;
        }
        self.counted(limit, now).max(self.spare)
    }

    /// The tokens that arrived since the bucket was empty.
    fn counted(&self, limit: Limit, now: Timestamp) -> u64 {
        let passed = self.empty.duration_until(now).max(SignedDuration::ZERO).unsigned_abs();
        let came = passed.as_nanos() / limit.every.as_nanos().max(1);
        u64::try_from(came).unwrap_or(u64::MAX).min(limit.burst)
    }

    /// Whether dropping the bucket changes nothing. Azure's reported tokens do not matter once the bucket is
    /// full by itself.
    pub(crate) fn is_idle(&self, limit: Option<Limit>, now: Timestamp) -> bool {
        self.under_way == 0
            && self.not_before <= now
            && limit.is_none_or(|limit| self.counted(limit, now) == limit.burst)
    }
}

fn earlier(moment: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    moment.saturating_sub(by).unwrap_or(Timestamp::MIN)
}
