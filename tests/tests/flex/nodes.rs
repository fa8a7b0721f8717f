//! Nodes of machines.

use anyhow::{Context as _, Result};
use bringup_objects::flex::machine::Phase;
use bringup_testbed::wait::{polled, until, until_object};
use k8s_openapi::api::core::v1::{Node, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::convert::Infallible;

use crate::common::{FlexBed, SUBSCRIPTION};

async fn node(
    bed: &FlexBed,
    name: &str,
    claim: &str,
    address: &str,
    id: Option<&str>,
) -> Result<()> {
    let nodes: Api<Node> = Api::all(bed.client.clone());
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
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    bed.claimed_machine("one", "plain", "Standard_D8s_v5").await?;
    let status = bed.machine_in("one", Phase::Running).await?.status.unwrap_or_default();
    let (wanted, nic) = (status.provider_id, status.place.unwrap_or_default().nic);
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Network/networkInterfaces/{nic}?api-version=2024-05-01"
    );
    let nic = bed.arm().get(&path)?.body;
    let address = nic.pointer("/properties/ipConfigurations/0/properties/privateIPAddress");
    let address = address.and_then(|address| address.as_str()).context("the NIC has an address")?;

    // A Node that only claims to be this machine is not accepted.
    node(&bed, "liar", "one", "10.9.9.9", None).await?;
    let about = "NodeIdentityConflict";
    let events: Api<Event> = Api::namespaced(bed.client.clone(), "default");
    let conflicts = async |count: usize| -> Result<Vec<String>> {
        let notes = polled(async || {
            let found = events.list(&ListParams::default()).await?.items.into_iter();
            let found = found.filter(|event| event.reason.as_deref() == Some(about));
            Ok::<Vec<String>, kube::Error>(found.filter_map(|event| event.note).collect())
        });
        Ok(until(format!("{count} conflicts"), notes, |notes| notes.len() >= count).await?)
    };
    let told = conflicts(1).await?;
    assert!(told[0].contains("liar") && told[0].contains("another address"), "{told:?}");

    node(&bed, "honest", "one", address, None).await?;
    let nodes: Api<Node> = Api::all(bed.client.clone());
    let has_id = |node: Option<&Node>| {
        node.and_then(|node| node.spec.as_ref()).is_some_and(|spec| spec.provider_id.is_some())
    };
    let known = until_object(nodes.clone(), "honest", "a provider id", has_id).await?;
    assert_eq!(known.and_then(|node| node.spec?.provider_id), wanted);
    let liar = nodes.get("liar").await?;
    assert_eq!(liar.spec.and_then(|spec| spec.provider_id), None);

    // A providerID that another client has set cannot change, and the status reports it.
    node(&bed, "foreign", "one", address, Some("azure:///subscriptions/x/vm")).await?;
    let told = conflicts(2).await?;
    assert!(told.iter().any(|note| note.contains("azure:///subscriptions/x/vm")), "{told:?}");
    Ok(())
}

#[tokio::test]
async fn a_node_whose_address_comes_after_its_registration_gets_no_conflict_event() -> Result<()> {
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    bed.claimed_machine("one", "plain", "Standard_D8s_v5").await?;
    let status = bed.machine_in("one", Phase::Running).await?.status.unwrap_or_default();
    let (wanted, nic) = (status.provider_id, status.place.unwrap_or_default().nic);
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Network/networkInterfaces/{nic}?api-version=2024-05-01"
    );
    let looks = || {
        let requests = bed.azure.with(|azure| azure.journal().requests().to_vec());
        requests.iter().filter(|one| one.method == "GET" && one.path.contains(&nic)).count()
    };
    let before = looks();
    let nodes: Api<Node> = Api::all(bed.client.clone());
    let labels = json!({ "karpenter.azure.com/node-claim": "one" });
    let early = json!({ "metadata": { "name": "early", "labels": labels } });
    nodes.create(&PostParams::default(), &serde_json::from_value(early)?).await?;
    // The controller has looked at the Node while the Node had no address.
    let looked = polled(async || Ok::<_, Infallible>(looks()));
    until("a look at the NIC", looked, |looks| *looks != before).await?;
    let body = bed.arm().get(&path)?.body;
    let address = body.pointer("/properties/ipConfigurations/0/properties/privateIPAddress");
    let status =
        json!({ "status": { "addresses": [{ "type": "InternalIP", "address": address }] } });
    nodes.patch_status("early", &PatchParams::default(), &Patch::Merge(&status)).await?;
    let has_id = |node: Option<&Node>| {
        node.and_then(|node| node.spec.as_ref()).is_some_and(|spec| spec.provider_id.is_some())
    };
    let known = until_object(nodes, "early", "a provider id", has_id).await?;
    assert_eq!(known.and_then(|node| node.spec?.provider_id), wanted);
    let events: Api<Event> = Api::namespaced(bed.client.clone(), "default");
    let events = events.list(&ListParams::default()).await?;
    let accused = |event: &Event| event.reason.as_deref() == Some("NodeIdentityConflict");
    assert!(!events.iter().any(accused), "{events:?}");
    Ok(())
}

#[tokio::test]
async fn the_token_of_a_machine_is_deleted_when_its_node_exists() -> Result<()> {
    let bed = FlexBed::new("").await?;
    bed.ready_class("plain").await?;
    bed.claimed_machine("one", "plain", "Standard_D8s_v5").await?;
    let machine = bed.machine_in("one", Phase::Running).await?;
    let id = machine.status.clone().and_then(|status| status.provider_id).unwrap_or_default();
    let joining = crate::joining::joining(&bed).await?;
    bringup_flex::engine::Bootstrap::custom_data(&joining, &machine)
        .await
        .map_err(|why| anyhow::anyhow!(why))?;
    let secrets: Api<Secret> = Api::namespaced(bed.client.clone(), "kube-system");
    let tokens = async || -> Result<usize> {
        let all = secrets.list(&ListParams::default()).await?;
        let kind = "bootstrap.kubernetes.io/token";
        Ok(all.items.iter().filter(|secret| secret.type_.as_deref() == Some(kind)).count())
    };
    assert_eq!(tokens().await?, 1);
    node(&bed, "one", "one", "10.1.0.4", Some(&id)).await?;
    until("the end of the token", polled(tokens), |count| *count == 0).await?;
    Ok(())
}
