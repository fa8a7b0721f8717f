//! The bootstrap ran out of time.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::TimeBudgetExhausted,
    title: "the bootstrap ran out of time",
    looks_like: "`CSE timeout approaching, exiting early.`, `Operation budget of`, exit 124.",
    misleads: "The code is that of the step that was running when time was up.",
    remedy: "Look at the step before it: what was slow is the cause, not the limit. On the node, `grep -nE \"logs_to_events|giving up|timed out\" /var/log/azure/cluster-provision.log` shows the steps, `cloud-init analyze blame` and `systemd-analyze blame` the times. Fix what was slow: DNS, egress, a package mirror or a package lock, seldom the disk. `bringup diagnose cluster-provision.log` reads the log for you; then replace the node.",
    signs: &[
        Sign::new(210, &["cse timeout approaching"]).fair(),
        Sign::new(210, &["exceeding the limit of 780 seconds"]).fair(),
        Sign::new(210, &["operation budget of"]).fair(),
        Sign::new(210, &["no cse time remaining"]).fair(),
        Sign::new(211, &["total timeout", "reached"]).fair(),
        Sign::new(212, &["timed out waiting for the condition"]).weak(),
        Sign::new(212, &["context deadline exceeded"]).weak(),
        Sign::new(211, &["timed out after 900"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "CSE timeout approaching, exiting early.",
    leaves: "+ timeout 60 curl -fsSLv https://packages.example.com",
}
