//! The test bed itself: a real control plane and a simulated Azure together.

use std::time::Duration;

use bringup_end_to_end::TestBed;
use bringup_testbed::wait::until_object;
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};

#[tokio::test]
async fn a_vm_that_joins_is_a_node_and_a_vm_that_is_gone_is_none() -> anyhow::Result<()> {
    let bed = TestBed::builder().start().await?;
    let provider = &bed.karpenter;
    provider.create_pool("default").await?;
    provider.launch("default-a", "default", "202601.13.0").await?;
    assert_eq!(provider.bootstrap("default-a")?, None);
    bed.azure.advance(Duration::from_mins(1));

    let nodes: Api<Node> = Api::all(bed.client.clone());
    let node = until_object(nodes.clone(), "aks-default-a", "a Node", |it| it.is_some()).await?;
    let node = node.expect("the condition holds for a Node that exists");
    let provider_id =
        node.spec.as_ref().and_then(|spec| spec.provider_id.clone()).unwrap_or_default();
    assert!(provider_id.ends_with("/resourceGroups/mc_rg1_aks1_eastus/providers/Microsoft.Compute/virtualMachines/aks-default-a"), "{provider_id}");

    let uid = node.uid().expect("an object that was stored has a uid");
    provider.clean_up("default-a").await?;
    bed.azure.advance(Duration::from_mins(1));
    let is_deleted = |node: Option<&Node>| node.and_then(Node::uid).as_ref() != Some(&uid);
    until_object(nodes, "aks-default-a", "the end of the Node", is_deleted).await?;
    Ok(())
}

#[tokio::test]
async fn a_failed_bootstrap_is_an_event_without_the_exit_code_as_karpenter_writes_it()
-> anyhow::Result<()> {
    let text = include_str!("../scenarios/demo.yaml");
    let bed = TestBed::builder().scenario(text).start().await?;
    let provider = &bed.karpenter;
    provider.create_pool("default").await?;
    provider.launch("default-b", "default", "202601.27.0").await?;
    let error = provider.bootstrap("default-b")?.expect("oras is missing from this image");
    assert!(error["message"].as_str().unwrap_or_default().contains("\"ExitCode\": \"211\""));
    provider.report_failure("default-b", &error).await?;
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(bed.client.clone(), "default");
    let events = events
        .list(&kube::api::ListParams::default().fields("reason=AsyncProvisioningError"))
        .await?;
    let note = events.items[0].note.as_deref().unwrap_or_default();
    assert!(note.starts_with("Failed to register: GET https://"), "{note}");
    assert!(!note.contains("211"), "{note}");
    provider.clean_up("default-b").await?;
    bed.azure.advance(Duration::from_mins(1));
    assert!(bed.azure.with(|azure| azure.resources()).is_empty());
    Ok(())
}

#[tokio::test]
async fn one_clock_for_all_jumps_fifteen_minutes_and_does_not_wait_for_them() -> anyhow::Result<()>
{
    let yaml = "rules: [{name: os, when: {namePrefix: aks-stuck}, boot: {os: times-out}}]";
    let bed = TestBed::builder().scenario(yaml).start().await?;
    let provider = &bed.karpenter;
    provider.create_pool("default").await?;
    provider.launch("default-c", "default", "202601.13.0").await?;
    provider.bootstrap("default-c")?;
    bed.azure.advance(Duration::from_mins(1));
    let leases: Api<Lease> = Api::namespaced(bed.client.clone(), "kube-node-lease");
    until_object(leases.clone(), "aks-default-c", "a Lease", |it| it.is_some()).await?;

    let before = bed.now();
    let jumped = bed.azure.clock().jumped();
    bed.azure.advance(Duration::from_mins(15));
    assert!(bed.now().duration_since(before).as_mins() >= 15);
    // The clock jumped over the whole time, and nothing waited for it.
    assert_eq!(bed.azure.clock().jumped() - jumped, SignedDuration::from_mins(15));

    // Components outside Azure follow the same clock: the kubelet's Lease is renewed after the jump.
    let is_renewed = |lease: Option<&Lease>| {
        let lease = lease.and_then(|lease| lease.spec.as_ref());
        let at = lease.and_then(|lease| lease.renew_time.as_ref()).map(|time| time.0);
        at.is_some_and(|at| at.duration_since(before).as_mins() >= 15)
    };
    until_object(leases, "aks-default-c", "a renewed Lease", is_renewed).await?;
    Ok(())
}
