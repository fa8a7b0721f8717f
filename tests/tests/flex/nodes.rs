//! Nodes of machines.

use anyhow::{Context as _, Result};
use bringup_objects::flex::machine::Phase;
use bringup_world::arm::Arm;
use k8s_openapi::api::core::v1::{Node, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::common::{Field, SUBSCRIPTION, until};

async fn node(
    field: &Field,
    name: &str,
    claim: &str,
    address: &str,
    id: Option<&str>,
) -> Result<()> {
    let nodes: Api<Node> = Api::all(field.client.clone());
    let object = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": { "karpenter.azure.com/node-claim": claim } },
        "spec": { "providerID": id },
    });
    nodes.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let status =
        json!({ "status": { "addresses": [{ "type": "InternalIP", "address": address }] } });
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

#[tokio::test]
async fn case_46_a_node_gets_its_provider_id_only_with_the_address_of_its_nic() -> Result<()> {
    let field = Field::new("").await?;
    field.ready_class("plain").await?;
    field.claimed_machine("one", "plain", "Standard_D8s_v5").await?;
    let status = field.machine_in("one", Phase::Running).await?.status.unwrap_or_default();
    let (wanted, nic) = (status.provider_id, status.place.unwrap_or_default().nic);
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Network/networkInterfaces/{nic}?api-version=2024-05-01"
    );
    let nic = Arm::new(field.azure.clone()).get(&path)?.body;
    let address = nic.pointer("/properties/ipConfigurations/0/properties/privateIPAddress");
    let address = address.and_then(|address| address.as_str()).context("the NIC has an address")?;

    // A Node that only claims to be this machine is not accepted.
    node(&field, "liar", "one", "10.9.9.9", None).await?;
    let about = "NodeIdentityConflict";
    let events: Api<Event> = Api::namespaced(field.client.clone(), "default");
    let conflicts = async |count: usize| -> Result<Vec<String>> {
        loop {
            let found = events.list(&ListParams::default()).await?.items.into_iter();
            let found = found.filter(|event| event.reason.as_deref() == Some(about));
            let notes: Vec<String> = found.filter_map(|event| event.note).collect();
            if notes.len() >= count {
                return Ok(notes);
            }
            tokio::task::yield_now().await;
        }
    };
    let told = conflicts(1).await?;
    assert!(told[0].contains("liar") && told[0].contains("another address"), "{told:?}");

    node(&field, "honest", "one", address, None).await?;
    let nodes: Api<Node> = Api::all(field.client.clone());
    let has_id = |node: Option<&Node>| {
        node.and_then(|node| node.spec.as_ref()).is_some_and(|spec| spec.provider_id.is_some())
    };
    let known = until(nodes.clone(), "honest", "a provider id", has_id).await?;
    assert_eq!(known.and_then(|node| node.spec?.provider_id), wanted);
    let liar = nodes.get("liar").await?;
    assert_eq!(liar.spec.and_then(|spec| spec.provider_id), None);

    // A providerID that another client has set cannot change, and the status reports it.
    node(&field, "foreign", "one", address, Some("azure:///subscriptions/x/vm")).await?;
    let told = conflicts(2).await?;
    assert!(told.iter().any(|note| note.contains("azure:///subscriptions/x/vm")), "{told:?}");
    Ok(())
}

#[tokio::test]
async fn a_node_whose_address_comes_after_it_has_registered_is_not_accused() -> Result<()> {
    let field = Field::new("").await?;
    field.ready_class("plain").await?;
    field.claimed_machine("one", "plain", "Standard_D8s_v5").await?;
    let status = field.machine_in("one", Phase::Running).await?.status.unwrap_or_default();
    let (wanted, nic) = (status.provider_id, status.place.unwrap_or_default().nic);
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Network/networkInterfaces/{nic}?api-version=2024-05-01"
    );
    let looks = || {
        let requests = field.azure.with(|azure| azure.journal().requests().to_vec());
        requests.iter().filter(|one| one.method == "GET" && one.path.contains(&nic)).count()
    };
    let before = looks();
    let nodes: Api<Node> = Api::all(field.client.clone());
    let labels = json!({ "karpenter.azure.com/node-claim": "one" });
    let early = json!({ "metadata": { "name": "early", "labels": labels } });
    nodes.create(&PostParams::default(), &serde_json::from_value(early)?).await?;
    // It has been looked at, without an address.
    while looks() == before {
        tokio::task::yield_now().await;
    }
    let body = Arm::new(field.azure.clone()).get(&path)?.body;
    let address = body.pointer("/properties/ipConfigurations/0/properties/privateIPAddress");
    let status =
        json!({ "status": { "addresses": [{ "type": "InternalIP", "address": address }] } });
    nodes.patch_status("early", &PatchParams::default(), &Patch::Merge(&status)).await?;
    let has_id = |node: Option<&Node>| {
        node.and_then(|node| node.spec.as_ref()).is_some_and(|spec| spec.provider_id.is_some())
    };
    let known = until(nodes, "early", "a provider id", has_id).await?;
    assert_eq!(known.and_then(|node| node.spec?.provider_id), wanted);
    let events: Api<Event> = Api::namespaced(field.client.clone(), "default");
    let events = events.list(&ListParams::default()).await?;
    let accused = |event: &Event| event.reason.as_deref() == Some("NodeIdentityConflict");
    assert!(!events.iter().any(accused), "{events:?}");
    Ok(())
}

#[tokio::test]
async fn the_token_of_a_machine_is_gone_when_its_node_is_there() -> Result<()> {
    let field = Field::new("").await?;
    field.ready_class("plain").await?;
    field.claimed_machine("one", "plain", "Standard_D8s_v5").await?;
    let machine = field.machine_in("one", Phase::Running).await?;
    let id = machine.status.clone().and_then(|status| status.provider_id).unwrap_or_default();
    let joining = crate::joining::joining(&field).await?;
    bringup_flex::engine::Bootstrap::custom_data(&joining, &machine)
        .await
        .map_err(|why| anyhow::anyhow!(why))?;
    let secrets: Api<Secret> = Api::namespaced(field.client.clone(), "kube-system");
    let tokens = async || -> Result<usize> {
        let all = secrets.list(&ListParams::default()).await?;
        let kind = "bootstrap.kubernetes.io/token";
        Ok(all.items.iter().filter(|secret| secret.type_.as_deref() == Some(kind)).count())
    };
    assert_eq!(tokens().await?, 1);
    node(&field, "one", "one", "10.1.0.4", Some(&id)).await?;
    while tokens().await? > 0 {
        tokio::task::yield_now().await;
    }
    Ok(())
}
