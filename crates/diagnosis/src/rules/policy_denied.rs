//! Azure Policy or a lock refuses the request.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::PolicyDenied,
    title: "Azure Policy or a lock refuses the request",
    looks_like: "`RequestDisallowedByPolicy`, `ScopeLocked`.",
    misleads: "It is no question of roles.",
    remedy: "The message names the policy or the lock; see which apply with `az policy assignment list -g NODE_GROUP --disable-scope-strict-match -o table` and `az lock list -g NODE_GROUP -o table`. Change the request so that it complies, often a tag, size, region or encryption setting of the node class. Or let the policy's owner, mostly the platform or security team, exempt it: `az policy exemption create -n NAME -a ASSIGNMENT_ID -e Waiver -g NODE_GROUP`, for a lock `az lock delete --ids LOCK_ID`. Portal: Policy > Compliance.",
    signs: &[
        Sign::new(19, &["requestdisallowedby"]),
        Sign::new(19, &["was disallowed by policy"]),
        Sign::new(19, &["scopelocked"]),
        Sign::new(19, &["scope", "is locked"]),
        Sign::new(19, &["disallowed by azure"]),
        Sign::new(19, &["policyviolation"]),
        Sign::new(20, &["readonlydisabledsubscription"]),
        Sign::new(19, &["is locked", "remove lock"]),
        Sign::new(19, &["resource group", "is locked"]),
        Sign::new(19, &["azure-lock-resources"]),
        Sign::new(20, &["remove the lock"]).fair(),
        Sign::new(19, &["denied by policy"]),
        Sign::new(19, &["disallowed by policy"]),
        Sign::new(19, &["policy assignment"]).near(&["disallow", "deny", "denied"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "Resource 'aks-node' was disallowed by policy. Policy identifiers: 'allowed-locations'",
    leaves: "policy evaluation succeeded",
}
