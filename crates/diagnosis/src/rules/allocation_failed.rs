//! Azure has no capacity for the size here now.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::AllocationFailed,
    title: "Azure has no capacity for the size here now",
    looks_like: "`AllocationFailed`, `ZonalAllocationFailed`, `Overconstrained…`.",
    misleads: "It arrives on the operation, minutes after the request was accepted.",
    remedy: "Capacity shows only by trying: retry later, or give Azure more choice. `az vm list-skus -l REGION --size SIZE --zone -o table` lists the zones that offer the size; allow more zones and sizes in the pool (Karpenter NodePool: `node.kubernetes.io/instance-type`, `topology.kubernetes.io/zone`), or another region. Each constraint less helps, such as a proximity placement group or a dedicated host. For capacity that must always be there, reserve it: portal, Capacity Reservation Groups.",
    signs: &[
        Sign::new(22, &["is not available in the current hardware cluster"]),
        Sign::new(23, &["allocationfailed"]),
        Sign::new(23, &["allocation failed."]),
        Sign::new(23, &["do not have sufficient capacity"]),
        Sign::new(23, &["overconstrained"]),
        Sign::new(23, &["akscapacity"]),
        Sign::new(23, &["cannot be allocated"]),
        Sign::new(24, &["capacity", "not available"]).fair(),
        Sign::new(23, &["insufficient capacity"]),
        Sign::new(23, &["not enough capacity"]),
        Sign::new(23, &["out of capacity"]),
        Sign::new(24, &["capacity constraint"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "Allocation failed. We do not have sufficient capacity for the requested VM size in this region.",
    leaves: "Allocation succeeded",
}
