//! A panic while one claim is handled: that claim is set aside for a while, and the others go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_objects::condition::BOOTSTRAP_SUCCEEDED;
use bringup_runtime::effect_hook::EffectHook;
use bringup_testbed::wait::in_time;
use futures::FutureExt as _;

use super::common::{ORAS_MISSING, fail, has_failed, status_and_reason};

#[tokio::test]
async fn a_panic_sets_one_claim_aside_while_another_gets_its_verdict() -> Result<()> {
    let bed = TestBed::named("panics", ORAS_MISSING).await?;
    let (armed, panicked) = (AtomicBool::new(true), Arc::new(tokio::sync::Notify::new()));
    let hook = EffectHook::new({
        let panicked = panicked.clone();
        move |effect| {
            let panics = effect == "ARM read" && armed.swap(false, Ordering::Relaxed);
            let panicked = panicked.clone();
            async move {
                if panics {
                    panicked.notify_one();
                }
                assert!(!panics, "a fault that only this claim meets");
            }
            .boxed()
        }
    });
    let controller = bed.observe_with(bed.client.clone(), hook);
    let (order, set_aside) = (Order::of("202601.27.0"), bed.claim_name("set-aside"));
    bed.fail(&set_aside, &order).await?;
    in_time("the panic", panicked.notified()).await?;

    let (told, _) = fail(&bed, "neighbour", &order).await?;
    assert_eq!(status_and_reason(&told, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    bed.azure.advance(Duration::from_secs(11));
    let told = bed.claim_when(&set_aside, "a verdict after the pause", has_failed).await?;
    assert_eq!(status_and_reason(&told, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    let metrics = controller.controller.metrics().text();
    assert!(metrics.contains("bringup_panics_total 1"), "{metrics}");
    Ok(())
}
