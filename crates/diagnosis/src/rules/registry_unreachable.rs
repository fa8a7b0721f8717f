//! The container registry cannot be reached.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::RegistryUnreachable,
    title: "the container registry cannot be reached",
    looks_like: "`client with IP .. is not allowed access`, time-outs to the registry.",
    misleads: "211 reads \"network timeout\"; a firewall answer is no time-out, and 211 also hides a missing oras.",
    remedy: "On the node, run `nslookup REGISTRY` (a private endpoint answers with a private address) and `curl -v https://REGISTRY/v2/` (401 is good). See the rules: `az acr show -n REGISTRY --query \"[publicNetworkAccess, networkRuleSet]\"`; allow the address in the line with `az acr network-rule add -n REGISTRY --ip-address IP`. For a private endpoint, link its zone to the node's network: `az network private-dns link vnet list -g GROUP -z privatelink.azurecr.io -o table`. Portal: registry > Networking.",
    signs: &[
        Sign::new(66, &["is not allowed access"]),
        Sign::new(66, &["unexpected response from acr", "403"]),
        Sign::new(66, &["azurecr", "connection refused"]),
        Sign::new(66, &["azurecr", "i/o timeout"]),
        Sign::new(66, &["azurecr", "timed out"]),
        Sign::new(66, &["azurecr", "deadline exceeded"]),
        Sign::new(66, &["azurecr", "no route to host"]),
        Sign::new(67, &["unexpected response from acr", "timeout"])
            .unless(&["failed to run command"])
            .fair(),
        Sign::new(67, &["unexpected response from acr", "denied"]),
        Sign::new(67, &["/v2/", "i/o timeout"]).fair(),
        Sign::new(67, &["/v2/", "connection refused"]).fair(),
        Sign::new(67, &["failed to pull image", "i/o timeout"]).fair(),
        Sign::new(67, &["[error imagepull]", "timeout"]).fair(),
        Sign::new(68, &["/v2/", "deadline exceeded"]).fair(),
        Sign::new(68, &["registry", "connection reset by peer"]).fair(),
        Sign::new(68, &["failed to pull image", "eof"]).weak(),
        Sign::new(68, &["oras", "deadline exceeded"]).fair(),
        Sign::new(67, &["azurecr", "awaiting headers"]),
        Sign::new(67, &["error reaching registry"]),
        Sign::new(68, &["registry is not reachable"]).fair(),
        Sign::new(68, &["registry", "unreachable"]).fair(),
        Sign::new(67, &["/v2/", "awaiting headers"]).fair(),
        Sign::new(67, &["dial tcp", "azurecr"]).unless(&["no such host", "lookup"]).fair(),
        Sign::new(68, &["failed to do request", "eof"]).fair(),
        Sign::new(67, &["mcr.microsoft.com/v2", "i/o timeout"]).fair(),
        Sign::new(68, &["failed to do request", ":443: i/o timeout"]).fair(),
        Sign::new(67, &["[error imagepull]", "connection refused"]).fair(),
        Sign::new(92, &["[error imagepull]"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "unexpected response from acr: Error response from registry: denied: client with IP '203.0.113.9' is not allowed access",
    leaves: "acr is anonymously reachable",
}
