//! The registry was reached and refused.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::RegistryUnauthorized,
    title: "the registry was reached and refused",
    looks_like: "`Required action 'read' not found in token permissions`, `unauthorized: authentication required` at a pull.",
    misleads: "The 401 of the anonymous probe is normal, and `failed with an error other than unauthorized` means the opposite.",
    remedy: "Prove it with `az aks check-acr -g GROUP -n CLUSTER --acr REGISTRY`. Give AcrPull to the kubelet identity (ID: `az aks show -g GROUP -n CLUSTER --query identityProfile.kubeletidentity.objectId -o tsv`): `az role assignment create --role AcrPull --assignee-object-id ID --assignee-principal-type ServicePrincipal --scope $(az acr show -n REGISTRY --query id -o tsv)`. With ABAC permissions the role is Container Registry Repository Reader. Or allow anonymous pull: `az acr update -n REGISTRY --anonymous-pull-enabled`.",
    signs: &[
        Sign::new(65, &["failed to fetch anonymous token"]).fair(),
        Sign::new(65, &["401 unauth"]).near(&["/v2/", "azurecr", "pull"]).fair(),
        Sign::new(63, &["required action 'read' not found"]),
        Sign::new(63, &["failed to login to acr"]).fair(),
        Sign::new(64, &["unauthorized: authentication required"]).unless(&[
            "not anonymously reachable",
            "+ [[",
            "== *",
            "unexpected response from acr",
            "output=",
        ]),
        Sign::new(64, &["windows_cse_error_oras_pull_unauthorized"]),
        Sign::new(64, &["failed to validate refresh token permissions"]),
        Sign::new(64, &["failed to authorize", "401"]).fair(),
        Sign::new(64, &["401 unauthorized", "azurecr"]).fair(),
        Sign::new(64, &["unauthorized", "pull"])
            .unless(&["other than unauthorized", "err_oras_pull_unauthorized", "+ [["])
            .fair(),
        Sign::new(64, &["denied: requested access to the resource is denied"]),
        Sign::new(65, &["insufficient_scope"]),
        Sign::new(65, &["pull access denied"]),
        Sign::new(66, &["failed to retrieve refresh token", "401"]).fair(),
        Sign::new(65, &["failed to fetch anonymous token", "401"]),
        Sign::new(65, &["failed to fetch oauth token", "401"]),
        Sign::new(65, &["failed to fetch anonymous token", "403"]).fair(),
        Sign::new(65, &["acrpull"]).fair(),
        Sign::new(65, &["unauthorized: ", "azurecr"]).unless(&[
            "not anonymously reachable",
            "+ [[",
            "== *",
        ]),
        Sign::new(66, &["pull access denied"]),
        Sign::new(66, &["401 unauthorized", "oauth2"]).fair(),
        Sign::new(64, &["[error imagepull]", "403 forbidden"]).fair(),
        Sign::new(64, &["[error imagepull]", "denied"]).fair(),
        Sign::new(64, &["[error imagepull]", "authentication required"]).fair(),
        Sign::new(65, &["the requested url returned error: 401"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "Error response from registry: failed to authorize: unauthorized: authentication required",
    leaves: "failed with an error other than unauthorized, exiting..",
}
