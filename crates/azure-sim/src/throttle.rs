//! Token buckets: the buckets of the ARM front door refill every second, those of compute every minute. The
//! limits are the documented ones.

use std::collections::BTreeMap;

use http::Method;
use jiff::Timestamp;
use serde_json::json;

use crate::exchange::{Body, Reply};
use crate::route::{Id, Target};

/// A compute policy: its name in headers, and its refill and cap per minute for one resource and
/// for the whole subscription.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    name: &'static str,
    resource: Option<(u32, u32)>,
    subscription: (u32, u32),
}

const LOW_COST_GET: Policy =
    Policy { name: "LowCostGet", resource: Some((12, 36)), subscription: (8_000, 24_000) };
const HIGH_COST_GET: Policy =
    Policy { name: "HighCostGet", resource: None, subscription: (300, 900) };
const PUT_VM: Policy =
    Policy { name: "PutVM", resource: Some((4, 12)), subscription: (500, 1_500) };
const UPDATE_VM: Policy =
    Policy { name: "UpdateVM", resource: Some((4, 12)), subscription: (500, 1_500) };
const DELETE_VM: Policy =
    Policy { name: "DeleteVM", resource: Some((4, 12)), subscription: (500, 1_500) };
const GET_OPERATION: Policy =
    Policy { name: "GetOperation", resource: Some((15, 45)), subscription: (5_000, 15_000) };
const GET_SCALE_SET_VM: Policy =
    Policy { name: "GetVMScaleSetVM", resource: Some((12, 36)), subscription: (2_000, 6_000) };
const HIGH_COST_GET_SCALE_SET: Policy =
    Policy { name: "HighCostGetVMScaleSet", resource: Some((10, 30)), subscription: (360, 1_080) };
const GET_SUBSCRIPTION_INFO: Policy =
    Policy { name: "GetSubscriptionInfo", resource: None, subscription: (120, 360) };

impl Policy {
    /// The compute policy for a call, if there is one.
    pub(crate) fn of(method: &Method, target: &Target) -> Option<Self> {
        let read = method == Method::GET || method == Method::HEAD;
        let in_scale_set = |id: &Id| id.tail.matches('/').count() > 2;
        Some(match target {
            Target::Vm(id) | Target::VmInstanceView(id) if read && in_scale_set(id) => {
                GET_SCALE_SET_VM
            }
            Target::VmInstanceView(_) | Target::BootDiagnostics(_) => LOW_COST_GET,
            Target::Vm(_) if method == Method::DELETE => DELETE_VM,
            Target::Vm(_) | Target::ScaleSet(_) => {
                if read {
                    LOW_COST_GET
                } else {
                    PUT_VM
                }
            }
            Target::Extension(..)
            | Target::Extensions(_)
            | Target::RunCommand(..)
            | Target::RunCommands(_)
            | Target::RunCommandAction(_)
            | Target::Restart(_) => {
                if read {
                    LOW_COST_GET
                } else {
                    UPDATE_VM
                }
            }
            Target::Vms(_) | Target::ScaleSets(_) | Target::ScaleSetVms(_) => HIGH_COST_GET,
            Target::ScaleSetInstanceView(_) => HIGH_COST_GET_SCALE_SET,
            Target::Usages { .. } => GET_SUBSCRIPTION_INFO,
            Target::Operation { .. } => GET_OPERATION,
            Target::Nic(_)
            | Target::Nics(_)
            | Target::PublicIp(_)
            | Target::PublicIps(_)
            | Target::Disk(_)
            | Target::Disks(_)
            | Target::Subnet(_)
            | Target::VirtualNetwork(_)
            | Target::ImageVersions(_)
            | Target::Skus
            | Target::ActivityLog(_)
            | Target::ResourceGraph
            | Target::Machine(_)
            | Target::Machines(_)
            | Target::ResourceGroup(_)
            | Target::Blob(_) => return None,
        })
    }
}

/// The buckets that one request takes tokens from.
#[derive(Debug)]
pub(crate) struct Draw<'a> {
    pub(crate) principal: &'a str,
    pub(crate) subscription: &'a str,
    pub(crate) method: &'a Method,
    /// The key of the resource, for policies that count by resource.
    pub(crate) resource: &'a str,
    pub(crate) policy: Option<Policy>,
    /// Whether the front door counts the request.
    pub(crate) front_door: bool,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Timestamp,
}

/// All buckets. A full bucket is not stored.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    buckets: BTreeMap<String, Bucket>,
}

/// Rate limit headers for the answer, or a 429.
pub(crate) type Verdict = Result<Vec<(&'static str, String)>, Box<Reply>>;

impl Throttle {
    pub(crate) fn draw(&mut self, now: Timestamp, draw: &Draw<'_>) -> Verdict {
        let mut headers = Vec::new();
        if draw.front_door {
            headers.push(self.front_door(now, draw)?);
        }
        if let Some(policy) = draw.policy {
            headers.push(self.compute(now, draw, policy)?);
        }
        Ok(headers)
    }

    fn front_door(
        &mut self,
        now: Timestamp,
        draw: &Draw<'_>,
    ) -> Result<(&'static str, String), Box<Reply>> {
        let (word, header, rate, cap) = if draw.method == Method::DELETE {
            ("delete", "x-ms-ratelimit-remaining-subscription-deletes", 10.0, 200.0)
        } else if draw.method == Method::GET || draw.method == Method::HEAD {
            ("read", "x-ms-ratelimit-remaining-subscription-reads", 25.0, 250.0)
        } else {
            ("write", "x-ms-ratelimit-remaining-subscription-writes", 10.0, 200.0)
        };
        let key = format!("arm/{}/{}/{word}", draw.subscription, draw.principal);
        let bucket = self.bucket(key, now, cap);
        bucket.refill_steadily(now, rate, cap);
        if let Some(left) = bucket.take() {
            return Ok((header, left.to_string()));
        }
        // Calling again too early restarts the wait, as ARM documents.
        bucket.filled = now;
        let message = format!(
            "Number of {word} requests for subscription '{}' exceeded. Please try again after '5' seconds.",
            draw.subscription
        );
        let error =
            json!({ "error": { "code": "SubscriptionRequestsThrottled", "message": message } });
        Err(Box::new(Reply::json(429, error).with("retry-after", "5").with(header, "0")))
    }

    fn compute(
        &mut self,
        now: Timestamp,
        draw: &Draw<'_>,
        policy: Policy,
    ) -> Result<(&'static str, String), Box<Reply>> {
        let mut shown = Vec::new();
        let subscription = (
            format!("{}SubscriptionMaximum", policy.name),
            format!("{}/{}", policy.name, draw.subscription),
            policy.subscription,
        );
        let resource = policy.resource.map(|limits| {
            (
                format!("{}Resource", policy.name),
                format!("{}/{}", policy.name, draw.resource),
                limits,
            )
        });
        for (name, key, (refill, cap)) in std::iter::once(subscription).chain(resource) {
            let bucket = self.bucket(key, now, f64::from(cap));
            bucket.refill_by_the_minute(now, f64::from(refill), f64::from(cap));
            match bucket.take() {
                Some(left) => shown.push(format!("Microsoft.Compute/{name};{left}")),
                None => {
                    return Err(Box::new(compute_refusal(&name, cap, until_next_minute(now))));
                }
            }
        }
        Ok(("x-ms-ratelimit-remaining-resource", shown.join(",")))
    }

    fn bucket(&mut self, key: String, now: Timestamp, cap: f64) -> &mut Bucket {
        self.buckets.entry(key).or_insert(Bucket { tokens: cap, filled: now })
    }
}

/// Seconds until compute's buckets refill.
fn until_next_minute(now: Timestamp) -> u64 {
    60 - now.as_second().rem_euclid(60).unsigned_abs()
}

/// Compute's 429: no outer `error`, and a code that means quota in other answers.
pub(crate) fn compute_refusal(policy: &str, cap: u32, wait: u64) -> Reply {
    let measured = json!({ "operationGroup": policy, "allowedRequestCount": cap, "measuredRequestCount": cap + 1 });
    let body = json!({
        "code": "OperationNotAllowed",
        "message": "The server rejected the request because too many requests have been received for this subscription.",
        "details": [{ "code": "TooManyRequests", "target": policy, "message": measured.to_string() }],
    });
    Reply { status: 429, headers: Vec::new(), body: Body::Json(body) }
        .with("retry-after", wait.to_string())
        .with("x-ms-ratelimit-remaining-resource", format!("Microsoft.Compute/{policy};0"))
}

impl Bucket {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a simulation fit a double")]
    fn refill_steadily(&mut self, now: Timestamp, rate: f64, cap: f64) {
        let seconds = self.filled.duration_until(now).as_millis() as f64 / 1000.0;
        self.tokens = (self.tokens + seconds * rate).min(cap);
        self.filled = now;
    }

    fn refill_by_the_minute(&mut self, now: Timestamp, refill: f64, cap: f64) {
        let minutes = now.as_second() / 60 - self.filled.as_second() / 60;
        if minutes > 0 {
            let minutes = f64::from(i32::try_from(minutes).unwrap_or(i32::MAX));
            self.tokens = (self.tokens + minutes * refill).min(cap);
            self.filled = now;
        }
    }

    /// Takes a token and returns how many are left.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 24,000")]
    fn take(&mut self) -> Option<u32> {
        (self.tokens >= 1.0).then(|| {
            self.tokens -= 1.0;
            self.tokens as u32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    fn start() -> Timestamp {
        "2026-01-27T14:30:00Z".parse().unwrap()
    }

    fn read(policy: Option<Policy>, front_door: bool) -> Draw<'static> {
        Draw {
            principal: "p",
            subscription: "s",
            method: &Method::GET,
            resource: "vm",
            policy,
            front_door,
        }
    }

    #[test]
    fn the_front_door_gives_250_reads_at_once_and_25_a_second() {
        let mut throttle = Throttle::default();
        let mut allowed =
            |now| (0..400).filter(|_| throttle.draw(now, &read(None, true)).is_ok()).count();
        assert_eq!(allowed(start()), 250);
        assert_eq!(allowed(start() + SignedDuration::from_secs(2)), 50);
    }

    #[test]
    fn a_vm_gives_36_reads_at_once_and_12_a_minute() {
        let mut throttle = Throttle::default();
        let policy = Policy::of(
            &Method::GET,
            &Target::Vm(Id::new("s", "g", "Microsoft.Compute/virtualMachines/a")),
        );
        let mut allowed =
            |now| (0..100).filter(|_| throttle.draw(now, &read(policy, false)).is_ok()).count();
        assert_eq!(allowed(start()), 36);
        assert_eq!(allowed(start() + SignedDuration::from_secs(59)), 0);
        assert_eq!(allowed(start() + SignedDuration::from_secs(60)), 12);
    }

    #[test]
    fn a_throttled_call_returns_retry_after() {
        let mut throttle = Throttle::default();
        let refused =
            (0..300).find_map(|_| throttle.draw(start(), &read(None, true)).err()).unwrap();
        assert_eq!(refused.status, 429);
        assert!(refused.headers.contains(&("retry-after", "5".to_owned())));
    }
}
