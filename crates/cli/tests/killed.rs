//! The real controller, killed at several moments: after a restart the end is the same.

use std::path::Path;

use anyhow::{Context as _, Result};
use bringup_azure_sim::scenario;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, find};
use bringup_objects::report::{BootstrapReport, definition};
use bringup_objects::{MANAGER, NodeClaim};
use bringup_testbed::CrdSet;
use bringup_world::World;
use bringup_world::process::ControllerProcess;
use bringup_world::provider::Provider;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt as _};

const NAMESPACE: &str = "bringup-system";
const SCENARIO: &str = "rules: [{name: all, boot: {script: {ends: {exitCode: 211, outerExitCode: 1, output: \"oras: command not found\\n+ exit 211\"}}}}]";

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_bringup"))
}

/// When the controller is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    AtOnce,
    AfterTheReport,
    AfterTheCondition,
    AfterTheEvent,
}

#[tokio::test]
async fn a_controller_that_is_killed_and_started_again_says_everything_once() -> Result<()> {
    let world =
        World::start(scenario::parse("killed", SCENARIO)?, &[CrdSet::KarpenterAzure]).await?;
    world.control_plane.install_definitions([definition()]).await?;
    let client = world.control_plane.client();
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    let karpenter = Provider::new(&world);
    karpenter.create_pool("default").await?;
    let claims: Api<NodeClaim> = Api::all(client.clone());
    let reports: Api<BootstrapReport> = Api::namespaced(client.clone(), NAMESPACE);
    let events: Api<Event> = Api::namespaced(client, "default");

    // Asked to end, it gives its lease back: the next leader does not have to wait.
    let mut polite = ControllerProcess::start(program(), &world, NAMESPACE, &[]).await?;
    polite.logged("leading").await?;
    assert_eq!(polite.terminate()?, Some(0));
    let leases: Api<Lease> = Api::namespaced(world.control_plane.client(), NAMESPACE);
    let lease = leases.get("bringup-controller").await?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
    assert_eq!(holder, "");

    for (claim, moment) in [
        ("default-a", Moment::AtOnce),
        ("default-b", Moment::AfterTheReport),
        ("default-c", Moment::AfterTheCondition),
        ("default-d", Moment::AfterTheEvent),
    ] {
        let mut first = ControllerProcess::start(program(), &world, NAMESPACE, &[]).await?;
        first.logged("leading").await?;
        karpenter.launch(claim, "default", "202601.27.0").await?;
        let error = karpenter.bootstrap(claim)?.context("the script should fail")?;
        karpenter.report_failure(claim, &error).await?;
        match moment {
            Moment::AtOnce => {}
            Moment::AfterTheReport => drop(report_of(&reports, claim, |_| true).await?),
            Moment::AfterTheCondition => {
                await_condition(claims.clone(), claim, is_told).await?;
            }
            Moment::AfterTheEvent => {
                report_of(&reports, claim, BootstrapReport::is_announced).await?;
            }
        }
        first.kill()?;
        let second = ControllerProcess::start(program(), &world, NAMESPACE, &[]).await?;
        let report = report_of(&reports, claim, BootstrapReport::is_announced).await?;
        assert_eq!(report.cause(), Some("BinaryMissing"), "{moment:?}");
        await_condition(claims.clone(), claim, is_told).await?;
        let all = reports.list(&ListParams::default()).await?;
        let about = all.items.iter().filter(|report| report.spec.target_ref.name == claim);
        assert_eq!(about.count(), 1, "{moment:?}");
        let all = events.list(&ListParams::default()).await?;
        let ours = all.items.iter().filter(|event| {
            event.reporting_controller.as_deref() == Some(MANAGER)
                && event.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some(claim)
        });
        assert_eq!(ours.count(), 1, "{moment:?}");
        second.kill()?;
    }
    Ok(())
}

fn is_told(claim: Option<&NodeClaim>) -> bool {
    let conditions = claim.and_then(|claim| claim.status.as_ref()).map(|status| &status.conditions);
    conditions
        .and_then(|held| find(held, BOOTSTRAP_SUCCEEDED))
        .is_some_and(|held| held.status == "False")
}

/// The report of a claim, once it is as wanted. Its name cannot be known before.
async fn report_of(
    reports: &Api<BootstrapReport>,
    claim: &str,
    is: impl Fn(&BootstrapReport) -> bool,
) -> Result<BootstrapReport> {
    use futures::TryStreamExt as _;
    use kube::runtime::{WatchStreamExt as _, watcher};
    let all = watcher(reports.clone(), watcher::Config::default()).applied_objects();
    let found = all.try_filter(|report| {
        std::future::ready(report.spec.target_ref.name == claim && is(report))
    });
    let mut found = std::pin::pin!(found);
    let first = found.try_next();
    let report = tokio::time::timeout(std::time::Duration::from_mins(1), first)
        .await
        .context("waited in vain for a report")??;
    let report = report.context("the watch ended")?;
    assert!(!report.name_any().is_empty());
    Ok(report)
}
