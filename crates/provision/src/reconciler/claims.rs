//! `NodeClaim`s in Kubernetes, and their conversion to the plain values that decisions use.

use std::sync::Arc;

use async_trait::async_trait;
use bringup_azure::clock::Clock;
use bringup_contract::Cause;
use bringup_flex::claim::{Claim, Verdict};
use bringup_flex::engine::{Claims, CurrentClaim, StoreError};
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, find, karpenter};
use bringup_objects::flex::machine::{AzureFlexMachine, ClaimReference};
use bringup_objects::karpenter::{NodeClaim, NodeClaimSpec};
use bringup_runtime::recorder::{Announcement, Recorder};
use kube::{Api, Client, ResourceExt as _};

use super::kubernetes::{exactly, store_error};

/// The API group of our classes.
pub(super) const GROUP: &str = "flex.aks.azure.com";
pub(super) const KIND: &str = "AzureFlexNodeClass";
/// The reason with which Karpenter's Azure provider announces such failures.
const FAILED: &str = "AsyncProvisioningError";

pub(super) fn is_of_our_class(claim: &NodeClaim) -> bool {
    let class = &claim.spec.node_class_ref;
    class.group == GROUP && class.kind == KIND
}

/// Converts a claim to its plain value.
pub(super) fn plain(claim: &NodeClaim) -> Claim {
    let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let registered = find(conditions, karpenter::REGISTERED);
    let verdict = find(conditions, BOOTSTRAP_SUCCEEDED);
    Claim {
        uid: claim.uid().unwrap_or_default(),
        class: claim.spec.node_class_ref.name.clone(),
        is_deleting: claim.metadata.deletion_timestamp.is_some(),
        is_registered: registered.is_some_and(|registered| registered.status == "True"),
        provider_id: claim.status.as_ref().and_then(|status| status.provider_id.clone()),
        verdict: verdict.and_then(|verdict| match verdict.status.as_str() {
            "True" => Some(Verdict::Succeeded),
            "False" if verdict.reason == Cause::Unknown.reason() => Some(Verdict::Unexplained),
            "False" => Some(Verdict::Failed {
                cause: verdict.reason.clone(),
                message: verdict.message.clone(),
            }),
            _ => None,
        }),
    }
}

pub(super) struct KubeClaims {
    api: Api<NodeClaim>,
    recorder: Recorder,
    clock: Arc<dyn Clock>,
}

impl KubeClaims {
    pub(super) fn new(client: Client, recorder: Recorder, clock: Arc<dyn Clock>) -> Self {
        Self { api: Api::all(client), recorder, clock }
    }
}

#[async_trait]
impl Claims for KubeClaims {
    async fn read(&self, claim: &ClaimReference) -> Result<Option<CurrentClaim>, StoreError> {
        let found = self.api.get_opt(&claim.name).await;
        let found = found
            .map_err(|error| store_error(&format!("read NodeClaim {}", claim.name), &error))?;
        let found = found.filter(|found| found.uid().as_ref() == Some(&claim.uid));
        Ok(found.map(|found| CurrentClaim {
            claim: plain(&found),
            version: found.resource_version().unwrap_or_default(),
        }))
    }

    async fn announce_failure(
        &self,
        claim: &ClaimReference,
        machine: &AzureFlexMachine,
        message: &str,
    ) {
        let mut about = NodeClaim::new(&claim.name, NodeClaimSpec::default());
        about.metadata.uid = Some(claim.uid.clone());
        let announcement = Announcement {
            warning: true,
            reason: FAILED,
            action: "Provision",
            note: message,
            mark: machine.metadata.uid.as_deref().unwrap_or_default(),
        };
        self.recorder.announce(&about, &announcement, self.clock.now()).await;
    }

    async fn delete(&self, claim: &ClaimReference, version: &str) -> Result<(), StoreError> {
        let parameters = exactly(Some(claim.uid.clone()), Some(version.to_owned()));
        match self.api.delete(&claim.name, &parameters).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(store_error(&format!("delete NodeClaim {}", claim.name), &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The verdict of a claim whose condition about its bootstrap has this reason.
    fn verdict_of(reason: &str) -> Option<Verdict> {
        let condition = json!({
            "type": BOOTSTRAP_SUCCEEDED,
            "status": "False",
            "reason": reason,
            "message": "in words",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let claim: NodeClaim = serde_json::from_value(json!({
            "metadata": { "name": "one", "uid": "u", "resourceVersion": "7" },
            "spec": { "nodeClassRef": { "group": GROUP, "kind": KIND, "name": "c" } },
            "status": { "conditions": [condition], "providerID": "azure-flex://x" },
        }))
        .unwrap();
        assert!(is_of_our_class(&claim));
        plain(&claim).verdict
    }

    #[test]
    fn case_47_a_condition_without_a_cause_is_no_failure() {
        assert_eq!(verdict_of("Unknown"), Some(Verdict::Unexplained));
        let message = "in words".to_owned();
        let failed = Verdict::Failed { cause: "DnsFailure".to_owned(), message };
        assert_eq!(verdict_of("DnsFailure"), Some(failed));
    }
}
