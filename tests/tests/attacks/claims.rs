//! Machines that name the NodeClaims of other owners.

use bringup_testbed::wait::until_object;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bringup_objects::NodeClaim;
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::flex::machine::FlexMachineStatus;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::flex::{CLASS, create_machine, machines};
use super::installed::Installed;

const OWN: &str = "azure-flex:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/its-own";

/// Machines whose VMs fail in the scenario.
const FAILING: [&str; 4] = ["fails-honest", "fails-pending", "fails-named", "fails-registered"];
/// Longer than Azure waits for an operating system.
const GIVEN_UP: Duration = Duration::from_mins(25);

fn claims(installed: &Installed) -> Api<NodeClaim> {
    Api::all(installed.admin())
}

/// Creates a claim, and returns the reference by which a machine names it.
async fn create_claim(installed: &Installed, name: &str) -> Result<Value> {
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": name },
        "spec": { "requirements": [], "nodeClassRef": {
            "group": "flex.aks.azure.com", "kind": "AzureFlexNodeClass", "name": CLASS } },
    });
    let resource = ApiResource::erase::<NodeClaim>(&());
    let all: Api<DynamicObject> = Api::all_with(installed.admin(), &resource);
    let claim = all.create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
    Ok(json!({ "name": name, "uid": claim.uid().context("a uid")? }))
}

/// Writes to a claim the status that Karpenter writes.
async fn accept(installed: &Installed, claim: &str, id: &str, is_registered: bool) -> Result<()> {
    let mut status = json!({ "providerID": id, "imageID": "ubuntu" });
    if is_registered {
        status["conditions"] = json!([{
            "type": "Registered", "status": "True", "reason": "Registered", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
    }
    let patch = Patch::Merge(json!({ "status": status }));
    claims(installed).patch_status(claim, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until the status of a machine is as wanted.
async fn status_when(
    installed: &Installed,
    name: &str,
    what: &str,
    is: impl Fn(&FlexMachineStatus) -> bool + Send,
) -> Result<()> {
    let is = |machine: Option<&AzureFlexMachine>| {
        machine.and_then(|machine| machine.status.as_ref()).is_some_and(&is)
    };
    until_object(machines(installed), name, format!("{name} to be {what}"), is).await?;
    Ok(())
}

/// Creates machines whose VMs fail, one of them honest and the others forged. The failure ends a claim
/// that names the failed machine.
pub(super) async fn forge(installed: &Installed) -> Result<()> {
    let pending = create_claim(installed, "pending").await?;
    let named = create_claim(installed, "named").await?;
    accept(installed, "named", OWN, false).await?;
    let registered = create_claim(installed, "registered").await?;
    accept(installed, "registered", OWN, true).await?;
    for claim in [pending, named, registered] {
        let name = format!("fails-{}", claim["name"].as_str().unwrap_or_default());
        create_machine(installed, &name, Some(claim)).await?;
    }
    // The honest machine is the last one: when its claim is deleted, the controller has handled the
    // others.
    let honest = create_claim(installed, "fails-honest").await?;
    create_machine(installed, "fails-honest", Some(honest)).await?;
    for name in FAILING {
        status_when(installed, name, "accepted", |status| status.accepted_at.is_some()).await?;
    }
    let status = machines(installed).get("fails-honest").await?.status;
    let id = status.and_then(|status| status.provider_id).context("an id")?;
    accept(installed, "fails-honest", &id, false).await?;
    // Azure stops waiting for the operating systems of the VMs.
    installed.bed.azure.advance(GIVEN_UP);
    for name in FAILING {
        status_when(installed, name, "failed", |status| status.failure.is_some()).await?;
    }
    Ok(())
}

pub(super) async fn are_not_deleted(installed: &Installed) -> Result<()> {
    // The claim of the honest machine is deleted a minute after the failure, so the deletion of claims
    // works.
    let is_gone = |claim: Option<&NodeClaim>| {
        claim.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some())
    };
    until_object(claims(installed), "fails-honest", "the claim to be deleted", is_gone).await?;
    for name in ["pending", "named", "registered"] {
        let claim = claims(installed).get(name).await?;
        ensure!(claim.metadata.deletion_timestamp.is_none(), "{name} is deleted");
    }
    Ok(())
}
