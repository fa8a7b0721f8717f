//! ARM refuses because of too many requests, or a newer operation won.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ArmThrottled,
    title: "ARM refuses because of too many requests, or a newer operation won",
    looks_like: "`TooManyRequests`, `SubscriptionRequestsThrottled`, `OperationPreempted`.",
    misleads: "Compute's 429 carries the code OperationNotAllowed, which elsewhere means quota.",
    remedy: "Wait as long as Retry-After says, then start fewer nodes at once. Limits count per identity and subscription, so find who else calls: `az monitor activity-log list -g NODE_GROUP --offset 1h --max-events 1000 --query \"[].caller\" -o tsv | sort | uniq -c` counts the writes of each caller (reads do not show). Slow the busiest one down or give it an identity of its own. `OperationPreempted` is no throttling: find the second controller that changes the same resource.",
    signs: &[
        Sign::new(107, &["toomanyrequests"]),
        Sign::new(107, &["too many requests"]),
        Sign::new(107, &["requeststhrottled"]),
        Sign::new(107, &["operationpreempted"]),
        Sign::new(107, &["preempted by a more recent operation"]),
        Sign::new(107, &["statuscode=429"]),
        Sign::new(107, &["status=429"]),
        Sign::new(107, &["httpstatuscode: 429"]),
        Sign::new(107, &["response 429"]),
        Sign::new(107, &["supersededduetoanotheroperation"]),
        Sign::new(107, &["anotheroperationinprogress"]),
        Sign::new(108, &["retryableerror"]).fair(),
        Sign::new(108, &["client application has been throttled"]),
        Sign::new(108, &["number of", "requests for subscription", "exceeded"]),
        Sign::new(108, &["number of write requests"]).fair(),
        Sign::new(108, &["throttled"]).fair(),
        Sign::new(108, &["retry-after", "429"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "{\"code\":\"OperationNotAllowed\",\"details\":[{\"code\":\"TooManyRequests\",\"target\":\"LowCostGetResource\"}]}",
    leaves: "x-ms-ratelimit-remaining-subscription-reads: 249",
}
