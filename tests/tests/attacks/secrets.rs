//! What an attacker can do with the token of the controller's own `ServiceAccount`.

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, PropagationPolicy};
use serde_json::{Value, json};

use super::installed::Installed;

const SYSTEM: &str = "kube-system";

fn secret(name: &str, kind: &str, changes: &Value) -> Result<Secret> {
    let mut secret = json!({ "metadata": { "name": name }, "type": kind });
    if let (Some(secret), Some(changes)) = (secret.as_object_mut(), changes.as_object()) {
        secret.extend(changes.clone());
    }
    Ok(serde_json::from_value(secret)?)
}

/// Checks that the chart's policy refused the request, and that the response reveals nothing.
fn refused<T: std::fmt::Debug>(answer: Result<T, kube::Error>, what: &str) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.message.contains("bringup may") => Ok(()),
        other => bail!("{what}: {other:?}"),
    }
}

pub(super) async fn are_out_of_reach(installed: &Installed) -> Result<()> {
    let admins: Api<Secret> = Api::namespaced(installed.admin(), SYSTEM);
    let victim = secret("victim", "Opaque", &json!({ "stringData": { "password": "hush" } }))?;
    admins.create(&PostParams::default(), &victim).await?;
    let secrets: Api<Secret> = Api::namespaced(installed.account().await?, SYSTEM);

    let policies = [
        None,
        Some(PropagationPolicy::Foreground),
        Some(PropagationPolicy::Orphan),
        Some(PropagationPolicy::Background),
    ];
    for dry_run in [true, false] {
        for propagation_policy in policies.clone() {
            let what = format!("DELETE, dryRun {dry_run}, {propagation_policy:?}");
            let how = DeleteParams { dry_run, propagation_policy, ..DeleteParams::default() };
            refused(secrets.delete("victim", &how).await, &what)?;
        }
    }
    let annotation = json!({ "kubernetes.io/service-account.name": "default" });
    let token = json!({ "metadata": { "name": "stolen", "annotations": annotation } });
    let signing = json!({ "stringData": { "token-id": "abcdef", "token-secret": "0123456789abcdef",
        "usage-bootstrap-signing": "true", "auth-extra-groups": "system:bootstrappers:x" } });
    for (kind, changes) in [
        ("kubernetes.io/service-account-token", &token),
        ("Opaque", &json!({})),
        ("bootstrap.kubernetes.io/token", &signing),
    ] {
        let name = if kind.starts_with("boot") { "bootstrap-token-abcdef" } else { "stolen" };
        let forged = secret(name, kind, changes)?;
        for dry_run in [true, false] {
            let how = PostParams { dry_run, ..PostParams::default() };
            let what = format!("CREATE {kind}, dryRun {dry_run}");
            refused(secrets.create(&how, &forged).await, &what)?;
        }
    }
    // The account has no right to read Secrets at all.
    for answer in [
        secrets.get("victim").await.map(drop),
        secrets.list(&ListParams::default()).await.map(drop),
    ] {
        let is_forbidden = matches!(&answer, Err(kube::Error::Api(status)) if status.code == 403);
        anyhow::ensure!(is_forbidden, "{answer:?}");
    }
    admins.get("victim").await?;
    anyhow::ensure!(admins.get_opt("stolen").await?.is_none(), "a forged Secret is stored");
    Ok(())
}
