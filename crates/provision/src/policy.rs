//! Whether an admission policy limits the Secrets that bringup may write.
//!
//! The right to create and delete Secrets in kube-system is as good as cluster-admin: a token of any
//! service account can be created that way, and a DELETE with dryRun shows what it would delete. The
//! chart brings a `ValidatingAdmissionPolicy` that allows only what bootstrap tokens need. Without it no
//! machine is created, unless `--flex-without-policy` is set.
//!
//! The policy is checked by a dry run and not by reading it: an object that exists may be bound to another
//! account, be changed, or be ignored by an old API server. A Secret that the policy must refuse is
//! sent with dryRun, so that nothing is stored where there is no policy. That needs no further right.

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
/// The pause until a policy that is not in force is checked again.
const EACH: Duration = Duration::from_secs(10);
/// The name under which `/readyz` reports a missing policy.
const WAITING: &str = "flex-policy";

/// The result of a check of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// The policy has refused what it must refuse.
    InForce,
    /// Any Secret could be written.
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
        // Anything else could be the answer of a webhook that takes no dryRun.
        Err(error) => Policy::Unknown(advice(&error)),
    }
}

/// Returns when the policy is in force. Until then the log and `/readyz` report why not.
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
