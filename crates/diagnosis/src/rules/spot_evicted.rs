//! Azure evicted the spot VM.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::SpotEvicted,
    title: "Azure evicted the spot VM",
    looks_like: "`\"EventType\": \"Preempt\"` in scheduled events, `The spot VM was evicted`, `VM was preempted`.",
    misleads: "The bootstrap stops in the middle of a step, and the extension reports nothing or a time-out.",
    remedy: "Nothing has to be mended: the next attempt may come up. If it happens often, use more sizes and zones in the pool, or on-demand capacity: in a Karpenter NodePool add `on-demand` to `karpenter.sh/capacity-type`.",
    signs: &[
        Sign::new(15, &["is being evicted"]),
        Sign::new(15, &["preemptscheduled"]),
        Sign::new(15, &["preempt scheduled"]),
        Sign::new(15, &["'eventtype':'preempt'"]),
        Sign::new(15, &["'eventtype': 'preempt'"]),
        Sign::new(15, &["spot", "evicted"]),
        Sign::new(15, &["spot", "eviction"])
            .unless(&["evictionpolicy", "eviction policy", "evictionrate", "eviction rate"])
            .fair(),
        Sign::new(15, &["virtual machine", "evicted"]),
        Sign::new(15, &["vm has been evicted"]),
        Sign::new(15, &["preempt", "scheduled event"]),
        Sign::new(15, &["was preempted"]).unless(&["operation", "request"]),
        Sign::new(15, &["evictspotvm"]),
        Sign::new(15, &["spotinterruption"]),
        Sign::new(15, &["spot interruption"]),
    ],
    subject: None,
};

examples! {
    finds: "{\"EventType\":\"Preempt\",\"ResourceType\":\"VirtualMachine\"}",
    leaves: "operation preempted by a more recent operation",
}
