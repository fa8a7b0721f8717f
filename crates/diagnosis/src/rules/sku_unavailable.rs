//! The size is not offered here to this subscription.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::SkuUnavailable,
    title: "the size is not offered here to this subscription",
    looks_like: "`SkuNotAvailable`, `is currently not available in location`.",
    misleads: "It looks like a lack of capacity, and does not pass by itself.",
    remedy: "See the restriction and its zones: `az vm list-skus -l REGION --size SIZE --all --query \"[].[name, restrictions]\" -o json`; waiting does not help. Choose another size, zone or region from what is open: `az vm list-skus -l REGION --resource-type virtualMachines --zone -o table`. `NotAvailableForSubscription` can be lifted by support: portal, Help + support > Create a support request > Service and subscription limits > Compute-VM.",
    signs: &[
        Sign::new(22, &["resource sku with name", "not found in location"]),
        Sign::new(22, &["skunotavailable"]),
        Sign::new(22, &["requested vm size", "not available"]),
        Sign::new(22, &["requested size for resource", "not available"]),
        Sign::new(22, &["unavailableskuinregion"]),
        Sign::new(22, &["is not available in location"]),
        Sign::new(22, &["requested size for", "is currently not available"]).fair(),
        Sign::new(22, &["not available to the current subscription"]),
        Sign::new(22, &["the vm size of", "is not allowed in your subscription"]),
        Sign::new(22, &["is currently not available in l"]),
        Sign::new(22, &["restricted skus"]).fair(),
        Sign::new(23, &["vm size", "is not supported in"]).fair(),
        Sign::new(23, &["is not supported for subscription"]).fair(),
        Sign::new(22, &["availabilityzonenotsupported"]),
        Sign::new(22, &["supported zones for location"]),
        Sign::new(22, &["notavailableforsubscription"]),
        Sign::new(22, &["does not support availability zone"]).fair(),
        Sign::new(22, &["is not available in zone"]).fair(),
        Sign::new(22, &["not available for subscription"]),
    ],
    subject: None,
};

examples! {
    finds: "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: Standard_D32s_v5' is currently not available in location 'southcentralus'.",
    leaves: "Standard_D32s_v5 available in zones 1, 2, 3",
}
