//! The end of a claim whose machine has failed.

use bringup_flex::engine::Bootstrap;
use bringup_flex::time::later;
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::karpenter::NodeClaim;
use bringup_runtime::recorder::Announcement;
use jiff::Timestamp;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt as _};
use tracing::{info, warn};

use super::duties::{Duty, cause, duty};
use super::index::Claim;
use super::{AGAIN, Flex, pause};

/// The reason with which Karpenter's Azure provider says the same.
const FAILED: &str = "AsyncProvisioningError";

impl<B: Bootstrap> Flex<B> {
    /// Ends the claim of a machine, if by what it is now it is still to end; when to look again.
    ///
    /// What is known of a claim may be old, and its node may have joined since. So the claim is read
    /// and decided on again, and it is deleted only as it was read.
    pub(super) async fn end(
        &self,
        machine: &AzureFlexMachine,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let fresh = match self.claim_of(machine).await {
            Ok(fresh) => fresh?,
            Err(error) => {
                warn!(machine = machine.name_any(), %error, "its claim could not be read");
                return Some(later(now, pause(&error)));
            }
        };
        let claim = Claim::of(&fresh);
        match duty(machine, claim.as_ref(), true, now) {
            Duty::End(what) => {
                self.say(&fresh, machine, &what, now).await;
                self.delete(&fresh, cause(machine, claim.as_ref()), now).await
            }
            // It has changed, as the watch will tell.
            Duty::None | Duty::Leave => None,
            Duty::At(at) | Duty::Say(_, at) => Some(at),
        }
    }

    /// Says of a claim why its machine has failed.
    pub(super) async fn say(
        &self,
        claim: &NodeClaim,
        machine: &AzureFlexMachine,
        what: &str,
        now: Timestamp,
    ) {
        let saying = Announcement {
            warning: true,
            reason: FAILED,
            action: "Provision",
            note: what,
            mark: machine.metadata.uid.as_deref().unwrap_or_default(),
        };
        self.recorder.announce(claim, &saying, now).await;
    }

    /// Deletes a claim as it was read.
    async fn delete(&self, claim: &NodeClaim, cause: &str, now: Timestamp) -> Option<Timestamp> {
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        let name = claim.name_any();
        let parameters = exactly(claim.uid(), claim.resource_version());
        match claims.delete(&name, &parameters).await {
            Ok(_) => {
                info!(claim = name, "its machine has failed, and so it goes");
                self.metrics.ended(cause);
                None
            }
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            // It has changed since: it is decided on again.
            Err(kube::Error::Api(status)) if status.code == 409 => Some(later(now, AGAIN)),
            Err(error) => {
                warn!(claim = name, %error, "the claim could not be deleted");
                Some(later(now, pause(&error)))
            }
        }
    }
}

/// Only the object with this uid, and only in this version if one is given.
pub(super) fn exactly(uid: Option<String>, resource_version: Option<String>) -> DeleteParams {
    let preconditions = Preconditions { uid, resource_version };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;
    use bringup_azure::{Arm, Cloud, WallClock};
    use bringup_azure_sim::endpoints::{AnyToken, InProcess};
    use bringup_azure_sim::{Simulator, scenario};
    use bringup_objects::condition::karpenter::REGISTERED;
    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::super::Home;
    use super::super::index::{GROUP, KIND, Machine};
    use super::*;

    /// Long after the node should have joined.
    const NOW: i64 = 1_700_000_900;

    const ID: &str = "azure-flex:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v";

    struct NoSecrets;

    #[async_trait]
    impl Bootstrap for NoSecrets {
        async fn custom_data(&self, _: &AzureFlexMachine) -> Result<String, String> {
            Ok(String::new())
        }
    }

    fn machine() -> Value {
        json!({
            "apiVersion": "flex.aks.azure.com/v1alpha1",
            "kind": "AzureFlexMachine",
            "metadata": { "name": "one", "uid": "m", "resourceVersion": "1" },
            "spec": {
                "nodeClass": "c",
                "vmSize": "Standard_D8s_v5",
                "claimRef": { "name": "one", "uid": "u" },
            },
            "status": {
                "phase": "Running",
                "providerID": ID,
                "acceptedAt": "2023-11-14T22:13:20Z",
                "place": {
                    "subscriptionID": "s", "resourceGroup": "g", "location": "l", "subnetID": "n",
                    "vm": "v", "nic": "n", "disk": "d", "image": { "id": "i" },
                    "osDiskSizeGB": 1, "bootDiagnostics": true, "sshPublicKeys": [],
                    "bootTimeoutSeconds": 300,
                },
            },
        })
    }

    fn claim(version: &str, registered: &str) -> Value {
        let condition = json!({
            "type": REGISTERED,
            "status": registered,
            "reason": REGISTERED,
            "message": "",
            "lastTransitionTime": "2023-11-14T22:13:20Z",
        });
        json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": { "name": "one", "uid": "u", "resourceVersion": version },
            "spec": { "nodeClassRef": { "group": GROUP, "kind": KIND, "name": "c" } },
            "status": { "conditions": [condition], "providerID": ID },
        })
    }

    /// An API server that has one machine and one claim, and what was asked of it.
    #[derive(Clone)]
    struct Server {
        claim: Option<Value>,
        /// What a deletion is answered with.
        deletion: u16,
        asked: Arc<Mutex<Vec<(String, Value)>>>,
    }

    impl Server {
        fn new(claim: Option<Value>, deletion: u16) -> Self {
            Self { claim, deletion, asked: Arc::default() }
        }

        fn client(&self) -> Client {
            let server = self.clone();
            let service = tower::service_fn(move |request: Request<Body>| {
                let server = server.clone();
                async move { server.answer(request).await }
            });
            Client::new(service, "default")
        }

        async fn answer(self, request: Request<Body>) -> Result<Response<Body>, Infallible> {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap_or_default();
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let what = format!("{} {}", head.method, head.uri.path());
            self.asked.lock().unwrap().push((what, body.clone()));
            let of_claims = head.uri.path().contains("/nodeclaims/");
            let (status, answer) = match (head.method.as_str(), &self.claim) {
                ("GET", Some(claim)) if of_claims => (200, claim.clone()),
                ("GET", None) if of_claims => (404, told(404)),
                ("GET", _) => (200, machine()),
                ("DELETE", _) => (self.deletion, told(self.deletion)),
                _ => (201, body),
            };
            let body = Body::from(answer.to_string().into_bytes());
            Ok(Response::builder().status(status).body(body).unwrap())
        }

        fn deletions(&self) -> Vec<(String, Value)> {
            let asked = self.asked.lock().unwrap();
            asked.iter().filter(|(what, _)| what.starts_with("DELETE")).cloned().collect()
        }
    }

    fn told(code: u16) -> Value {
        let (status, reason) = match code {
            404 => ("Failure", "NotFound"),
            409 => ("Failure", "Conflict"),
            _ => ("Success", ""),
        };
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "status": status,
            "code": code,
            "message": "",
            "reason": reason,
        })
    }

    /// What is owed to a claim that is known so, and is what the server says.
    async fn owed(server: &Server, known: &Value) -> Option<Timestamp> {
        let simulator = Simulator::manual(scenario::parse("flex", "").unwrap());
        let clock = Arc::new(WallClock);
        let door = Arc::new(InProcess::new(simulator));
        let arm = Arm::new(Cloud::Public.endpoint(), Arc::new(AnyToken("us")), door, clock.clone());
        let home = Home {
            cluster: "cluster".to_owned(),
            namespace: "bringup".to_owned(),
            identity: "us".to_owned(),
        };
        let flex = Flex::new(server.client(), arm, clock, &home, NoSecrets);
        {
            let machine: AzureFlexMachine = serde_json::from_value(machine()).unwrap();
            let claim: NodeClaim = serde_json::from_value(known.clone()).unwrap();
            let mut index = flex.index();
            index.machines.insert("one".to_owned(), Machine::of(&machine));
            index.claims.insert("one".to_owned(), Claim::of(&claim).unwrap());
            index.claims_are_listed = true;
        }
        flex.owe("one", now()).await
    }

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    #[tokio::test]
    async fn a_claim_whose_node_has_joined_unseen_is_left_alone() {
        let server = Server::new(Some(claim("8", "True")), 200);
        assert_eq!(owed(&server, &claim("7", "Unknown")).await, None);
        assert!(server.deletions().is_empty(), "{:?}", server.deletions());
        let asked = server.asked.lock().unwrap();
        assert!(
            asked.iter().all(|(what, _)| !what.starts_with("POST")),
            "nothing is said: {asked:?}"
        );
    }

    #[tokio::test]
    async fn only_the_claim_that_was_decided_on_is_deleted() {
        let server = Server::new(Some(claim("8", "Unknown")), 200);
        assert_eq!(owed(&server, &claim("7", "Unknown")).await, None);
        let deletions = server.deletions();
        let [(what, body)] = deletions.as_slice() else { panic!("{deletions:?}") };
        assert_eq!(what, "DELETE /apis/karpenter.sh/v1/nodeclaims/one");
        assert_eq!(body["preconditions"], json!({ "uid": "u", "resourceVersion": "8" }));
    }

    #[tokio::test]
    async fn a_claim_that_names_another_machine_or_none_is_left_alone() {
        for id in [json!(null), json!(""), json!(ID.replace("/v", "/another"))] {
            let mut other = claim("8", "Unknown");
            other["status"]["providerID"] = id.clone();
            let server = Server::new(Some(other.clone()), 200);
            // Also where that is seen only when it is read again.
            for known in [other, claim("7", "Unknown")] {
                assert_eq!(owed(&server, &known).await, None, "{id}");
                assert!(server.deletions().is_empty(), "{id}: {:?}", server.deletions());
            }
        }
    }

    #[tokio::test]
    async fn a_claim_that_changes_meanwhile_is_decided_on_again() {
        let server = Server::new(Some(claim("8", "Unknown")), 409);
        assert_eq!(owed(&server, &claim("7", "Unknown")).await, Some(now() + AGAIN));
        assert_eq!(server.deletions().len(), 1);
    }

    #[tokio::test]
    async fn a_claim_that_is_gone_is_not_deleted() {
        let mut another = claim("8", "Unknown");
        another["metadata"]["uid"] = json!("another");
        for found in [None, Some(another)] {
            let server = Server::new(found, 200);
            assert_eq!(owed(&server, &claim("7", "Unknown")).await, None);
            assert!(server.deletions().is_empty(), "{:?}", server.deletions());
        }
    }
}
