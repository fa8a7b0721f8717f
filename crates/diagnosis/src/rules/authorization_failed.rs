//! The caller lacks an Azure role.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::AuthorizationFailed,
    title: "the caller lacks an Azure role",
    looks_like: "`AuthorizationFailed`, `LinkedAuthorizationFailed`, a 403 for a storage blob.",
    misleads: "A 404 before it is only the anonymous attempt.",
    remedy: "The line names the identity, the action and the scope. See what the identity has: `az role assignment list --assignee PRINCIPAL_ID --scope SCOPE --include-inherited -o table`. Give it a role with that action: `az role assignment create --assignee-object-id PRINCIPAL_ID --assignee-principal-type ServicePrincipal --role ROLE --scope SCOPE`, or portal, the resource > Access control (IAM). Only an Owner or User Access Administrator of the scope can; a new assignment takes up to 10 minutes to work.",
    signs: &[
        Sign::new(21, &["does not have authorization to perform action"]),
        Sign::new(21, &["linkedauthorizationfailed"]),
        Sign::new(21, &["authorizationfailed"]),
        Sign::new(21, &["authorizationpermissionmismatch"]),
        Sign::new(22, &["actual=403 expected=200"]),
        Sign::new(22, &["does not have permission to perform action"]),
        Sign::new(22, &["does not have secrets get permission"]),
        Sign::new(23, &["invalidauthenticationtoken"]).fair(),
        Sign::new(22, &["aadsts"]).fair(),
        Sign::new(23, &["authorization_requestdenied"]),
    ],
    subject: None,
};

examples! {
    finds: "The client 'x' with object id 'x' does not have authorization to perform action 'Microsoft.Compute/virtualMachines/write' over scope '/subscriptions/s'",
    leaves: "HTTP 200: authorization succeeded",
}
