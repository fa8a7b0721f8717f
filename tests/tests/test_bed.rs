//! A real control plane and a simulated Azure together.

use std::time::Duration;

use bringup_azure_sim::scenario::{self, Scenario};
use bringup_testbed::CrdSet;
use bringup_world::World;
use bringup_world::provider::Provider;
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::wait::{Condition, await_condition, conditions};
use kube::{Api, ResourceExt as _};

/// The end of a wait that only a broken test reaches.
const FOREVER: Duration = Duration::from_mins(4);

#[tokio::test]
async fn a_vm_that_joins_is_a_node_and_a_vm_that_is_gone_is_none() -> anyhow::Result<()> {
    let world = World::start(Scenario::default(), &[CrdSet::KarpenterAzure]).await?;
    let provider = Provider::new(&world);
    provider.create_pool("default").await?;
    provider.launch("default-a", "default", "202601.13.0").await?;
    assert_eq!(provider.bootstrap("default-a")?, None);
    world.azure.advance(Duration::from_mins(1));

    let nodes: Api<Node> = Api::all(world.control_plane.client());
    let node =
        tokio::time::timeout(FOREVER, await_condition(nodes.clone(), "aks-default-a", exists()))
            .await??;
    let node = node.expect("the condition holds for a Node that is there");
    let provider_id =
        node.spec.as_ref().and_then(|spec| spec.provider_id.clone()).unwrap_or_default();
    assert!(provider_id.ends_with("/resourceGroups/mc_rg1_aks1_eastus/providers/Microsoft.Compute/virtualMachines/aks-default-a"), "{provider_id}");

    let uid = node.uid().expect("an object that was stored has a uid");
    provider.clean_up("default-a").await?;
    world.azure.advance(Duration::from_mins(1));
    tokio::time::timeout(
        FOREVER,
        await_condition(nodes, "aks-default-a", conditions::is_deleted(&uid)),
    )
    .await??;
    Ok(())
}

#[tokio::test]
async fn a_failed_bootstrap_is_told_as_karpenter_tells_it_without_the_exit_code()
-> anyhow::Result<()> {
    let text = include_str!("../scenarios/demo.yaml");
    let world =
        World::start(scenario::parse("demo.yaml", text)?, &[CrdSet::KarpenterAzure]).await?;
    let provider = Provider::new(&world);
    provider.create_pool("default").await?;
    provider.launch("default-b", "default", "202601.27.0").await?;
    let error = provider.bootstrap("default-b")?.expect("oras is missing from this image");
    assert!(error["message"].as_str().unwrap_or_default().contains("\"ExitCode\": \"211\""));
    provider.report_failure("default-b", &error).await?;
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(world.control_plane.client(), "default");
    let events = events
        .list(&kube::api::ListParams::default().fields("reason=AsyncProvisioningError"))
        .await?;
    let note = events.items[0].note.as_deref().unwrap_or_default();
    assert!(note.starts_with("Failed to register: GET https://"), "{note}");
    assert!(!note.contains("211"), "{note}");
    provider.clean_up("default-b").await?;
    world.azure.advance(Duration::from_mins(1));
    assert!(world.azure.with(|azure| azure.resources()).is_empty());
    Ok(())
}

#[tokio::test]
async fn one_clock_for_all_jumps_fifteen_minutes_and_does_not_wait_for_them() -> anyhow::Result<()>
{
    let yaml = "rules: [{name: os, when: {namePrefix: aks-stuck}, boot: {os: times-out}}]";
    let world = World::start(scenario::parse("inline", yaml)?, &[CrdSet::KarpenterAzure]).await?;
    let provider = Provider::new(&world);
    provider.create_pool("default").await?;
    provider.launch("default-c", "default", "202601.13.0").await?;
    provider.bootstrap("default-c")?;
    world.azure.advance(Duration::from_mins(1));
    let leases: Api<Lease> = Api::namespaced(world.control_plane.client(), "kube-node-lease");
    tokio::time::timeout(FOREVER, await_condition(leases.clone(), "aks-default-c", exists()))
        .await??;

    let before = world.now();
    let jumped = world.azure.clock().jumped();
    world.azure.advance(Duration::from_mins(15));
    assert!(world.now().duration_since(before).as_mins() >= 15);
    // All of it was jumped, and nothing of it was waited for.
    assert_eq!(world.azure.clock().jumped() - jumped, SignedDuration::from_mins(15));

    // What is outside Azure follows the same clock: the kubelet's Lease is renewed after the jump.
    let renewed = move |lease: Option<&Lease>| {
        let at =
            lease.and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref()).map(|time| time.0);
        at.is_some_and(|at| at.duration_since(before).as_mins() >= 15)
    };
    tokio::time::timeout(FOREVER, await_condition(leases, "aks-default-c", renewed)).await??;
    Ok(())
}

fn exists<K>() -> impl Condition<K> {
    |object: Option<&K>| object.is_some()
}
