//! Helpers for the tests of claims.

use anyhow::Result;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition, find};
use bringup_objects::{BootstrapReport, NodeClaim};

/// A scenario with an image without oras, so that its scripts end with 211.
pub(super) const ORAS_MISSING: &str = include_str!("../../scenarios/demo.yaml");

/// A scenario in which every script ends like this; `ends` is a part of a scenario.
pub(super) fn every_script(ends: &str) -> String {
    format!("rules: [{{name: all, boot: {{script: {{ends: {ends}}}}}}}]")
}

pub(super) fn conditions(claim: &NodeClaim) -> &[Condition] {
    claim.status.as_ref().map_or(&[], |status| &status.conditions)
}

pub(super) fn status_and_reason<'a>(
    claim: &'a NodeClaim,
    kind: &str,
) -> Option<(&'a str, &'a str)> {
    find(conditions(claim), kind).map(|held| (held.status.as_str(), held.reason.as_str()))
}

pub(super) fn message(claim: &NodeClaim, kind: &str) -> String {
    find(conditions(claim), kind).map(|held| held.message.clone()).unwrap_or_default()
}

pub(super) fn has_failed(claim: &NodeClaim) -> bool {
    matches!(status_and_reason(claim, BOOTSTRAP_SUCCEEDED), Some(("False", _)))
}

/// Creates a claim that fails as in the bed's scenario, and lets Karpenter report the failure. Returns
/// the claim and its report.
pub(super) async fn fail(
    bed: &TestBed,
    name: &str,
    order: &Order,
) -> Result<(NodeClaim, BootstrapReport)> {
    let claim = bed.claim_name(name);
    bed.fail(&claim, order).await?;
    Ok((bed.failed_claim(&claim).await?, bed.report_of(&claim).await?))
}

pub(super) fn exit_code(report: &BootstrapReport) -> Option<i32> {
    report.status.as_ref()?.cse.as_ref()?.exit_code
}

pub(super) fn constant(report: &BootstrapReport) -> Option<&str> {
    report.status.as_ref()?.cse.as_ref()?.constant.as_deref()
}

pub(super) fn confidence(report: &BootstrapReport) -> &str {
    let verdict = report.status.as_ref().and_then(|status| status.verdict.as_ref());
    verdict.map_or("", |verdict| verdict.confidence.as_str())
}
