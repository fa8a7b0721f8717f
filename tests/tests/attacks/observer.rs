//! Attacks on the observer: hostile consoles, times, ids and reports.

use anyhow::{Result, ensure};
use bringup_end_to_end::{SUBSCRIPTION, TestBed};
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::super::{NAMESPACE, TENANT, replay};
use super::installed::{Installed, is_well};
use super::machines::{POOL, condition_on_machine, create_capi_machine, create_cluster, neighbour};
use super::{reports, texts};

/// A subscription that no scope of the controller allows.
const FOREIGN: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/// Nodes without `oras`, whose scripts end with 211.
const SCENARIO: &str = include_str!("../../scenarios/demo.yaml");

async fn install() -> Result<Installed> {
    let builder = TestBed::builder().machines().scenario(SCENARIO).endpoints().not_installed();
    let bed = builder.start().await?;
    let scope = format!("azure.scopes[0]={SUBSCRIPTION}");
    let options = ["--set", "machines.enabled=true", "--set", &scope];
    let rights = [
        ("karpenter.sh", "nodeclaims", "watch", ""),
        ("coordination.k8s.io", "leases", "create", NAMESPACE),
        ("cluster.x-k8s.io", "machines", "watch", ""),
    ];
    let installed = Installed::new(bed, &options, &rights).await?;
    let namespaces: Api<Namespace> = Api::all(installed.admin());
    let tenant = serde_json::from_value(json!({ "metadata": { "name": TENANT } }))?;
    namespaces.create(&PostParams::default(), &tenant).await?;
    create_cluster(&installed.bed, "prod", SUBSCRIPTION).await?;
    installed.bed.karpenter.create_pool(POOL).await?;
    Ok(installed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_consoles_times_ids_and_reports_leave_other_verdicts_alone() -> Result<()> {
    let installed = install().await?;
    let mut controller = installed.start(&[]).await?;
    controller.logged("leading").await?;
    let (installed, address) = (&installed, controller.address().to_owned());
    replay(vec![
        ("consoles", texts::hostile_consoles_hold_up_nothing(installed, &address).boxed()),
        ("times", texts::times_as_far_out_as_9999_crash_nothing(installed).boxed()),
        ("waits", texts::a_wait_without_end_holds_up_one_vm(installed).boxed()),
        ("scopes", vms_of_other_subscriptions_are_not_read(installed).boxed()),
        ("the reports policy", reports::a_tenant_writes_no_reports(installed).boxed()),
    ])
    .await?;
    is_well(&mut controller).await?;
    reports::without_the_policy_forged_reports_are_ignored(installed, &mut controller).await?;
    texts::a_refusal_of_all_reads_ends(installed).await?;
    is_well(&mut controller).await?;
    ensure!(controller.terminate()? == Some(0), "it ends in good order");
    Ok(())
}

async fn vms_of_other_subscriptions_are_not_read(installed: &Installed) -> Result<()> {
    let bed = &installed.bed;
    let id = format!(
        "/subscriptions/{FOREIGN}/resourceGroups/victim/providers/Microsoft.Compute/virtualMachines/db-1"
    );
    create_capi_machine(bed, "by-its-id", "prod", Some(&id)).await?;
    // The same attack, with the subscription in a cluster that the tenant owns.
    create_cluster(bed, "stolen", FOREIGN).await?;
    create_capi_machine(bed, "by-its-cluster", "stolen", None).await?;
    for name in ["by-its-id", "by-its-cluster"] {
        let names_the_flag = |one: &serde_json::Value| {
            one["message"].as_str().is_some_and(|message| message.contains("--azure-scope"))
        };
        condition_on_machine(bed, name, "the scope that is missing", names_the_flag).await?;
    }
    neighbour(bed, "beside-the-scopes").await?;
    let asked = installed.requests(0).into_iter().find(|one| one.path.contains(FOREIGN));
    ensure!(asked.is_none(), "{asked:?}");
    Ok(())
}
