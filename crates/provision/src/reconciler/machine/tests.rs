use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bringup_azure::{Arm, Clock, Cloud};
use bringup_azure_sim::endpoints::{AnyToken, InProcess};
use bringup_azure_sim::{Simulator, scenario};
use bringup_objects::condition::karpenter::REGISTERED;
use bringup_objects::flex::FINALIZER;
use bringup_objects::flex::machine::Call;
use bringup_objects::karpenter::NodeClaim;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::reconciler::claims::{GROUP, KIND, plain};
use crate::reconciler::flex::Replica;
use crate::reconciler::index::Machine;

/// A time long after the node should have joined.
const NOW: i64 = 1_700_000_900;

const ID: &str = "azure-flex:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v";

#[derive(Debug)]
struct Fixed;

#[async_trait]
impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        now()
    }

    async fn reach(&self, _: Timestamp) {
        std::future::pending::<()>().await;
    }
}

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
        "metadata": {
            "name": "one", "uid": "m", "resourceVersion": "1", "finalizers": [FINALIZER],
        },
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

/// An API server with one machine and one claim, and the requests to it.
#[derive(Clone)]
struct Server {
    claim: Option<Value>,
    /// The HTTP status of the answer to a deletion.
    deletion: u16,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    fn new(claim: Option<Value>, deletion: u16) -> Self {
        Self { claim, deletion, requests: Arc::default() }
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
        self.requests.lock().unwrap().push((what, body.clone()));
        let of_claims = head.uri.path().contains("/nodeclaims/");
        let (status, answer) = match (head.method.as_str(), &self.claim) {
            ("GET", Some(claim)) if of_claims => (200, claim.clone()),
            ("GET", None) if of_claims => (404, status_of(404)),
            ("GET", _) => (200, machine()),
            ("DELETE", _) => (self.deletion, status_of(self.deletion)),
            _ => (201, body),
        };
        let body = Body::from(answer.to_string().into_bytes());
        Ok(Response::builder().status(status).body(body).unwrap())
    }

    fn deletions(&self) -> Vec<(String, Value)> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|(what, _)| what.starts_with("DELETE")).cloned().collect()
    }
}

fn status_of(code: u16) -> Value {
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

/// Reconciles the machine until no step is due now, with this state of the claim in the index. Returns when
/// the machine is due again.
async fn due(server: &Server, seen: &Value) -> Option<Timestamp> {
    let simulator = Simulator::manual(scenario::parse("flex", "").unwrap());
    let clock = Arc::new(Fixed);
    let azure = Arc::new(InProcess::new(simulator));
    let arm = Arm::new(Cloud::Public.endpoint(), Arc::new(AnyToken("us")), azure, clock.clone());
    let replica = Replica {
        cluster: "cluster".to_owned(),
        namespace: "bringup".to_owned(),
        identity: "us".to_owned(),
    };
    let flex = Flex::new(server.client(), arm, clock, &replica, NoSecrets);
    {
        let machine: AzureFlexMachine = serde_json::from_value(machine()).unwrap();
        let claim: NodeClaim = serde_json::from_value(seen.clone()).unwrap();
        let mut index = flex.index();
        index.machines.insert("one".to_owned(), Machine::of(&machine));
        index.claims.insert("one".to_owned(), plain(&claim));
        index.claims_are_listed = true;
    }
    for _ in 0..5 {
        let next = flex.reconcile_machine("one").await;
        if next != Some(now()) {
            return next;
        }
    }
    panic!("it is due again and again");
}

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

#[tokio::test]
async fn a_claim_whose_node_has_joined_unseen_is_left_alone() {
    let server = Server::new(Some(claim("8", "True")), 200);
    assert_eq!(due(&server, &claim("7", "Unknown")).await, None);
    assert!(server.deletions().is_empty(), "{:?}", server.deletions());
    let requests = server.requests.lock().unwrap();
    assert!(
        requests.iter().all(|(what, _)| !what.starts_with("POST")),
        "nothing is announced: {requests:?}"
    );
}

#[tokio::test]
async fn only_the_claim_that_was_decided_on_is_deleted() {
    let server = Server::new(Some(claim("8", "Unknown")), 200);
    assert_eq!(due(&server, &claim("7", "Unknown")).await, None);
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
        // Also if the change is only seen when the claim is read again.
        for seen in [other, claim("7", "Unknown")] {
            assert_eq!(due(&server, &seen).await, None, "{id}");
            assert!(server.deletions().is_empty(), "{id}: {:?}", server.deletions());
        }
    }
}

#[tokio::test]
async fn a_claim_that_changes_meanwhile_is_decided_on_again() {
    let server = Server::new(Some(claim("8", "Unknown")), 409);
    assert_eq!(due(&server, &claim("7", "Unknown")).await, Some(now() + RETRY));
    assert_eq!(server.deletions().len(), 1);
}

#[tokio::test]
async fn a_claim_that_is_gone_is_not_deleted() {
    let mut another = claim("8", "Unknown");
    another["metadata"]["uid"] = json!("another");
    for found in [None, Some(another)] {
        let server = Server::new(found, 200);
        assert_eq!(due(&server, &claim("7", "Unknown")).await, None);
        assert!(server.deletions().is_empty(), "{:?}", server.deletions());
    }
}

#[test]
fn an_error_of_azure_is_logged_when_it_is_new() {
    let status = |last_error: Option<&str>| {
        let last_error = last_error.map(str::to_owned);
        let call = Some(Call { last_error, ..Call::default() });
        FlexMachineStatus { call, ..FlexMachineStatus::default() }
    };
    let machine = |status: Option<&FlexMachineStatus>| AzureFlexMachine {
        status: status.cloned(),
        ..AzureFlexMachine::default()
    };
    let (none, one, two) = (status(None), status(Some("one")), status(Some("two")));
    assert_eq!(new_error(&machine(None), &one), Some("one"));
    assert_eq!(new_error(&machine(Some(&none)), &one), Some("one"));
    assert_eq!(new_error(&machine(Some(&one)), &two), Some("two"));
    assert_eq!(new_error(&machine(Some(&one)), &one), None, "it is known");
    assert_eq!(new_error(&machine(Some(&one)), &none), None, "it is over");
}
