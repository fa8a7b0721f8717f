//! The conditions of a class, and when it can be deleted.

use anyhow::{Context as _, Result};
use bringup_objects::condition::find;
use bringup_objects::flex::AzureFlexNodeClass;
use bringup_objects::flex::machine::Phase;
use bringup_testbed::wait::{is_gone, objects, until, until_object};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::watcher;
use serde_json::{Value, json};

use crate::common::{FlexBed, class, condition_is, machine};

/// The reason and message of a class's condition, once the condition has this status.
async fn condition_of(
    bed: &FlexBed,
    name: &str,
    kind: &str,
    status: &str,
) -> Result<(String, String)> {
    let what = format!("{kind}={status} on {name}");
    let class = until_object(bed.classes(), name, &what, condition_is(kind, status)).await?;
    let conditions = class.and_then(|class| class.status).unwrap_or_default().conditions;
    let found = find(&conditions, kind).context("the condition is there")?;
    Ok((found.reason.clone(), found.message.clone()))
}

fn changed(name: &str, field: &str, value: Value) -> Value {
    let mut class = class(name);
    class["spec"][field] = value;
    class
}

#[tokio::test]
async fn case_29_31_36_what_azure_or_the_cluster_refuses_is_a_condition_of_the_class() -> Result<()>
{
    let denied = "faults: [{on: {method: GET, pathContains: 'resourceGroups/rg-denied'}, fault: {answer: {status: 403, body: '{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"The client may not read.\"}}'}}}]";
    let groups = "resourceGroups: [rg-flex, rg-net, rg-denied]";
    let bed = FlexBed::new(&format!("{denied}\n{groups}")).await?;

    bed.create_class(&changed("far", "location", "westus".into())).await?;
    let (reason, message) = condition_of(&bed, "far", "ValidationSucceeded", "False").await?;
    assert_eq!(reason, "InvalidSpec");
    assert_eq!(message, "subnetID: it is in eastus2, and location is westus");
    let (reason, message) = condition_of(&bed, "far", "Ready", "False").await?;
    assert_eq!(reason, "UnhealthyDependents");
    assert!(message.contains("ValidationSucceeded=False"), "{message}");

    bed.create_class(&changed("absent", "resourceGroup", "rg-absent".into())).await?;
    let (_, message) = condition_of(&bed, "absent", "ValidationSucceeded", "False").await?;
    assert_eq!(message, "resourceGroup: it does not exist");

    bed.create_class(&changed("denied", "resourceGroup", "rg-denied".into())).await?;
    let (reason, message) = condition_of(&bed, "denied", "AzureAccess", "False").await?;
    assert_eq!(reason, "AuthorizationFailed");
    assert!(message.contains("may not read"), "{message}");

    bed.create_class(&changed("new", "kubernetesVersion", "1.99.0".into())).await?;
    let (_, message) = condition_of(&bed, "new", "ValidationSucceeded", "False").await?;
    assert!(
        message.starts_with("kubernetesVersion: 1.99.0 is newer than the cluster"),
        "{message}"
    );

    // The controller sees at once that the class is corrected.
    let mended = Patch::Merge(json!({ "spec": { "kubernetesVersion": null } }));
    bed.classes().patch("new", &PatchParams::default(), &mended).await?;
    condition_of(&bed, "new", "Ready", "True").await?;
    Ok(())
}

#[tokio::test]
async fn an_image_that_does_not_exist_is_the_fault_of_its_class_and_costs_azure_nothing()
-> Result<()> {
    let images = "images: [{publisher: microsoft-dsvm, offer: ubuntu-hpc, sku: '2204', versions: [22.04.2025010100, 22.04.2026011301, 22.04.2025123101]}]";
    let missing = "faults: [{on: {method: GET, pathContains: 'publishers/stranger'}, fault: {answer: {status: 404, body: '{\"error\":{\"code\":\"NotFound\",\"message\":\"Artifact was not found.\"}}'}}}]";
    let bed = FlexBed::new(&format!("{images}\n{missing}")).await?;
    bed.ready_class("good").await?;
    bed.create_machine(&machine("one", "good", "Standard_D8s_v5")?).await?;
    let up = bed.machine_in("one", Phase::Running).await?;
    let place = up.status.and_then(|status| status.place).unwrap_or_default();
    assert_eq!(
        serde_json::to_value(&place.image)?["marketplace"]["version"],
        "22.04.2026011301",
        "the latest is resolved and recorded"
    );
    let image = json!({ "publisher": "nobody", "offer": "nothing", "sku": "none" });
    bed.create_class(&changed("bad", "imageReference", image)).await?;
    condition_of(&bed, "bad", "Ready", "True").await?;
    bed.create_machine(&machine("two", "bad", "Standard_D8s_v5")?).await?;
    let (reason, message) = condition_of(&bed, "bad", "ValidationSucceeded", "False").await?;
    assert_eq!(reason, "MachineRefused");
    assert!(message.contains("nobody:nothing:none"), "{message}");
    let image = json!({ "publisher": "stranger", "offer": "nothing", "sku": "none" });
    bed.create_class(&changed("strange", "imageReference", image)).await?;
    condition_of(&bed, "strange", "Ready", "True").await?;
    bed.create_machine(&machine("three", "strange", "Standard_D8s_v5")?).await?;
    let (reason, message) = condition_of(&bed, "strange", "ValidationSucceeded", "False").await?;
    assert_eq!(reason, "MachineRefused");
    assert!(message.contains("Artifact was not found."), "whatever the code: {message}");
    assert_eq!(bed.held(), bed.names_of("one", &[]).await?);
    Ok(())
}

#[tokio::test]
async fn a_machine_that_is_refused_for_its_own_size_leaves_its_class_ready() -> Result<()> {
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    bed.claimed_machine("wrong", "plain", "Standard_No_Such_Size").await?;
    let refused = bed.machine_in("wrong", Phase::Gone).await?;
    let failure = refused.status.and_then(|status| status.failure).unwrap_or_default();
    assert_eq!(failure.cause.as_str(), "InvalidRequest", "{failure:?}");
    bed.create_machine(&machine("right", "plain", "Standard_D8s_v5")?).await?;
    bed.machine_in("right", Phase::Running).await?;
    let class = bed.classes().get("plain").await?;
    assert!(bringup_provision::is_ready(&class), "{:?}", class.status);
    Ok(())
}

#[tokio::test]
async fn case_31_a_missing_permission_in_azure_is_a_condition_and_not_a_loop() -> Result<()> {
    let denied = "faults: [{on: {method: PUT, pathContains: networkInterfaces}, fault: {answer: {status: 403, body: '{\"error\":{\"code\":\"LinkedAuthorizationFailed\",\"message\":\"The client may not join the subnet.\"}}'}}}]";
    let bed = FlexBed::new(denied).await?;
    bed.ready_class("plain").await?;
    for name in ["one", "two", "three"] {
        bed.claimed_machine(name, "plain", "Standard_D8s_v5").await?;
    }
    let (reason, message) = condition_of(&bed, "plain", "AzureAccess", "False").await?;
    assert_eq!(reason, "MachineRefused");
    assert!(message.contains("LinkedAuthorizationFailed"), "{message}");
    for name in ["one", "two", "three"] {
        bed.claims().delete(name, &DeleteParams::default()).await?;
        until_object(bed.machines(), name, "a machine that is gone", is_gone).await?;
    }
    let asked = bed.azure.with(|azure| {
        azure.journal().requests().iter().filter(|entry| entry.method == "PUT").count()
    });
    assert!(asked <= 3, "{asked} requests for three machines");
    assert!(bed.held().is_empty());
    Ok(())
}

#[tokio::test]
async fn case_32_a_deleted_class_waits_for_its_claims_with_an_event() -> Result<()> {
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    bed.claimed_machine("one", "plain", "Standard_D8s_v5").await?;
    bed.machine_in("one", Phase::Running).await?;
    bed.classes().delete("plain", &DeleteParams::default()).await?;
    let events: Api<Event> = Api::namespaced(bed.client.clone(), "default");
    let waiting = |events: &[Event]| {
        let reason = "WaitingOnNodeClaimTermination";
        events.iter().find(|event| event.reason.as_deref() == Some(reason)).cloned()
    };
    let all = objects(events, watcher::Config::default());
    let all = until("the Event of the class", all, |all| waiting(all).is_some()).await?;
    let said = waiting(&all).context("the Event exists")?;
    assert_eq!(said.note.as_deref(), Some("Waiting on NodeClaim termination for one"));
    assert_eq!(said.type_.as_deref(), Some("Normal"));
    assert!(bed.classes().get_opt("plain").await?.is_some());
    bed.claims().delete("one", &DeleteParams::default()).await?;
    until_object(bed.classes(), "plain", "a class that is gone", is_gone).await?;
    bed.until_held(&[]).await
}

#[tokio::test]
async fn a_class_whose_status_another_client_writes_makes_no_machine() -> Result<()> {
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    let other =
        PatchParams { field_manager: Some("aks-flex".to_owned()), ..PatchParams::default() };
    let status = json!({ "status": { "conditions": [{
        "type": "Theirs", "status": "True", "reason": "Mine", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] } });
    bed.classes().patch_status("plain", &other, &Patch::Merge(&status)).await?;
    let (reason, message) = condition_of(&bed, "plain", "Ready", "False").await?;
    assert_eq!(reason, "OwnershipConflict");
    assert!(message.contains("aks-flex"), "{message}");

    // The conflict stays, however often the test writes in between: bringup does not take over foreign
    // conditions.
    let changed = Patch::Merge(json!({ "spec": { "tags": { "team": "blue" } } }));
    let changed = bed.classes().patch("plain", &PatchParams::default(), &changed).await?;
    let is_settled = |class: Option<&AzureFlexNodeClass>| {
        let known = class.and_then(|class| class.status.as_ref());
        let ready = known.and_then(|known| find(&known.conditions, "Ready"));
        ready.is_some_and(|ready| ready.observed_generation == changed.metadata.generation)
    };
    let class = until_object(bed.classes(), "plain", "a class that is looked at again", is_settled)
        .await?
        .context("the class is there")?;
    let conditions = class.status.unwrap_or_default().conditions;
    assert_eq!(
        find(&conditions, "Ready").map(|one| one.reason.as_str()),
        Some("OwnershipConflict")
    );
    assert!(find(&conditions, "Theirs").is_some(), "{conditions:?}");
    Ok(())
}
