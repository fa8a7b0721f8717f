//! Extreme values of all fields of NodeClaims, Nodes, Events and `BootstrapReports`, through the whole
//! observer: nothing panics, reads and writes are bounded, and another claim gets its verdict. The API
//! server accepts more than bringup can parse, and one object that does not parse must not hide the
//! others.

use std::time::Duration;

use anyhow::Result;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_end_to_end::request_counter::RequestCounter;
use bringup_end_to_end::stand_in_karpenter::StandInKarpenter;
use bringup_end_to_end::test_bed::Observer;
use bringup_end_to_end::vm_fleet::Reads;
use bringup_objects::condition::BOOTSTRAP_SUCCEEDED;
use bringup_runtime::effect_hook::EffectHook;
use http::Method;
use jiff::SignedDuration;
use kube::Api;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};

use super::common::{ORAS_MISSING, status_and_reason};
use crate::generators::objects::{self, condition};
use crate::generators::{GONE, Generator, assert_no_panics};

/// How many of each kind are offered to the API server.
const CLAIMS: usize = 32;
const EVENTS: usize = 48;
const REPORTS: usize = 64;
/// How many of each kind the API server must have accepted.
const LEAST_ACCEPTED: u64 = 16;
/// How often the VM of a claim may be read in an hour and by two controllers; see extremes.rs.
const MOST_READS: usize = 80;
/// How many writes an object may cost in that time: a report, its mark, conditions, Events, and the
/// retries after a refusal by the API server.
const MOST_WRITES: u64 = 3;

const CLAIM_PATH: &str = "/apis/karpenter.sh/v1/nodeclaims";

/// A claim of the bed. If `is_kept`, Karpenter's finalizer keeps the claim while it is being deleted.
fn claim(bed: &TestBed, name: &str, is_kept: bool) -> Value {
    let finalizers = if is_kept { json!(["karpenter.sh/termination"]) } else { json!([]) };
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": name, "finalizers": finalizers, "annotations": {},
            "labels": { "karpenter.sh/nodepool": bed.pool() },
        },
        "spec": {
            "nodeClassRef": { "group": "karpenter.azure.com", "kind": bed.settings.classes[0].kind, "name": "default" },
            "requirements": [{ "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] }],
        },
    })
}

fn claim_status(name: &str) -> Value {
    json!({ "status": {
        "providerID": format!("azure://{}", StandInKarpenter::vm_path(name)), "imageID": "image",
        "conditions": [
            condition("Launched", "True", "Launched"),
            condition("Registered", "Unknown", "NodeNotFound"),
            condition("BootstrapSucceeded", "Unknown", "Diagnosing"),
        ],
    } })
}

fn node(claim: &str) -> Value {
    let condition = |kind: &str| {
        json!({ "type": kind, "status": "False", "reason": "KubeletNotReady", "message": "",
                "lastTransitionTime": "2026-01-27T14:32:00Z", "lastHeartbeatTime": "2026-01-27T14:32:00Z" })
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": format!("aks-{claim}"), "labels": {}, "annotations": {} },
        "spec": {
            "providerID": format!("azure://{}", StandInKarpenter::vm_path(claim)),
            "taints": [{ "key": "a", "value": "b", "effect": "NoSchedule" }],
        },
        "status": {
            "conditions": [condition("Ready"), condition("DiskPressure")],
            "addresses": [{ "type": "InternalIP", "address": "10.1.0.9" }],
        },
    })
}

fn event(nth: usize, claim: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": { "name": format!("{claim}.{nth}"), "namespace": "default" },
        "eventTime": "2026-01-27T14:32:00.000000Z", "type": "Warning",
        "reason": "AsyncProvisioningError", "action": "Provision", "note": "Failed to register",
        "reportingController": "karpenter", "reportingInstance": "karpenter-0",
        "regarding": { "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim, "uid": uid },
    })
}

/// The same Event in the older form.
fn old_event(nth: usize, claim: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "name": format!("{claim}.old{nth}"), "namespace": "default" },
        "firstTimestamp": "2026-01-27T14:32:00Z", "lastTimestamp": "2026-01-27T14:32:00Z",
        "reason": "AsyncProvisioningError", "type": "Warning", "message": "Failed to register",
        "source": { "component": "karpenter" },
        "involvedObject": { "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim, "uid": uid },
    })
}

/// Creates claims whose metadata, status, Nodes, Events and reports are extreme. Returns the names of the
/// claims.
async fn fill(generator: &mut Generator, bed: &TestBed) -> Result<Vec<String>> {
    let mut claims = Vec::new();
    for nth in 0..CLAIMS {
        let name = bed.claim_name(format!("odd{nth}x"));
        let object = claim(bed, &name, nth % 2 == 0);
        let place = (Method::POST, CLAIM_PATH);
        generator.send("NodeClaim", place, &object, &objects::claim()).await?;
        if nth % 4 == 0 {
            // The claim in the response may not parse.
            bed.karpenter.make(&name, bed.pool(), &Order::of("202601.27.0")).await.ok();
        }
        let path = format!("{CLAIM_PATH}/{name}/status");
        let (place, status) = ((Method::PATCH, path.as_str()), claim_status(&name));
        let what = "status of a NodeClaim";
        generator.send(what, place, &status, &objects::claim_status()).await?;
        claims.push(name);
    }
    for claim in &claims {
        let place = (Method::POST, "/api/v1/nodes");
        generator.send("Node", place, &node(claim), &objects::node()).await?;
    }
    for nth in 0..EVENTS {
        let name = &claims[nth % CLAIMS];
        let uid = generator.uid(&format!("{CLAIM_PATH}/{name}")).await?;
        let place = (Method::POST, "/apis/events.k8s.io/v1/namespaces/default/events");
        generator.send("Event", place, &event(nth, name, &uid), &objects::event()).await?;
        let place = (Method::POST, "/api/v1/namespaces/default/events");
        let object = old_event(nth, name, &uid);
        generator.send("Event of v1", place, &object, &objects::old_event()).await?;
    }
    let namespace = &bed.settings.namespace;
    let path = format!(
        "/apis/bringup.dev/v1alpha1/namespaces/{namespace}/bootstrapreports?fieldManager=bringup"
    );
    for nth in 0..REPORTS {
        let name = &claims[nth % CLAIMS];
        let is_there = nth % 2 == 0;
        let uid = if is_there {
            generator.uid(&format!("{CLAIM_PATH}/{name}")).await?
        } else {
            format!("{GONE}{nth}")
        };
        let target = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": name, "uid": uid });
        let parent = json!({ "kind": "NodePool", "name": bed.pool() });
        let id = format!("azure://{}", StandInKarpenter::vm_path(name));
        let object = objects::report_of(nth, &target, &parent, &id, bed.azure.clock().now());
        let place = (Method::POST, path.as_str());
        generator.send("BootstrapReport", place, &object, &objects::report()).await?;
    }
    Ok(claims)
}

/// Checks that another claim gets its verdict.
async fn assert_neighbour_is_told(bed: &TestBed, name: &str) -> Result<()> {
    let claim = bed.claim_name(name);
    bed.fail(&claim, &Order::of("202601.27.0")).await?;
    let told = bed.failed_claim(&claim).await?;
    assert_eq!(status_and_reason(&told, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    Ok(())
}

fn observe(bed: &TestBed, counter: &RequestCounter) -> Result<Observer> {
    let client = counter.client(bed.control_plane().admin().config())?;
    Ok(bed.observe_with(client, EffectHook::default()))
}

fn assert_sound(controller: &Observer) {
    assert!(!controller.is_finished());
    assert_no_panics(controller.controller.metrics());
}

#[tokio::test]
async fn extremes_of_what_objects_hold_stop_no_other_claim() -> Result<()> {
    let bed = TestBed::builder()
        .named("objects")
        .own_control_plane()
        .behind(SignedDuration::from_hours(1))
        .scenario(ORAS_MISSING)
        .start()
        .await?;
    let counter = RequestCounter::default();
    let controller = observe(&bed, &counter)?;
    assert_neighbour_is_told(&bed, "before").await?;
    let mut generator = Generator::new(bed.client.clone());
    let claims = fill(&mut generator, &bed).await?;
    generator.assert_accepted(LEAST_ACCEPTED);
    assert_neighbour_is_told(&bed, "beside").await?;
    for minute in 0..15 {
        bed.azure.advance(Duration::from_mins(1));
        if minute % 5 == 4 {
            assert_neighbour_is_told(&bed, &format!("neighbour{minute}")).await?;
        }
    }
    assert_sound(&controller);
    drop(controller);
    // A second controller lists the objects that the first one saw coming one by one; and claims are
    // deleted.
    let controller = observe(&bed, &counter)?;
    assert_neighbour_is_told(&bed, "listed").await?;
    let api: Api<PartialObjectMeta<bringup_objects::NodeClaim>> = Api::all(bed.client.clone());
    for claim in claims.iter().step_by(3) {
        // The response may not parse.
        drop(api.delete(claim, &kube::api::DeleteParams::default()).await);
    }
    for minute in 0..30 {
        bed.azure.advance(Duration::from_mins(1));
        if minute % 10 == 9 {
            assert_neighbour_is_told(&bed, &format!("later{minute}")).await?;
        }
    }
    assert_sound(&controller);
    for claim in &claims {
        let reads = Reads::of(&bed.azure).of_claim(claim);
        assert!(reads <= MOST_READS, "{claim} was read {reads} times");
    }
    generator.assert_writes(&counter, MOST_WRITES);
    let unannounced = generator.unannounced(&bed.settings.namespace).await?;
    assert!(unannounced.is_empty(), "{unannounced:?}");
    Ok(())
}
