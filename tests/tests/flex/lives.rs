//! The creation and deletion of machines.

use anyhow::Result;
use bringup_end_to_end::flex_controller::FAULTY;
use bringup_objects::flex::FINALIZER;
use bringup_objects::flex::machine::{ClaimReference, Phase};
use bringup_testbed::wait::{is_gone, until_object};
use kube::ResourceExt as _;
use kube::api::DeleteParams;

use crate::common::{FlexBed, SUBSCRIPTION, class, machine};

#[tokio::test]
async fn case_30_an_applied_machine_becomes_a_vm_and_its_deletion_leaves_nothing() -> Result<()> {
    let quota = "quotas: [{region: eastus2, family: StandardNCADSA100v4Family, limit: 0}]";
    let bed = FlexBed::new(quota).await?;
    let class = bed.ready_class("plain").await?;
    assert_eq!(class.finalizers(), [FINALIZER], "case 30: it is really stored");
    // The controller finds leftover resources by their tags, and leaves resources of another cluster
    // alone.
    bed.put_nic("rg-flex", "left-behind", "cluster-1")?;
    bed.put_nic("rg-flex", "another", "cluster-2")?;
    bed.until_held(&["another"]).await?;

    bed.create_machine(&machine("one", "plain", "Standard_D8s_v5")?).await?;
    let up = bed.machine_in("one", Phase::Running).await?;
    let held = bed.names_of("one", &["another"]).await?;
    assert_eq!(bed.held(), held);
    let status = up.status.unwrap_or_default();
    let vm = status.place.as_ref().map(|place| place.vm.clone()).unwrap_or_default();
    assert!(vm.starts_with("one-") && vm.len() == "one-".len() + 8, "{vm}");
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex");
    assert_eq!(
        status.provider_id,
        Some(format!("azure-flex://{group}/providers/Microsoft.Compute/virtualMachines/{vm}"))
    );
    assert!(status.vm_id.is_some() && status.completed_at.is_some());

    // A machine without quota reports the failure, and leaves no resources.
    bed.claimed_machine("two", "plain", "Standard_NC24ads_A100_v4").await?;
    let ended = bed.machine_in("two", Phase::Gone).await?;
    let failure = ended.status.and_then(|status| status.failure).unwrap_or_default();
    assert_eq!((failure.class.as_str(), failure.cause.as_str()), ("capacity", "QuotaExceeded"));
    assert_eq!(failure.arm_code.as_deref(), Some("OperationNotAllowed"));
    assert_eq!(bed.held(), held);
    // Case 11: the claim is deleted, and so is its machine.
    bed.claims().delete("two", &DeleteParams::default()).await?;
    until_object(bed.machines(), "two", "a machine that is gone", is_gone).await?;

    bed.machines().delete("one", &DeleteParams::default()).await?;
    until_object(bed.machines(), "one", "a machine that is gone", is_gone).await?;
    assert_eq!(bed.held(), ["another"]);
    Ok(())
}

#[tokio::test]
async fn case_12_a_vm_deleted_in_the_portal_ends_its_machine_and_its_claim() -> Result<()> {
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    bed.claimed_machine("one", "plain", "Standard_D8s_v5").await?;
    let up = bed.machine_in("one", Phase::Running).await?;
    bed.launch("one").await?;
    let vm = up.status.and_then(|status| status.place).unwrap_or_default().vm;
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Compute/virtualMachines/{vm}?api-version=2024-11-01"
    );
    bed.arm().delete(&path)?;
    until_object(bed.claims(), "one", "a claim that is gone", is_gone).await?;
    until_object(bed.machines(), "one", "a machine that is gone", is_gone).await?;
    bed.until_held(&[]).await
}

#[tokio::test]
async fn case_26_a_group_that_cannot_be_listed_does_not_keep_another_from_being_swept() -> Result<()>
{
    let fault = "faults: [{on: {method: GET, pathContains: 'resourceGroups/rg-flex/providers/Microsoft.Network/networkInterfaces'}, fault: {answer: {status: 403, body: '{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}'}}}]";
    let bed = FlexBed::new(fault).await?;
    bed.ready_class("a-first").await?;
    let mut other = class("b-second");
    other["spec"]["resourceGroup"] = "rg-other".into();
    bed.create_class(&other).await?;
    bed.put_nic("rg-flex", "unseen", "cluster-1")?;
    bed.put_nic("rg-other", "seen", "cluster-1")?;
    bed.until_held(&["unseen"]).await
}

#[tokio::test]
async fn a_claim_is_never_ended_for_a_machine_that_it_does_not_name() -> Result<()> {
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    // A tenant creates a machine that names a foreign claim, pending or registered.
    for (victim, is_registered) in [("pending", false), ("registered", true)] {
        let uid = bed.claim(victim, "plain").await?;
        let forged_name = format!("forged-for-{victim}");
        let mut forged = machine(&forged_name, "plain", "Standard_D8s_v5")?;
        forged.spec.claim_ref = Some(ClaimReference { name: victim.to_owned(), uid });
        bed.create_machine(&forged).await?;
        let up = bed.machine_in(&forged_name, Phase::Running).await?;
        if is_registered {
            bed.register(victim, "azure-flex:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/its-own").await?;
        }
        // The VM of the forged machine is deleted, as if it had failed.
        let vm = up.status.and_then(|status| status.place).unwrap_or_default().vm;
        let path = format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Compute/virtualMachines/{vm}?api-version=2024-11-01"
        );
        bed.arm().delete(&path)?;
        bed.machine_in(&forged_name, Phase::Gone).await?;
        let claim = bed.claims().get(victim).await?;
        assert!(claim.metadata.deletion_timestamp.is_none(), "{victim}");
    }
    Ok(())
}

#[tokio::test]
async fn what_another_team_owns_under_the_names_of_a_machine_is_left_alone_and_told() -> Result<()>
{
    let mut bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    bed.put_nic("rg-flex", "one-nic", "cluster-2")?;
    bed.create_machine(&machine("one", "plain", "Standard_D8s_v5")?).await?;
    let up = bed.machine_in("one", Phase::Running).await?;
    let vm = up.status.and_then(|status| status.place).unwrap_or_default().vm;
    // While the controller is down, the VM is replaced by one of the same name with the same tags.
    bed.stop();
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Compute/virtualMachines/{vm}?api-version=2024-11-01"
    );
    let arm = bed.arm();
    let mut body = arm.get(&path)?.body;
    arm.delete(&path)?;
    bed.until_held(&["one-nic"]).await?;
    body["properties"]["networkProfile"] = serde_json::json!({ "networkInterfaces": [] });
    body["properties"]["storageProfile"]["osDisk"]["name"] = "theirs".into();
    arm.put(&path, &body)?;
    bed.machines().delete("one", &DeleteParams::default()).await?;
    bed.restart();
    until_object(bed.machines(), "one", "a machine that is released", is_gone).await?;
    let mut held = vec!["one-nic".to_owned(), "theirs".to_owned(), vm];
    held.sort_unstable();
    assert_eq!(bed.held(), held);
    Ok(())
}

#[tokio::test]
async fn a_panic_sets_one_machine_aside_while_another_comes_up() -> Result<()> {
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    // Both machines need user data; making the user data of the first one panics.
    let faulty = format!("{FAULTY}one");
    bed.create_machine(&machine(&faulty, "plain", "Standard_D8s_v5")?).await?;
    bed.machine_in(&faulty, Phase::VmPut).await?;
    bed.create_machine(&machine("honest", "plain", "Standard_D8s_v5")?).await?;
    bed.machine_in("honest", Phase::Running).await?;
    assert!(!bed.is_finished(), "the controller goes on");
    Ok(())
}
