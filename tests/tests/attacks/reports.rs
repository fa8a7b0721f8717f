//! Reports that a tenant forges.

use anyhow::{Context as _, Result, ensure};
use bringup_end_to_end::controller_process::ControllerProcess;
use bringup_objects::report::{
    BootstrapReport, Phase, ReportSpec, ReportStatus, ReportVerdict, TargetReference,
};
use bringup_objects::{MANAGER, NodeClaim};
use bringup_testbed::wait::in_time;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::super::{NAMESPACE, TENANT};
use super::installed::{Installed, kubectl};
use super::machines::{POOL, condition, create_capi_machine, machines, neighbour};

const USER: &str = "mallory";
/// The cause in the forged verdict.
const FORGED: &str = "QuotaExceeded";

/// A user who may write reports in the tenant's namespace.
async fn tenant(installed: &Installed) -> Result<Client> {
    let granted = PolicyRule {
        api_groups: Some(vec!["bringup.dev".to_owned()]),
        resources: Some(vec!["bootstrapreports".to_owned(), "bootstrapreports/status".to_owned()]),
        verbs: vec!["*".to_owned()],
        ..PolicyRule::default()
    };
    let name = json!({ "name": USER });
    let role: Role = serde_json::from_value(json!({ "metadata": name, "rules": [granted] }))?;
    let group = "rbac.authorization.k8s.io";
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": name,
        "roleRef": { "apiGroup": group, "kind": "Role", "name": USER },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": USER }],
    }))?;
    let admin = installed.admin();
    Api::namespaced(admin.clone(), TENANT).create(&PostParams::default(), &role).await?;
    Api::namespaced(admin, TENANT).create(&PostParams::default(), &binding).await?;
    let client = impersonated(installed)?;
    // Until the right takes effect, RBAC refuses the request, and not the policy.
    let reports: Api<BootstrapReport> = Api::namespaced(client.clone(), TENANT);
    let allowed = async { while reports.list(&ListParams::default()).await.is_err() {} };
    in_time("the rights of the tenant", allowed).await?;
    Ok(client)
}

fn impersonated(installed: &Installed) -> Result<Client> {
    let mut config = installed.bed.control_plane().admin().config();
    config.auth_info.impersonate = Some(USER.to_owned());
    config.auth_info.impersonate_groups = Some(vec!["system:authenticated".to_owned()]);
    Ok(Client::try_from(config)?)
}

/// A verdict that bringup never gave.
fn forged(name: &str, api_version: &str, kind: &str, target: &str, uid: &str) -> BootstrapReport {
    let target_ref = TargetReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: target.to_owned(),
        uid: uid.to_owned(),
    };
    let spec = ReportSpec { target_ref, attempt: 1, ..ReportSpec::default() };
    let mut report = BootstrapReport::new(name, spec);
    let verdict = ReportVerdict {
        cause: bringup_contract::open::Open::parse(FORGED),
        confidence: bringup_contract::report::Confidence::High.into(),
        title: "buy more quota".to_owned(),
        ..ReportVerdict::default()
    };
    report.status = Some(ReportStatus {
        phase: Phase::Final.into(),
        verdict: Some(verdict),
        ..ReportStatus::default()
    });
    report
}

/// Creates a claim that waits, and a forged report about it.
async fn forged_about_a_claim(installed: &Installed, victim: &str) -> Result<BootstrapReport> {
    installed.bed.karpenter.launch(victim, POOL, "202601.13.0").await?;
    let claims: Api<NodeClaim> = Api::all(installed.admin());
    let uid = claims.get(victim).await?.uid().context("a uid")?;
    Ok(forged(&format!("about-{victim}"), "karpenter.sh/v1", "NodeClaim", victim, &uid))
}

fn as_manager(manager: &str) -> PostParams {
    PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() }
}

pub(super) async fn a_tenant_writes_no_reports(installed: &Installed) -> Result<()> {
    let tenant = tenant(installed).await?;
    let report = forged_about_a_claim(installed, "victim").await?;
    let reports: Api<BootstrapReport> = Api::namespaced(tenant, TENANT);
    match reports.create(&as_manager(MANAGER), &report).await {
        Err(kube::Error::Api(status))
            if status.message.contains("only bringup may write BootstrapReports") => {}
        other => anyhow::bail!("the forged report: {other:?}"),
    }
    // bringup itself may still write reports, also in the namespace of a tenant.
    neighbour(&installed.bed, "beside-the-forger").await?;
    let all: Api<BootstrapReport> = Api::namespaced(installed.admin(), TENANT);
    let own = all.list(&ListParams::default()).await?;
    ensure!(own.iter().all(|it| it.name_any() != report.name_any()), "the forged report is stored");
    Ok(())
}

/// An administrator deletes the policy while the controller runs.
pub(super) async fn without_the_policy_forged_reports_are_ignored(
    installed: &Installed,
    controller: &mut ControllerProcess,
) -> Result<()> {
    let bed = &installed.bed;
    for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
        kubectl(bed, &["delete", kind, "bringup-reports"])?;
    }
    let about_claim = forged_about_a_claim(installed, "victim-2").await?;
    // This report is about a Machine that the tenant owns: only the writer of the report shows the
    // forgery.
    create_capi_machine(bed, "victim-3", "prod", None).await?;
    let uid = machines(bed).get("victim-3").await?.uid().context("a uid")?;
    let about_machine =
        forged("about-victim-3", "cluster.x-k8s.io/v1beta2", "Machine", "victim-3", &uid);
    let reports: Api<BootstrapReport> = Api::namespaced(impersonated(installed)?, TENANT);
    for (report, manager) in [(&about_claim, MANAGER), (&about_machine, "kubectl")] {
        let created =
            async { while reports.create(&as_manager(manager), report).await.is_err() {} };
        in_time("the end of the policy", created).await?;
        let line = controller.logged("ignoring BootstrapReport").await?;
        ensure!(line["name"] == report.name_any(), "{line}");
    }
    neighbour(bed, "beside-the-forgeries").await?;
    let claims: Api<NodeClaim> = Api::all(installed.admin());
    let victim = claims.get("victim-2").await?;
    let told = condition(&victim).map(|one| one.reason.as_str());
    ensure!(told != Some(FORGED), "the forged report about a NodeClaim is believed");
    let machine = machines(bed).get("victim-3").await?;
    ensure!(!machine.data.to_string().contains(FORGED), "{}", machine.data);
    for report in [&about_claim, &about_machine] {
        let stored = reports.get_opt(&report.name_any()).await?;
        ensure!(stored.is_some(), "{} is deleted", report.name_any());
    }
    let own: Api<BootstrapReport> = Api::namespaced(installed.admin(), NAMESPACE);
    let own = own.list(&ListParams::default()).await?;
    ensure!(!serde_json::to_string(&own.items)?.contains(FORGED), "the forged words are copied");
    Ok(())
}
