//! A quota of the subscription is used up.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::QuotaExceeded,
    title: "a quota of the subscription is used up",
    looks_like: "`exceeding approved .. Cores quota`, `QuotaExceeded`.",
    misleads: "`OperationNotAllowed` is also the code of throttling and of much else.",
    remedy: "See it with `az vm list-usage -l REGION -o table`: row FAMILY (USAGE of LIMIT cores when Azure refused). Raise it in the portal, Quotas > Compute > Request increase; small increases are often granted in minutes, and the total of the region and spot cores have quotas of their own. Or free cores: delete VMs that are not needed, deallocated ones count too. Or use another family or region in the node pool.",
    signs: &[
        Sign::new(20, &["exceeding approved", "quota"]),
        Sign::new(20, &["exceeding quota limit"]),
        Sign::new(20, &["quotaexceeded"]),
        Sign::new(20, &["insufficientvcpuquota"]),
        Sign::new(20, &["insufficient vcpu quota"]),
        Sign::new(20, &["insufficient", "quota"]).fair(),
        Sign::new(20, &["quota limit", "exceed"]),
        Sign::new(20, &["countlimitreached"]),
        Sign::new(21, &["cores quota"]).fair(),
        Sign::new(20, &["(minimum) new limit required"]),
        Sign::new(20, &["exceeds", "quota"]).fair(),
        Sign::new(20, &["quota", "has been reached"]).fair(),
        Sign::new(20, &["cannot create more than", "for this subscription"]),
        Sign::new(20, &["exceeded quota"]),
        Sign::new(20, &["quota", "not enough"]).fair(),
        Sign::new(20, &["maximum number of", "has been reached"]).fair(),
        Sign::new(20, &["limitexceeded"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "Operation could not be completed as it results in exceeding approved standardDSv5Family Cores quota.",
    leaves: "Additional quota was approved",
}
