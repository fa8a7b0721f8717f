//! The Azure role allows exactly what the controller requests from Azure.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use bringup_end_to_end::arm;
use bringup_objects::flex::machine::Phase;
use bringup_provision::grpc::plugin::Pools as _;
use bringup_provision::pools::{Cluster, ID, KubePools, LABEL};
use bringup_testbed::wait::{is_gone, until_object};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::common::{FlexBed, machine};

const ROLE: &str = include_str!("../../../deploy/azure/flex-role.json");

/// The actions that Azure checks in addition to the request itself: a write also needs the right to use
/// the resources in its body.
const IMPLIED: [(&str, &str); 3] = [
    (
        "Microsoft.Network/networkInterfaces/write",
        "Microsoft.Network/virtualNetworks/subnets/join/action",
    ),
    ("Microsoft.Compute/virtualMachines/write", "Microsoft.Network/networkInterfaces/join/action"),
    ("Microsoft.Compute/virtualMachines/write", "Microsoft.Compute/disks/write"),
];

/// The actions that are needed only when Azure does not finish at once.
const SOMETIMES: [&str; 2] = [
    "Microsoft.Network/locations/operations/read",
    // Azure deletes a disk with its VM. Only a leftover disk is deleted by itself.
    "Microsoft.Compute/disks/delete",
];

/// The actions that the real Azure needs and the simulated one does not: reads of custom images, and
/// reads of the addresses that report the progress of deletions.
const ELSEWHERE: [&str; 6] = [
    "Microsoft.Compute/images/read",
    "Microsoft.Compute/galleries/read",
    "Microsoft.Compute/galleries/images/read",
    "Microsoft.Compute/galleries/images/versions/read",
    "Microsoft.Compute/locations/diskOperations/read",
    "Microsoft.Network/locations/operationResults/read",
];

/// The action that a request needs, as Azure names it.
fn action(method: &str, path: &str) -> Option<String> {
    let path = path.split('?').next().unwrap_or_default().trim_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let lower = path.to_ascii_lowercase();
    let Some(providers) = lower.split('/').position(|part| part == "providers") else {
        let read = "Microsoft.Resources/subscriptions/resourceGroups/read";
        return (method == "GET" && parts.len() == 4).then(|| read.to_owned());
    };
    let provider = parts.get(providers + 1)?;
    // After the provider, the path alternates between kinds and names.
    let kinds: Vec<&str> = parts[providers + 2..].iter().step_by(2).copied().collect();
    let kinds = kinds.join("/");
    Some(match method {
        "GET" => format!("{provider}/{kinds}/read"),
        "PUT" => format!("{provider}/{kinds}/write"),
        "DELETE" => format!("{provider}/{kinds}/delete"),
        "POST" => format!("{provider}/{kinds}/action"),
        _ => return None,
    })
}

fn lower(actions: impl IntoIterator<Item = impl AsRef<str>>) -> BTreeSet<String> {
    actions.into_iter().map(|action| action.as_ref().to_ascii_lowercase()).collect()
}

#[test]
fn the_action_of_a_request_is_read_from_its_path() {
    let group = "/subscriptions/s/resourceGroups/g";
    for (method, path, wanted) in [
        ("GET", "", "Microsoft.Resources/subscriptions/resourceGroups/read"),
        ("GET", "/providers/Microsoft.Compute/disks", "Microsoft.Compute/disks/read"),
        (
            "POST",
            "/providers/Microsoft.Compute/virtualMachines/a/restart?api-version=1",
            "Microsoft.Compute/virtualMachines/restart/action",
        ),
        (
            "GET",
            "/providers/Microsoft.Network/virtualNetworks/a/subnets/b",
            "Microsoft.Network/virtualNetworks/subnets/read",
        ),
    ] {
        assert_eq!(action(method, &format!("{group}{path}")).as_deref(), Some(wanted));
    }
    assert_eq!(action("PATCH", group), None);
}

#[tokio::test]
async fn the_role_in_azure_allows_exactly_what_is_asked_of_it() -> Result<()> {
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    bed.put_nic("rg-flex", "left-behind", "cluster-1")?;
    bed.put_nic("rg-flex", "another", "cluster-2")?;
    bed.until_held(&["another"]).await?;
    bed.claimed_machine("one", "plain", "Standard_D8s_v5").await?;
    bed.machine_in("one", Phase::Running).await?;
    // A Node without a provider ID.
    let node = json!({ "metadata": { "name": "one", "labels": { "karpenter.azure.com/node-claim": "one" } } });
    let nodes: Api<Node> = Api::all(bed.client.clone());
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    // A pool of aks-flex that is restarted.
    let mut pool = machine("pool", "plain", "Standard_D8s_v5")?;
    let meta = &mut pool.metadata;
    meta.labels.get_or_insert_default().insert(LABEL.to_owned(), "pool".to_owned());
    meta.annotations.get_or_insert_default().insert(ID.to_owned(), "pool".to_owned());
    bed.create_machine(&pool).await?;
    bed.machine_in("pool", Phase::Running).await?;
    let cluster = Cluster { server: String::new(), authority: Vec::new() };
    let scopes = [crate::common::SUBSCRIPTION.parse()?].into_iter().collect();
    let pools =
        KubePools::new(bed.client.clone(), arm::client(&bed.azure, "flex"), cluster, scopes);
    pools.restart("pool").await?;
    // The gRPC provider, which serves Karpenter, reads quotas.
    let (subscription, region) = (crate::common::SUBSCRIPTION.parse()?, "eastus2".parse()?);
    let urgent = bringup_azure::Priority::Schedule;
    arm::client(&bed.azure, "flex").usages(&subscription, &region, urgent).await?;
    for name in ["one", "pool"] {
        bed.claims().delete(name, &DeleteParams::default()).await.ok();
        bed.machines().delete(name, &DeleteParams::default()).await.ok();
        until_object(bed.machines(), name, "a machine that is gone", is_gone).await?;
    }
    bed.until_held(&["another"]).await?;

    let requests = bed.azure.with(|azure| azure.journal().requests().to_vec());
    let mut asked = BTreeSet::new();
    for request in &requests {
        let action = action(&request.method, &request.path);
        asked.insert(action.with_context(|| format!("no action for {request:?}"))?);
    }
    let asked = lower(asked);
    let implied = IMPLIED.iter().filter(|(write, _)| asked.contains(&write.to_ascii_lowercase()));
    let needed: BTreeSet<String> =
        lower(implied.map(|(_, action)| action)).union(&asked).cloned().collect();
    let role: Value = serde_json::from_str(ROLE)?;
    let allowed = role["Actions"].as_array().context("no actions")?;
    let allowed = lower(allowed.iter().filter_map(Value::as_str));
    let missing: Vec<&String> = needed.difference(&allowed).collect();
    assert!(missing.is_empty(), "the role lacks {missing:?}");
    let elsewhere = lower(ELSEWHERE);
    let sometimes = lower(SOMETIMES);
    let needless: Vec<&String> =
        allowed.difference(&needed).filter(|action| !sometimes.contains(*action)).collect();
    assert_eq!(needless, elsewhere.iter().collect::<Vec<_>>(), "no code uses these permissions");
    assert_eq!(role["NotActions"], json!([]));
    Ok(())
}
