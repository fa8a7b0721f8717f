//! The real controller, killed at several moments: after a restart the result is the same.

use std::path::Path;

use anyhow::Result;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::controller_process::ControllerProcess;
use bringup_end_to_end::order::Order;
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
    bed.karpenter.create_pool("default").await?;

    // A controller that is stopped by a signal releases its lease: the next leader does not have to wait.
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
        bed.fail(claim, &Order::of("202601.27.0")).await?;
        match moment {
            Moment::AtOnce => {}
            Moment::AfterTheReport => drop(bed.report_when(claim, |_| true).await?),
            Moment::AfterTheCondition => {
                bed.failed_claim(claim).await?;
            }
            Moment::AfterTheEvent => {
                bed.report_of(claim).await?;
            }
        }
        first.kill();
        let second = ControllerProcess::start(program(), &bed, &[]).await?;
        let report = bed.report_of(claim).await?;
        assert_eq!(report.cause(), Some("BinaryMissing"), "{moment:?}");
        bed.failed_claim(claim).await?;
        let all = bed.reports().list(&ListParams::default()).await?;
        let about = all.items.iter().filter(|report| report.spec.target_ref.name == claim);
        assert_eq!(about.count(), 1, "{moment:?}");
        assert_eq!(bed.events(claim).await?.len(), 1, "{moment:?}");
        second.kill();
    }
    Ok(())
}
