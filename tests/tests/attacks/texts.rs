//! Hostile texts, times and waits.

use bringup_testbed::wait::until_object;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bringup_objects::report::{
    BootstrapReport, CollectorState, Phase, ReportSpec, ReportStatus, TargetReference,
};
use bringup_objects::{MANAGER, NodeClaim};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::super::{NAMESPACE, TENANT, takes_long};
use super::installed::{Installed, get};
use super::machines::{
    POOL, answer, arm, condition, condition_on_machine, create_capi_machine, fail, neighbour,
    put_vm, verdict,
};

/// The console of an innocent Machine. The hostile consoles end with the same line.
const HONEST: &str = "error: error execution phase preflight: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"\r\n";
const FAR: &str = "9999-12-30T22:00:00Z";
/// The interval between two health requests.
const BEAT: Duration = Duration::from_millis(100);

/// A line with the mark of a summary, followed by nested braces.
fn braces(length: usize) -> String {
    let mut line = String::from("BRINGUP-NODE/1 {");
    while line.len() < length {
        line.push_str("\"a\":{");
    }
    line.truncate(length);
    line
}

pub(super) async fn hostile_consoles_hold_up_nothing(
    installed: &Installed,
    address: &str,
) -> Result<()> {
    let bed = &installed.bed;
    let mut tags = String::new();
    for number in 0..100_000 {
        let _ = write!(tags, "<b{number}>");
    }
    let lines = vec![braces(64 * 1024 - 2); 64].join("\r\n");
    let consoles = [("one-line", braces(800_000)), ("many-lines", lines), ("markup", tags)];
    let text = json!({ "content-type": "application/octet-stream" });
    let mut ids = Vec::new();
    for (name, console) in &consoles {
        let console = format!(
            "{console}
{HONEST}"
        );
        let (id, vm) = put_vm(bed, name)?;
        arm(bed, answer("GET", &format!("bootdiagnostics/{vm}"), 200, &text, &console))?;
        create_capi_machine(bed, name, "prod", Some(&id)).await?;
        ids.push(vm);
    }
    let is_over = AtomicBool::new(false);
    let beside = async {
        for vm in &ids {
            installed.until_struck(&format!("bootdiagnostics/{vm}")).await?;
        }
        let (id, vm) = put_vm(bed, "honest")?;
        arm(bed, answer("GET", &format!("bootdiagnostics/{vm}"), 200, &text, HONEST))?;
        create_capi_machine(bed, "honest", "prod", Some(&id)).await?;
        lease_moves(installed).await?;
        neighbour(bed, "beside-the-consoles").await?;
        let is_down = |one: &Value| one["status"] == "False";
        let told = condition_on_machine(bed, "honest", "a verdict", is_down).await?;
        ensure!(told["reason"] == "BootstrapTokenInvalid", "{told}");
        // The controller reads the hostile consoles to their end and judges them.
        for (name, _) in &consoles {
            let told = condition_on_machine(bed, name, "a verdict", is_down).await?;
            ensure!(told["reason"] == "BootstrapTokenInvalid", "{name}: {told}");
            is_read(installed, name).await?;
        }
        lease_moves(installed).await
    };
    let beside = async {
        let ended = beside.await;
        is_over.store(true, Ordering::Relaxed);
        ended
    };
    let (ended, stayed) = futures::join!(beside, stays_healthy(address, &is_over));
    ended?;
    stayed
}

/// Checks that the console of a Machine is among its evidence.
async fn is_read(installed: &Installed, machine: &str) -> Result<()> {
    let reports: Api<BootstrapReport> = Api::namespaced(installed.admin(), TENANT);
    let reports = reports.list(&ListParams::default()).await?;
    let report = reports.iter().find(|report| report.spec.target_ref.name == machine);
    let status = report.and_then(|report| report.status.as_ref()).context("a report")?;
    let console = status.collectors.iter().find(|one| one.name == "serial log");
    let is_read = console.is_some_and(|one| one.state == CollectorState::Ok);
    ensure!(is_read, "{machine}: {:?}", status.collectors);
    Ok(())
}

/// Requests the health endpoint until `is_over` is set; every response must be good.
async fn stays_healthy(address: &str, is_over: &AtomicBool) -> Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        let (status, told) = get(address, "/healthz").await?;
        ensure!(status == 200, "{told}");
        tokio::time::sleep(BEAT).await;
    }
    Ok(())
}

/// Waits until the controller has renewed its lease once more.
async fn lease_moves(installed: &Installed) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(installed.admin(), NAMESPACE);
    let renewed = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
    let before = renewed(&leases.get("bringup-controller").await?);
    ensure!(before.is_some(), "the lease has no renewTime");
    let is_later = |lease: Option<&Lease>| lease.is_some_and(|lease| renewed(lease) > before);
    until_object(leases, "bringup-controller", "a lease that is renewed", is_later).await?;
    Ok(())
}

pub(super) async fn times_as_far_out_as_9999_crash_nothing(installed: &Installed) -> Result<()> {
    let bed = &installed.bed;
    let status = json!({ "code": "ProvisioningState/succeeded", "level": "Info", "time": FAR });
    let script = json!({ "name": "vmssCSE", "type": "Microsoft.Azure.Extensions.CustomScript", "statuses": [status] });
    let body = json!({ "name": "x", "properties": {
        "provisioningState": "Succeeded", "timeCreated": FAR,
        "instanceView": { "statuses": [status], "extensions": [script] } } })
    .to_string();
    let far = |name: &str| {
        arm(bed, answer("GET", &format!("/virtualmachines/{name}"), 200, &json!({}), &body))
    };
    fail(bed, "far", || far("aks-far")).await?;
    let (id, _) = put_vm(bed, "far-machine")?;
    far("far-machine")?;
    create_capi_machine(bed, "far-machine", "prod", Some(&id)).await?;
    for name in ["aks-far", "far-machine"] {
        installed.until_struck(&format!("/virtualmachines/{name}?")).await?;
    }
    condition_on_machine(bed, "far-machine", "a condition", |_| true).await?;
    reports_of_the_year_9999(installed).await?;
    neighbour(bed, "beside-the-times").await
}

/// Creates reports as bringup writes them: about a claim that exists, and about one that does not.
async fn reports_of_the_year_9999(installed: &Installed) -> Result<()> {
    let bed = &installed.bed;
    bed.karpenter.launch("reported", POOL, "202601.27.0").await?;
    let claims: Api<NodeClaim> = Api::all(installed.admin());
    let uid = claims.get("reported").await?.uid().context("a uid")?;
    let far: Timestamp = FAR.parse()?;
    let reports: Api<BootstrapReport> = Api::namespaced(installed.admin(), NAMESPACE);
    let manager = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    for (name, uid) in
        [("reported", uid.as_str()), ("lost", "3f1e2d4c-0000-4000-8000-000000000001")]
    {
        let target_ref = TargetReference {
            api_version: "karpenter.sh/v1".to_owned(),
            kind: "NodeClaim".to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        };
        let spec = ReportSpec { target_ref, attempt: 1, ..ReportSpec::default() };
        let mut report = BootstrapReport::new(&format!("{name}-9999"), spec);
        report.status = Some(ReportStatus {
            phase: Phase::Final.into(),
            finished_at: Some(Time(far)),
            ..ReportStatus::default()
        });
        reports.create(&manager, &report).await?;
    }
    Ok(())
}

/// A refusal that asks clients to wait for thirty thousand years.
fn refusal(policy: Option<&str>) -> (Value, String) {
    let mut headers = json!({ "retry-after": "999999999999" });
    let mut error = json!({ "code": "SubscriptionRequestsThrottled", "message": "slow down" });
    if let Some(policy) = policy {
        headers["x-ms-ratelimit-remaining-resource"] =
            json!(format!("Microsoft.Compute/{policy};0"));
        let detail = json!({ "code": "TooManyRequests", "target": policy, "message": "too many" });
        error =
            json!({ "code": "OperationNotAllowed", "message": "too many", "details": [detail] });
    }
    (headers, json!({ "error": error }).to_string())
}

pub(super) async fn a_wait_without_end_holds_up_one_vm(installed: &Installed) -> Result<()> {
    let bed = &installed.bed;
    let (id, _) = put_vm(bed, "greedy")?;
    let (headers, body) = refusal(Some("LowCostGetResource"));
    arm(bed, answer("GET", "/virtualmachines/greedy", 429, &headers, &body))?;
    create_capi_machine(bed, "greedy", "prod", Some(&id)).await?;
    installed.until_struck("/virtualmachines/greedy").await?;
    neighbour(bed, "beside-the-wait").await
}

/// bringup obeys a refusal of all reads for five minutes, and reports every waiting read at once.
pub(super) async fn a_refusal_of_all_reads_ends(installed: &Installed) -> Result<()> {
    let bed = &installed.bed;
    let (headers, body) = refusal(None);
    let refuse = || {
        let mut fault = answer("GET", "/virtualmachines/aks-refused", 429, &headers, &body);
        fault["on"]["times"] = json!(1);
        arm(bed, fault)
    };
    fail(bed, "refused", refuse).await?;
    installed.until_struck("/virtualmachines/aks-refused").await?;
    fail(bed, "waits-too", || Ok(())).await?;
    let claims: Api<NodeClaim> = Api::all(installed.admin());
    let is_told = |claim: Option<&NodeClaim>| {
        let told = claim.and_then(condition);
        told.is_some_and(|one| {
            one.message.contains("Azure cannot be read") || one.status == "False"
        })
    };
    until_object(claims, "waits-too", "that Azure cannot be read", is_told).await?;
    if takes_long("the end of a refusal of all reads, after five minutes") {
        verdict(bed, "waits-too").await?;
    }
    Ok(())
}
