//! The container registry answers that there were too many requests.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::RegistryThrottled,
    title: "the container registry answers that there were too many requests",
    looks_like: "`toomanyrequests: You have reached your pull rate limit`, `429 Too Many Requests` from a registry.",
    misleads: "Pulls end with a time-out code (31, 211) or kubelet reports ImagePullBackOff.",
    remedy: "Wait, or start fewer nodes at once. For a public registry pull with credentials, or from a cache in your own registry (`az acr cache create`). For Azure Container Registry use the Premium tier: `az acr update -n REGISTRY --sku Premium`.",
    signs: &[
        Sign::new(62, &["toomanyrequests:"])
            .near(&["pull", "image", "registry", "manifest", "docker"]),
        Sign::new(62, &["reached your pull rate limit"]),
        Sign::new(62, &["pull rate limit"]),
        Sign::new(62, &["429 too many requests", "/v2/"]),
        Sign::new(62, &["429 too many requests", "azurecr"]),
        Sign::new(62, &["429 too many requests", "pull"]),
        Sign::new(62, &["429 too many requests", "manifest"]),
        Sign::new(62, &["too many requests", "registry"]),
    ],
    subject: None,
};

examples! {
    finds: "toomanyrequests: You have reached your pull rate limit.",
    leaves: "TooManyRequests: the compute request limit is exceeded",
}
