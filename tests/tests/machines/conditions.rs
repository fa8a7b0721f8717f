//! Conditions that other controllers write at the same time.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bringup_end_to_end::simulated_clock::SimulatedClock;
use bringup_objects::cluster_api::{AnyCondition, NODE_BOOTSTRAP_SUCCEEDED};
use bringup_observe::ObserverMetrics;
use bringup_observe::kinds::read;
use bringup_observe::machines::{DEADLINE, MachineIndex};
use bringup_observe::subject::Subject;
use bringup_observe::writer::Writer;
use bringup_runtime::effect_hook::EffectHook;
use bringup_runtime::health::Health;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::{ManagementCluster, condition, kinds};
use crate::launch::Wanted;

pub(crate) const FAILS: &str = r#"
rules:
- name: all
  boot:
    bootstrap: user-data
    vmReadyAfter: 2s
    script: {ends: {exitCode: 1, lasts: 5s}}
    console: |
      [   91.812] cloud-init[1021]: error: error execution phase preflight: could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"
"#;

fn is_down(provided: &DynamicObject) -> bool {
    condition(provided, NODE_BOOTSTRAP_SUCCEEDED).is_some_and(|it| it["status"] == "False")
}

#[tokio::test]
async fn test_05_the_providers_own_condition_is_never_written() -> Result<()> {
    let cluster = ManagementCluster::new("theirs", FAILS).await?;
    cluster.launch(Wanted::linux("worker-1")).await?;
    let own = json!({ "type": "BootstrapSucceeded", "status": "False", "severity": "Info", "reason": "BootstrapInProgress", "message": "theirs", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let extension = json!({ "name": "CustomScript", "publisher": "Microsoft.Azure.Extensions", "version": "2.1" });
    let spec =
        json!({ "spec": { "disableVMBootstrapExtension": false, "vmExtensions": [extension] } });
    let parameters = PatchParams::default();
    cluster.provided().patch("worker-1", &parameters, &Patch::Merge(&spec)).await?;
    let status = json!({ "status": { "conditions": [own] } });
    cluster.provided().patch_status("worker-1", &parameters, &Patch::Merge(&status)).await?;
    cluster.verdict("worker-1").await?;
    let provided =
        cluster.until(cluster.provided(), "worker-1", "ours beside theirs", is_down).await?;
    assert_eq!(kinds(&provided), ["BootstrapSucceeded", NODE_BOOTSTRAP_SUCCEEDED]);
    assert_eq!(condition(&provided, "BootstrapSucceeded"), Some(&own));
    Ok(())
}

#[tokio::test]
async fn test_07_a_machine_with_32_conditions_is_not_written_to_and_gets_an_event() -> Result<()> {
    let cluster = ManagementCluster::new("full", FAILS).await?;
    cluster.launch(Wanted::linux("worker-1")).await?;
    let now = Time(jiff::Timestamp::now());
    let many: Vec<Value> = (0..32)
        .map(|number| json!({ "type": format!("Theirs{number}"), "status": "True", "reason": "Theirs", "message": "", "lastTransitionTime": now }))
        .collect();
    let full = json!({ "status": { "conditions": many } });
    let parameters = PatchParams::default();
    cluster.machines().patch_status("worker-1", &parameters, &Patch::Merge(&full)).await?;
    cluster.azure.advance(Duration::from_secs(70));
    // The object behind the Machine has the verdict all the same.
    cluster.until(cluster.provided(), "worker-1", "a verdict", is_down).await?;
    let machine = cluster.machines().get("worker-1").await?;
    assert_eq!(kinds(&machine).len(), 32);
    assert!(condition(&machine, "BootstrapSucceeded").is_none(), "nothing of ours is on it");
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let events = events.list(&ListParams::default()).await?.items;
    let said = events.iter().find(|it| it.reason.as_deref() == Some("NoRoomForConditions"));
    let said = said.context("an Event says so")?;
    assert_eq!(said.type_.as_deref(), Some("Warning"));
    let about = said.regarding.as_ref().and_then(|it| it.name.as_deref());
    assert_eq!(about, Some("worker-1"));
    Ok(())
}

/// How often each of the two writers writes.
const ROUNDS: usize = 250;

fn list(object: &DynamicObject) -> Vec<Value> {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array);
    all.cloned().unwrap_or_default()
}

fn set(all: &mut Vec<Value>, new: Value) {
    match all.iter_mut().find(|one| one["type"] == new["type"]) {
        Some(known) => *known = new,
        None => all.push(new),
    }
}

/// The provider's summary: the first of all other conditions that is False, or else True.
fn summary(all: &[Value]) -> Value {
    let now = "2026-01-01T00:00:00Z";
    let down = all.iter().find(|one| one["type"] != "Ready" && one["status"] == "False");
    match down {
        Some(down) => {
            json!({ "type": "Ready", "status": "False", "severity": down["severity"], "reason": down["reason"], "message": down["message"], "lastTransitionTime": now })
        }
        None => json!({ "type": "Ready", "status": "True", "lastTransitionTime": now }),
    }
}

/// One pass of the provider: it reads the object, changes its own conditions, and replays only these
/// changes on a fresh read, as long as no other client has changed the same conditions.
async fn reconcile(api: &Api<DynamicObject>, name: &str, round: usize) -> Result<()> {
    let before = list(&api.get(name).await?);
    let running = json!({ "type": "VMRunning", "status": "True", "reason": format!("Round{round}"), "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let mut after = before.clone();
    set(&mut after, running);
    let ready = summary(&after);
    set(&mut after, ready);
    tokio::task::yield_now().await;
    let find = |all: &[Value], kind: &Value| all.iter().find(|one| one["type"] == *kind).cloned();
    for _ in 0..20 {
        let fresh = api.get(name).await?;
        let mut all = list(&fresh);
        for new in after.iter().filter(|new| find(&before, &new["type"]).as_ref() != Some(new)) {
            if find(&all, &new["type"]) != find(&before, &new["type"]) {
                bail!("{} was modified by a different process", new["type"]);
            }
            set(&mut all, new.clone());
        }
        let body = json!({ "metadata": { "resourceVersion": fresh.metadata.resource_version }, "status": { "conditions": all } });
        match api.patch_status(name, &PatchParams::default(), &Patch::Merge(&body)).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
    }
    bail!("the provider never got to write")
}

/// The condition that bringup writes in a round.
fn ours(round: usize) -> AnyCondition {
    let is_down = round % 2 == 1;
    AnyCondition {
        kind: NODE_BOOTSTRAP_SUCCEEDED.to_owned(),
        status: if is_down { "False" } else { "Unknown" }.to_owned(),
        severity: is_down.then(|| "Error".to_owned()),
        reason: Some(if is_down { "DiskFull" } else { "Diagnosing" }.to_owned()),
        message: Some(format!("round {round}")),
        last_transition_time: Some(Time(jiff::Timestamp::UNIX_EPOCH)),
        observed_generation: None,
    }
}

fn subject(provided: DynamicObject) -> Result<Subject> {
    let machines = MachineIndex::new(DEADLINE);
    let namespace = provided.metadata.namespace.clone();
    let name = provided.metadata.name.clone();
    machines.infra_machine_seen("AzureMachine", read(provided).context("an AzureMachine")?);
    let machine = json!({
        "metadata": { "name": name, "namespace": namespace, "uid": "m" },
        "spec": { "infrastructureRef": { "kind": "AzureMachine", "name": name } },
    });
    machines.machine_seen(serde_json::from_value(machine)?).context("a subject")
}

#[tokio::test]
async fn test_03_five_hundred_interleaved_writes_lose_no_condition() -> Result<()> {
    let cluster = ManagementCluster::new("storm", "{}").await?;
    let now = Time(jiff::Timestamp::now());
    // The object has no Machine, so no other controller handles it.
    cluster.provide(Wanted::linux("worker-1"), None, &now).await?;
    let api = cluster.provided();
    let subject = subject(api.get("worker-1").await?)?;
    let mirror = subject.mirror.clone().context("it has something behind it")?;
    let writer = Writer::new(
        cluster.client.clone(),
        &cluster.namespace,
        Health::default(),
        EffectHook::default(),
        ObserverMetrics::default(),
        Arc::new(SimulatedClock(cluster.azure.clone())),
        false,
    );
    let we = async {
        let mut given_up = 0;
        for round in 0..ROUNDS {
            let written = loop {
                match writer.mirror(&subject, &mirror, &ours(round)).await {
                    Ok(written) => break written.context("it exists")?,
                    // After several conflicts the writer pauses; the test then writes again.
                    Err(kube::Error::Api(status)) if status.code == 409 => given_up += 1,
                    Err(error) => return Err(error.into()),
                }
            };
            for kind in ["Ready", "VMRunning", NODE_BOOTSTRAP_SUCCEEDED] {
                anyhow::ensure!(kinds(&written).contains(&kind.to_owned()), "{kind} is lost");
            }
        }
        anyhow::Ok(given_up)
    };
    let they = async {
        let mut last = 0;
        for round in 0..ROUNDS {
            reconcile(&api, "worker-1", round).await?;
            let present = api.get("worker-1").await?;
            let said =
                condition(&present, NODE_BOOTSTRAP_SUCCEEDED).map(|it| it["message"].clone());
            let Some(Value::String(said)) = said else { continue };
            let said: usize = said.trim_start_matches("round ").parse()?;
            anyhow::ensure!(said >= last, "round {last} was taken back to {said}");
            last = said;
        }
        anyhow::Ok(())
    };
    let (given_up, theirs) = tokio::join!(we, they);
    theirs?;
    let given_up = given_up?;
    assert!(given_up <= ROUNDS / 10, "{given_up} of {ROUNDS} writes had to be put off");
    let present = api.get("worker-1").await?;
    let message = condition(&present, NODE_BOOTSTRAP_SUCCEEDED).context("ours")?["message"].clone();
    assert_eq!(message, format!("round {}", ROUNDS - 1));
    let running = condition(&present, "VMRunning").context("theirs")?["reason"].clone();
    assert_eq!(running, format!("Round{}", ROUNDS - 1));
    // A failed verdict has the severity Error, so the next summary shows it. While the result is unknown,
    // the summary does not show it.
    reconcile(&api, "worker-1", ROUNDS).await?;
    let present = api.get("worker-1").await?;
    let ready = condition(&present, "Ready").context("theirs")?;
    assert_eq!(
        (ready["status"].as_str(), ready["reason"].as_str()),
        (Some("False"), Some("DiskFull"))
    );
    writer.mirror(&subject, &mirror, &ours(ROUNDS)).await?;
    reconcile(&api, "worker-1", ROUNDS + 1).await?;
    let present = api.get("worker-1").await?;
    assert_eq!(condition(&present, "Ready").context("theirs")?["status"], "True");
    Ok(())
}
