//! Whether an admission policy limits the Secrets that bringup may write.
//!
//! The right to create and delete Secrets in kube-system is as powerful as cluster-admin: a client with that
//! right can create a token of any service account, and a DELETE with dryRun returns the Secret's content.
//! The chart contains a `ValidatingAdmissionPolicy` that allows only the Secrets of bootstrap tokens. Without
//! that policy bringup creates no machine, unless `--flex-without-policy` is set.
//!
//! bringup checks the policy by a dry run instead of reading the object: an existing policy may be bound to
//! another account, be changed, or be ignored by an old API server. bringup sends a Secret that the policy
//! must refuse, with dryRun, so that nothing is stored if no policy applies. The check needs no further
//! right.

use std::time::Duration;

use bringup_objects::flex::TOKENS_NAMESPACE;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tracing::{info, warn};

use bringup_runtime::health::{Health, advice};

/// The policy's refusal of a Secret that is not a bootstrap token of bringup.
pub const REFUSAL: &str = "bringup may write only its own bootstrap tokens";
const PROBE: &str = "bringup-policy-check";
/// The pause between two checks while the policy is not in force.
const EACH: Duration = Duration::from_secs(10);
/// The name under which `/readyz` reports a missing policy.
const WAITING: &str = "flex-policy";

/// The result of a check of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// The policy has refused a Secret that it must refuse.
    InForce,
    /// The policy does not apply: bringup could write any Secret.
    Missing,
    /// The check failed, and why.
    Unknown(String),
}

/// Checks the policy by a dry run.
pub async fn check(client: &Client) -> Policy {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), TOKENS_NAMESPACE);
    let metadata = ObjectMeta { name: Some(PROBE.to_owned()), ..ObjectMeta::default() };
    let secret = Secret { metadata, ..Secret::default() };
    let only_try = PostParams { dry_run: true, ..PostParams::default() };
    match secrets.create(&only_try, &secret).await {
        Ok(_) => Policy::Missing,
        Err(kube::Error::Api(status)) if status.message.contains(REFUSAL) => Policy::InForce,
        // Any other error could come from a webhook that supports no dryRun.
        Err(error) => Policy::Unknown(advice(&error)),
    }
}

/// Waits until the policy is in force. Until then the log and `/readyz` report why it is not.
pub(super) async fn wait(client: &Client, health: &Health) {
    loop {
        let why = match check(client).await {
            Policy::InForce => break,
            Policy::Missing => "flex does not start: no admission policy limits the Secrets that \
                bringup may write in kube-system; install the one of the chart (flex.policy.install), \
                or set --flex-without-policy"
                .to_owned(),
            Policy::Unknown(why) => {
                format!("flex does not start: the admission policy for Secrets cannot be checked: {why}")
            }
        };
        warn!(why, "admission policy not in force; checking again");
        health.waits(WAITING, Some(&why));
        tokio::time::sleep(EACH).await;
    }
    health.waits(WAITING, None);
    info!("admission policy for bootstrap tokens is in force");
}
