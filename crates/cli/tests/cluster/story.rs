//! A complete example: a node fails in the simulated Azure, and the terminal shows the answer.

use std::time::Duration;

use anyhow::Result;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_end_to_end::test_bed::shared;
use bringup_objects::BootstrapReport;
use jiff::SignedDuration;

use crate::common::{fits, ran};
use crate::example_cluster::{bringup_as, flat};
use crate::terminal::Terminal;

/// A scenario with an image without oras, and the image before it.
const ORAS_MISSING: &str = include_str!("../../../../tests/scenarios/demo.yaml");

#[tokio::test]
async fn why_explains_claims_that_are_gone_from_their_reports() -> Result<()> {
    let bed = TestBed::builder()
        .named("story")
        .behind(SignedDuration::from_hours(1))
        .scenario(ORAS_MISSING)
        .start()
        .await?;
    let _controller = bed.observe();
    for name in ["b1xq9", "c2m4t", "d8w0z", "e5r6y", "f3n7u"] {
        let claim = bed.claim_name(name);
        bed.karpenter.launch(&claim, bed.pool(), "202601.13.0").await?;
        assert_eq!(bed.karpenter.bootstrap(&claim)?, None);
        bed.azure.advance(Duration::from_secs(30));
        bed.ready_node(&claim).await?;
        bed.karpenter.register(&claim).await?;
    }
    for (before, name) in ["k9p2v", "q4s8j", "x7k2p"].into_iter().enumerate() {
        let claim = bed.claim_name(name);
        bed.fail(&claim, &Order::of("202601.27.0")).await?;
        let told = |reports: &[BootstrapReport]| {
            reports.len() == before + 1 && reports.iter().all(BootstrapReport::is_announced)
        };
        bed.reports_when("the report", told).await?;
        bed.karpenter.clean_up(&claim).await?;
    }
    let ran = bringup_as(shared().await?.admin(), &["why", "story-x7"]);
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert!(
        ran.out.starts_with("FAILED: BinaryMissing, exit code 211 ERR_ORAS_PULL"),
        "{}",
        ran.out
    );
    let said = flat(&ran.out);
    for part in [
        "NodeClaim story-x7k2p of pool story, node aks-story-x7k2p, is gone;",
        "Proof (extension message): | unexpected response from acr: timeout: failed to run command",
        "What misled: ERR_ORAS_PULL_NETWORK_TIMEOUT: Says network timeout;",
        "What to do: ",
        "How images fared: 202601.27.0: 3 of 3 failed; 202601.13.0: 5 of 5 joined Owner: image owner",
        "Report: bringup-story/story-x7k2p-",
    ] {
        assert!(said.contains(part), "`{part}` in\n{}", ran.out);
    }
    fits(&ran.out);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_reads_azure_for_a_claim_without_a_controller() -> Result<()> {
    let bed = TestBed::named("unseen", ORAS_MISSING).await?;
    let terminal = Terminal::new(&bed.azure).await?;
    let admin = shared().await?.admin();
    let claim = bed.claim_name("x7k2p");
    bed.karpenter.launch(&claim, bed.pool(), "202601.27.0").await?;
    let early = ran(&mut terminal.bringup(admin, &["why", &claim]));
    assert_eq!(early.code, 11, "{}", early.err);
    assert!(early.out.contains("\nSources:\n  virtual machine was read"), "{}", early.out);
    assert!(!early.out.contains("Note:"), "{}", early.out);

    bed.karpenter.bootstrap(&claim)?.expect("this image has no oras");
    let late = ran(&mut terminal.bringup(admin, &["why", &claim]));
    assert_eq!(late.code, 10, "{}{}", late.out, late.err);
    assert!(late.out.starts_with("FAILED: BinaryMissing, exit code 211"), "{}", late.out);
    let said = flat(&late.out);
    for part in
        ["NodeClaim unseen-x7k2p of pool unseen", "Note: the controller has not reported this yet"]
    {
        assert!(said.contains(part), "`{part}` in\n{}", late.out);
    }
    fits(&late.out);

    let log = ran(&mut terminal.bringup(admin, &["boot-log", &claim]));
    assert_eq!((log.code, log.out.as_str()), (1, ""), "Karpenter's VMs have no boot diagnostics");
    assert!(log.err.starts_with("error: no serial log of VM aks-unseen-x7k2p"), "{}", log.err);
    Ok(())
}
