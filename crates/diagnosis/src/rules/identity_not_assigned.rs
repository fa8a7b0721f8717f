//! The managed identity that the node wants to use is not on the VM.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::IdentityNotAssigned,
    title: "the managed identity that the node wants to use is not on the VM",
    looks_like: "IMDS answers 400 `Identity not found`.",
    misleads: "212 reads \"unauthorized\": the registry was never asked.",
    remedy: "Compare what the node asks for, `az aks show -g GROUP -n CLUSTER --query identityProfile.kubeletidentity`, with what the VM has, `az vm identity show -g NODE_GROUP -n VM` (scale set: `az vmss identity show`). Assign it with `az vm identity assign -g NODE_GROUP -n VM --identities IDENTITY_ID` (scale set: `az vmss identity assign`), or correct the client id in the node class. Fix the template too, or the next node lacks it again.",
    signs: &[
        Sign::new(20, &["identity not found"]),
        Sign::new(39, &["http/1.1 400 bad request"]).near(&["ret_code: 212", "oauth2/token"]),
        Sign::new(39, &["identity_not_found"]),
        Sign::new(39, &["no managed identity endpoint found"]),
        Sign::new(39, &["multiple user assigned identities exist"]),
        Sign::new(40, &["managed identity", "not assigned"]),
        Sign::new(40, &["failed to acquire token", "400"]).fair(),
        Sign::new(39, &["assigned to the vm", "identity"]).fair(),
        Sign::new(39, &["the requested identity isn't assigned to this resource"]),
        Sign::new(41, &["managed identity", "does not exist"]).fair(),
        Sign::new(39, &["no default identity is assigned"]),
        Sign::new(40, &["identity", "is not assigned"]).fair(),
        Sign::new(39, &["no user assigned or delegated managed identity found"]),
        Sign::new(40, &["managedidentitycredential", "unavailable"]).fair(),
        Sign::new(40, &["identity is not assigned"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "adal: Refresh request failed. Status Code = '400'. Response body: {\"error\":\"invalid_request\",\"error_description\":\"Identity not found\"}",
    leaves: "successfully obtained acr refresh tokens with endpoint: https://management.azure.com/",
}
