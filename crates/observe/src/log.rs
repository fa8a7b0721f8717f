//! The log line of a verdict.

use bringup_contract::Open;
use bringup_objects::report::{BootstrapReport, Phase};
use kube::ResourceExt as _;
use tracing::{info, warn};

/// Logs a verdict, always with the same fields.
pub fn verdict(report: &BootstrapReport) {
    let spec = &report.spec;
    let Some(status) = &report.status else { return };
    let Some(verdict) = &status.verdict else { return };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    if status.phase == Phase::Superseded {
        info!(
            node_claim = spec.target_ref.name,
            node = text(&spec.node_name),
            report = report.name_any(),
            "node joined after its bootstrap had been reported as failed"
        );
        return;
    }
    let cse = status.cse.clone().unwrap_or_default();
    warn!(
        node_claim = spec.target_ref.name,
        provider_id = text(&spec.provider_id),
        nodepool = spec.parent_ref.as_ref().map(|parent| parent.name.clone()).unwrap_or_default(),
        image = text(&spec.image_version),
        mode = spec.provision_mode.as_ref().map_or("", Open::as_str),
        exit_code = cse.exit_code,
        constant = text(&cse.constant),
        cause = verdict.cause.as_str(),
        confidence = verdict.confidence.as_str(),
        proof = status.root_evidence.as_ref().map(|line| line.line.clone()).unwrap_or_default(),
        report = report.name_any(),
        "{}",
        verdict.title
    );
}
