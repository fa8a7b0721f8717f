//! ARM's limits: bringup never exceeds them, and obeys them where other clients exceed them.

use std::time::Duration;

use anyhow::Result;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;

use super::common::ORAS_MISSING;

#[tokio::test]
async fn test_27_a_429_is_obeyed_for_its_own_policy_only() -> Result<()> {
    let scenario = format!(
        "{ORAS_MISSING}\nfaults: [{{on: {{method: GET, pathContains: '/virtualmachines/aks-t27-a', times: 1}}, fault: {{throttle: {{retryAfter: 40, policy: LowCostGetResource}}}}}}]"
    );
    let bed = TestBed::named("t27", &scenario).await?;
    let controller = bed.observe();
    let (one, other) = (bed.claim_name("a"), bed.claim_name("b"));
    bed.fail(&one, &Order::of("202601.27.0")).await?;
    bed.fail(&other, &Order::of("202601.27.0")).await?;
    assert_eq!(bed.report_of(&other).await?.cause(), Some("BinaryMissing"));
    let reads = |text: &str| text.matches("code=\"429\"} 1").count();
    let metrics = controller.controller.metrics().text();
    assert_eq!(reads(&metrics), 1, "{metrics}");
    bed.azure.advance(Duration::from_secs(41));
    assert_eq!(bed.report_of(&one).await?.cause(), Some("BinaryMissing"));
    let metrics = controller.controller.metrics().text();
    assert_eq!(reads(&metrics), 1, "no read was sent too early: {metrics}");
    Ok(())
}
