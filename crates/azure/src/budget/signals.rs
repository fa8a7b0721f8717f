//! The information about limits in a response.

use std::time::Duration;

use azure_core::http::headers::{HeaderName, Headers};
use bringup_contract::bounds;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::error::ArmFailure;

use super::Door;

/// The layer that throttled a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Throttling {
    /// The front door: all requests of the subscription that go through the same door.
    Door,
    /// A provider, by a policy with this name.
    Policy(String),
    /// A provider, without a known policy.
    Provider,
}

/// The information about limits in a response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signals {
    /// The remaining requests of the front door for this subscription.
    pub door: Option<u64>,
    /// The remaining requests of policies, by name without the provider's.
    pub remaining: Vec<(String, u64)>,
    /// The layer that throttled the request; absent: it was not throttled.
    pub throttled: Option<Throttling>,
    /// How long to wait before the next request.
    pub retry_after: Option<Duration>,
}

impl Signals {
    /// Parses the headers of a response, and its failure if it has one.
    pub fn read(
        status: u16,
        headers: &Headers,
        failure: Option<&ArmFailure>,
        door: Door,
        now: Timestamp,
    ) -> Self {
        let header = |name| headers.get_optional_str(&HeaderName::from_static(name));
        let remaining: Vec<_> =
            header("x-ms-ratelimit-remaining-resource").map(policies).unwrap_or_default();
        let throttled = (status == 429).then(|| {
            let gateway = header("x-ms-failure-cause").is_some_and(|cause| cause == "gateway");
            throttling(failure, &remaining, gateway)
        });
        Self {
            door: header(match door {
                Door::Reads => "x-ms-ratelimit-remaining-subscription-reads",
                Door::Writes => "x-ms-ratelimit-remaining-subscription-writes",
                Door::Deletes => "x-ms-ratelimit-remaining-subscription-deletes",
            })
            .and_then(|left| left.trim().parse().ok()),
            remaining,
            throttled,
            retry_after: header("retry-after").and_then(|value| retry_after(value, now)),
        }
    }
}

/// Parses a header such as `Microsoft.Compute/LowCostGetResource;34,…`
fn policies(header: &str) -> Vec<(String, u64)> {
    header
        .split(',')
        .filter_map(|policy| {
            let (name, left) = policy.trim().split_once(';')?;
            let name = name.rsplit('/').next().unwrap_or(name);
            Some((name.to_owned(), left.trim().parse().ok()?))
        })
        .collect()
}

fn throttling(
    failure: Option<&ArmFailure>,
    remaining: &[(String, u64)],
    gateway: bool,
) -> Throttling {
    let code = failure.and_then(|failure| failure.code.as_deref());
    // `SubscriptionRequestsThrottled`, `TenantRequestsThrottled`, …
    if gateway || code.is_some_and(|code| code.ends_with("RequestsThrottled")) {
        return Throttling::Door;
    }
    let named = failure
        .into_iter()
        .flat_map(ArmFailure::chain)
        .filter(|failure| failure.code.as_deref() == Some("TooManyRequests"))
        .find_map(|failure| failure.target.clone());
    let exhausted = || remaining.iter().find(|(_, left)| *left == 0).map(|(name, _)| name.clone());
    match named.or_else(exhausted) {
        Some(policy) => Throttling::Policy(policy),
        // A proxy or the front door throttles: stop all calls to this door.
        None if code.is_none() => Throttling::Door,
        None => Throttling::Provider,
    }
}

/// Parses `Retry-After`, in seconds or as a date, and limits it to the longest wait that is accepted.
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(bounds::wait(Duration::from_secs(seconds)));
    }
    let at = DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(bounds::wait(Duration::try_from(now.duration_until(at)).unwrap_or(Duration::ZERO)))
}
