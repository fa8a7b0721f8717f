//! Azure failed; the same request works later.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::PlatformTransient,
    title: "Azure failed; the same request works later",
    looks_like: "`InternalServerError`, `ServiceUnavailable`, `Service returned an error`.",
    misleads: "It says nothing about the node.",
    remedy: "Try again in a few minutes: delete the Machine or NodeClaim and let its controller make a new one. If the message names a resource that is not in Succeeded state, fix that one first. If it stays, look at portal, Service Health, use another zone, and open a support case with the correlation id: `az monitor activity-log list -g NODE_GROUP --status Failed --offset 1h --query \"[].[eventTimestamp, correlationId, operationName.value]\" -o table`.",
    signs: &[
        Sign::new(24, &["notinsucceededstate"]),
        Sign::new(24, &["needs to be in succeeded state"]),
        Sign::new(220, &["internalservererror"]).fair(),
        Sign::new(220, &["serviceunavailable"]).fair(),
        Sign::new(220, &["internalexecutionerror"]).fair(),
        Sign::new(220, &["gatewaytimeout"]).fair(),
        Sign::new(220, &["servertimeout"]).fair(),
        Sign::new(220, &["encountered an internal error"]).fair(),
        Sign::new(220, &["referencedresourcenotprovisioned"]).fair(),
        Sign::new(221, &["networkinginternaloperationerror"]).fair(),
        Sign::new(221, &["is not in succeeded state"]).fair(),
        Sign::new(222, &["a retryable error occurred"]).fair(),
        Sign::new(222, &["502 bad gateway"]).fair(),
        Sign::new(222, &["503 service"]).fair(),
        Sign::new(222, &["status=503"]).fair(),
        Sign::new(222, &["due to an internal error"]).weak(),
        Sign::new(222, &["transient"]).weak(),
        Sign::new(222, &["service returned an error. status=500"]).fair(),
        Sign::new(222, &["an unexpected error occurred"]).weak(),
        Sign::new(222, &["internaloperationerror"]).weak(),
        Sign::new(222, &["please retry later"]).fair(),
        Sign::new(221, &["operation is not allowed", "in progress"]).fair(),
        Sign::new(221, &["another operation", "in progress"]).fair(),
        Sign::new(222, &["operation could not be completed within the specified time"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "Code=\"InternalServerError\" Message=\"The server encountered an internal error. Please retry.\"",
    leaves: "operation Succeeded",
}
