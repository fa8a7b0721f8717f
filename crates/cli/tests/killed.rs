//! The real controller, killed at several moments: after a restart the end is the same.

use std::path::Path;

use anyhow::{Context as _, Result};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::controller_process::ControllerProcess;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, find};
use bringup_objects::{BootstrapReport, NodeClaim};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;

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
async fn a_controller_that_is_killed_and_started_again_reports_everything_once() -> Result<()> {
    let bed = TestBed::builder().scenario(SCENARIO).endpoints().start().await?;
    let (karpenter, reports) = (&bed.karpenter, bed.reports());
    karpenter.create_pool("default").await?;

    // Asked to end, it gives its lease back: the next leader does not have to wait.
    let mut polite = ControllerProcess::start(program(), &bed, &[]).await?;
    polite.logged("leading").await?;
    assert_eq!(polite.terminate()?, Some(0));
    let leases: Api<Lease> = Api::namespaced(bed.client.clone(), &bed.settings.namespace);
    let lease = leases.get("bringup-controller").await?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
    assert_eq!(holder, "");

    for (claim, moment) in [
        ("default-a", Moment::AtOnce),
        ("default-b", Moment::AfterTheReport),
        ("default-c", Moment::AfterTheCondition),
        ("default-d", Moment::AfterTheEvent),
    ] {
        let mut first = ControllerProcess::start(program(), &bed, &[]).await?;
        first.logged("leading").await?;
        karpenter.launch(claim, "default", "202601.27.0").await?;
        let error = karpenter.bootstrap(claim)?.context("the script should fail")?;
        karpenter.report_failure(claim, &error).await?;
        match moment {
            Moment::AtOnce => {}
            Moment::AfterTheReport => drop(report_of(&bed, claim, |_| true).await?),
            Moment::AfterTheCondition => {
                bed.claim_when(claim, "a verdict", has_failed).await?;
            }
            Moment::AfterTheEvent => {
                report_of(&bed, claim, BootstrapReport::is_announced).await?;
            }
        }
        first.kill();
        let second = ControllerProcess::start(program(), &bed, &[]).await?;
        let report = report_of(&bed, claim, BootstrapReport::is_announced).await?;
        assert_eq!(report.cause(), Some("BinaryMissing"), "{moment:?}");
        bed.claim_when(claim, "a verdict", has_failed).await?;
        let all = reports.list(&ListParams::default()).await?;
        let about = all.items.iter().filter(|report| report.spec.target_ref.name == claim);
        assert_eq!(about.count(), 1, "{moment:?}");
        assert_eq!(bed.events(claim).await?.len(), 1, "{moment:?}");
        second.kill();
    }
    Ok(())
}

fn has_failed(claim: &NodeClaim) -> bool {
    let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
    find(conditions, BOOTSTRAP_SUCCEEDED).is_some_and(|held| held.status == "False")
}

/// The report of a claim, once it is as wanted. Its name cannot be known before.
async fn report_of(
    bed: &TestBed,
    claim: &str,
    is: impl Fn(&BootstrapReport) -> bool,
) -> Result<BootstrapReport> {
    let is_it = |report: &BootstrapReport| report.spec.target_ref.name == claim && is(report);
    let what = format!("a report on {claim}");
    let reports = bed.reports_when(&what, |all| all.iter().any(is_it)).await?;
    reports.into_iter().find(is_it).context("the report exists")
}
