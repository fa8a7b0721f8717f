//! How machines come and go.

use anyhow::Result;
use bringup_objects::flex::FINALIZER;
use bringup_objects::flex::machine::Phase;
use bringup_world::arm::Arm;
use kube::ResourceExt as _;
use kube::api::DeleteParams;

use crate::common::{Field, SUBSCRIPTION, class, gone, machine, until};

#[tokio::test]
async fn case_30_a_machine_that_is_applied_becomes_a_vm_and_leaves_nothing_when_it_goes()
-> Result<()> {
    let quota = "quotas: [{region: eastus2, family: StandardNCADSA100v4Family, limit: 0}]";
    let field = Field::new(quota).await?;
    let class = field.ready_class("plain").await?;
    assert_eq!(class.finalizers(), [FINALIZER], "case 30: it is really stored");
    // What was left behind is found by its tags; what is another cluster's is left alone.
    field.put_nic("rg-flex", "left-behind", "cluster-1")?;
    field.put_nic("rg-flex", "another", "cluster-2")?;
    field.until_held(&["another"]).await?;

    field.create_machine(&machine("one", "plain", "Standard_D8s_v5")?).await?;
    let up = field.machine_in("one", Phase::Running).await?;
    assert_eq!(field.held(), ["another", "one", "one-nic", "one-osdisk"]);
    let status = up.status.unwrap_or_default();
    assert_eq!(
        status.provider_id.as_deref(),
        Some(
            "azure-flex:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-flex/providers/Microsoft.Compute/virtualMachines/one"
        )
    );
    assert!(status.vm_id.is_some() && status.completed_at.is_some());

    // Without quota it says so, and leaves nothing.
    field.claimed_machine("two", "plain", "Standard_NC24ads_A100_v4").await?;
    let ended = field.machine_in("two", Phase::Gone).await?;
    let failure = ended.status.and_then(|status| status.failure).unwrap_or_default();
    assert_eq!((failure.class.as_str(), failure.cause.as_str()), ("capacity", "QuotaExceeded"));
    assert_eq!(failure.arm_code.as_deref(), Some("OperationNotAllowed"));
    assert_eq!(field.held(), ["another", "one", "one-nic", "one-osdisk"]);
    // Case 11: its claim goes, and so does it.
    field.claims().delete("two", &DeleteParams::default()).await?;
    until(field.machines(), "two", "a machine that is gone", gone()).await?;

    field.machines().delete("one", &DeleteParams::default()).await?;
    until(field.machines(), "one", "a machine that is gone", gone()).await?;
    assert_eq!(field.held(), ["another"]);
    Ok(())
}

#[tokio::test]
async fn case_12_a_vm_that_somebody_removed_ends_its_machine_and_its_claim() -> Result<()> {
    let field = Field::new("").await?;
    field.ready_class("plain").await?;
    field.claimed_machine("one", "plain", "Standard_D8s_v5").await?;
    field.machine_in("one", Phase::Running).await?;
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Compute/virtualMachines/one?api-version=2024-11-01"
    );
    Arm::new(field.azure.clone()).delete(&path)?;
    until(field.claims(), "one", "a claim that is gone", gone()).await?;
    until(field.machines(), "one", "a machine that is gone", gone()).await?;
    field.until_held(&[]).await
}

#[tokio::test]
async fn case_26_a_group_that_cannot_be_listed_does_not_keep_another_from_being_swept() -> Result<()>
{
    let fault = "faults: [{on: {method: GET, pathContains: 'resourceGroups/rg-flex/providers/Microsoft.Network/networkInterfaces'}, fault: {answer: {status: 403, body: '{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}'}}}]";
    let field = Field::new(fault).await?;
    field.ready_class("a-first").await?;
    let mut other = class("b-second");
    other["spec"]["resourceGroup"] = "rg-other".into();
    field.create_class(&other).await?;
    field.put_nic("rg-flex", "unseen", "cluster-1")?;
    field.put_nic("rg-other", "seen", "cluster-1")?;
    field.until_held(&["unseen"]).await
}
