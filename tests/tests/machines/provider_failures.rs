//! Failures that the provider reports: where no console proves a failure, the provider is the first to
//! know.
//!
//! While a test waits for a verdict Azure's clock stands still, so code that waits for the clock would
//! wait for ever.

use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::ManagementCluster;
use crate::launch::Form;
use crate::matrix::{Cell, Is, Row, all, check, is_failed, launch, scenario};

/// The objects on which the provider reports how a machine's extensions ended: the object behind the
/// Machine, or its pool.
fn speaker(cluster: &ManagementCluster, row: Row) -> Api<DynamicObject> {
    match row.form {
        Form::Vm | Form::Strange => cluster.provided(),
        Form::Uniform | Form::Flexible => cluster.pools(),
    }
}

/// Reports that an extension has failed, as the provider does: without the cause.
async fn report_failure(cluster: &ManagementCluster, row: Row, name: &str) -> Result<()> {
    let object = speaker(cluster, row).get(name).await?;
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.cloned().unwrap_or_default();
    // The provider uses the clock of the API server, which runs on.
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    conditions.push(json!({
        "type": "BootstrapSucceeded", "status": "False", "severity": "Error",
        "reason": "BootstrapFailed", "message": "extension failed to provision",
        "lastTransitionTime": now,
    }));
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    speaker(cluster, row).patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The number of reads of all VMs.
fn looks(cluster: &ManagementCluster) -> usize {
    cluster.azure.with(|azure| {
        let all = azure.journal().requests().iter();
        all.filter(|one| one.method == "GET" && one.path.contains("instanceView")).count()
    })
}

#[tokio::test]
async fn a_failure_that_the_provider_reports_is_judged_at_once_on_every_form_of_machine()
-> Result<()> {
    let cluster = ManagementCluster::with_manual_clock("told", &scenario("1s", "2s")).await?;
    let is_told = |(_, case): &Cell| matches!(case.is, Is::Hinted | Is::Dark | Is::Waited);
    let cells: Vec<Cell> = all().filter(is_told).collect();
    assert_eq!(cells.len(), 12);
    for (row, case) in &cells {
        if matches!(row.form, Form::Uniform | Form::Flexible) {
            let mode = if row.form == Form::Uniform { "Uniform" } else { "Flexible" };
            cluster.make_pool(&case.machine(*row), mode).await?;
        }
    }
    launch(&cluster, &cells).await?;
    // By now each machine has failed, and Azure shows it; the first read is not due yet.
    cluster.azure.advance(Duration::from_secs(25));
    for (row, case) in cells {
        let name = case.machine(row);
        let before = looks(&cluster);
        assert!(!is_failed(&cluster.machines().get(&name).await?), "{name} is judged too early");
        report_failure(&cluster, row, &name).await.with_context(|| name.clone())?;
        let what = format!("a verdict of {name}");
        let machine = cluster.until(cluster.machines(), &name, &what, is_failed).await?;
        assert!(looks(&cluster) > before, "{name} was looked at because of it");
        let reports = cluster.reports().await?;
        let report = reports.iter().find(|report| report.spec.target_ref.name == name);
        check(case, &machine, report)?;
    }
    Ok(())
}
