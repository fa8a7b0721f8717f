//! The chart's admission policy, under the chart's service account: the policy limits the right to write
//! Secrets in kube-system to creating and deleting bringup's own bootstrap tokens.

use bringup_testbed::wait::in_time;
use std::sync::Arc;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_azure::clock::WallClock;
use bringup_flex::engine::Bootstrap as _;
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::flex::TOKENS_NAMESPACE;
use bringup_objects::flex::machine::{FlexMachineStatus, Place};
use bringup_provision::policy::{self, Policy};
use bringup_provision::{JoinSettings, Joining};
use bringup_testbed::ControlPlane;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, PostParams, PropagationPolicy};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::super::{ACCOUNT, NAMESPACE, becomes_allowed};
use super::flex::{installed, installed_with};

/// A client that acts as the controller's service account.
fn account(plane: &ControlPlane) -> Result<Client> {
    let mut config = plane.admin().config();
    config.auth_info.impersonate = Some(ACCOUNT.to_owned());
    let groups = ["system:serviceaccounts", "system:authenticated"];
    config.auth_info.impersonate_groups = Some(groups.map(str::to_owned).to_vec());
    Ok(Client::try_from(config)?)
}

/// The same client, once the account's rights and the policy are in force.
async fn limited_account(plane: &ControlPlane) -> Result<Client> {
    for verb in ["create", "delete"] {
        becomes_allowed(plane, TOKENS_NAMESPACE, "", "secrets", verb).await?;
    }
    let account = account(plane)?;
    let in_force = async { while policy::check(&account).await != Policy::InForce {} };
    in_time("the policy to be in force", in_force).await?;
    Ok(account)
}

/// A valid token, with changes.
fn token(changes: &Value) -> Result<Secret> {
    let mut secret = json!({
        "metadata": {
            "name": "bootstrap-token-abcdef",
            "labels": { "app.kubernetes.io/managed-by": "bringup" },
        },
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "expiration": "2030-01-01T00:00:00Z",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        },
    });
    json_patch(&mut secret, changes);
    Ok(serde_json::from_value(secret)?)
}

/// Merges `changes` into `into`; null removes a field.
fn json_patch(into: &mut Value, changes: &Value) {
    let (Value::Object(into), Value::Object(changes)) = (into, changes) else { return };
    for (key, change) in changes {
        match change {
            Value::Null => drop(into.remove(key)),
            Value::Object(_) if into.get(key).is_some_and(Value::is_object) => {
                json_patch(&mut into[key], change);
            }
            other => drop(into.insert(key.clone(), other.clone())),
        }
    }
}

/// Asserts that the policy refused the request.
fn refused<T>(answer: Result<T, kube::Error>, what: &str) {
    match answer.map(drop) {
        Err(kube::Error::Api(status)) if status.message.contains("bringup may") => {}
        other => panic!("{what}: {other:?}"),
    }
}

#[tokio::test]
async fn the_account_of_the_controller_makes_no_secrets_but_its_own_tokens() -> Result<()> {
    let plane = installed().await?;
    let secrets: Api<Secret> = Api::namespaced(limited_account(&plane).await?, TOKENS_NAMESPACE);
    let annotation = json!({ "kubernetes.io/service-account.name": "default" });
    for (changes, what) in [
        (json!({ "type": "Opaque" }), "another type"),
        (
            json!({ "type": "kubernetes.io/service-account-token",
                "metadata": { "annotations": annotation }, "stringData": null }),
            "a token of a service account",
        ),
        (json!({ "metadata": { "name": "other" } }), "another name"),
        (json!({ "metadata": { "name": "bootstrap-token-abcdef0" } }), "a longer name"),
        (json!({ "metadata": { "labels": null } }), "no label"),
        (
            json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "x" } } }),
            "another label",
        ),
        (json!({ "stringData": { "auth-extra-groups": "system:bootstrappers:x" } }), "a group"),
        (json!({ "stringData": { "auth-extra-groups": null } }), "no group"),
        (json!({ "stringData": { "usage-bootstrap-signing": "true" } }), "another usage"),
        (json!({ "stringData": { "usage-bootstrap-authentication": "yes" } }), "a usage's value"),
        (json!({ "stringData": { "expiration": null } }), "no end"),
        (json!({ "stringData": { "expiration": "" } }), "an empty end"),
        (json!({ "stringData": { "more": "x" } }), "another key"),
        (json!({ "stringData": null }), "no data"),
    ] {
        let answer = secrets.create(&PostParams::default(), &token(&changes)?).await;
        refused(answer, what);
    }
    let try_out = PostParams { dry_run: true, ..PostParams::default() };
    refused(secrets.create(&try_out, &token(&json!({}))?).await, "trying out");
    let all: Api<Secret> = Api::namespaced(plane.client(), TOKENS_NAMESPACE);
    assert_eq!(all.list(&ListParams::default()).await?.items.len(), 0);
    secrets.create(&PostParams::default(), &token(&json!({}))?).await?;
    Ok(())
}

#[tokio::test]
async fn the_account_of_the_controller_sees_and_deletes_no_secrets_but_its_own_tokens() -> Result<()>
{
    let plane = installed().await?;
    let secrets: Api<Secret> = Api::namespaced(limited_account(&plane).await?, TOKENS_NAMESPACE);
    let all: Api<Secret> = Api::namespaced(plane.client(), TOKENS_NAMESPACE);
    let label = json!({ "app.kubernetes.io/managed-by": "bringup" });
    let foreign = [
        json!({ "metadata": { "name": "plain" }, "stringData": { "password": "hush" } }),
        json!({ "metadata": { "name": "labelled", "labels": label }, "stringData": { "x": "y" } }),
    ];
    for secret in foreign {
        all.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    }
    let others = json!({ "metadata": { "name": "bootstrap-token-others", "labels": null } });
    all.create(&PostParams::default(), &token(&others)?).await?;
    secrets.create(&PostParams::default(), &token(&json!({}))?).await?;

    let policies = [
        None,
        Some(PropagationPolicy::Foreground),
        Some(PropagationPolicy::Orphan),
        Some(PropagationPolicy::Background),
    ];
    for name in ["plain", "labelled", "bootstrap-token-others", "bootstrap-token-abcdef"] {
        for dry_run in [true, false] {
            if name == "bootstrap-token-abcdef" && !dry_run {
                continue;
            }
            for propagation_policy in policies.clone() {
                let what = format!("{name}, dryRun {dry_run}, {propagation_policy:?}");
                let how = DeleteParams { dry_run, propagation_policy, ..DeleteParams::default() };
                refused(secrets.delete(name, &how).await, &what);
            }
        }
    }
    let mut names: Vec<String> =
        all.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
    names.sort();
    let expected = ["bootstrap-token-abcdef", "bootstrap-token-others", "labelled", "plain"];
    assert_eq!(names, expected);
    secrets.delete("bootstrap-token-abcdef", &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn a_token_that_the_controller_makes_is_one_that_the_policy_accepts() -> Result<()> {
    let plane = installed().await?;
    let account = limited_account(&plane).await?;
    let maps: Api<ConfigMap> = Api::namespaced(plane.client(), NAMESPACE);
    let told = maps.get("bringup-flex-join").await?.data.unwrap_or_default();
    let mut settings: Value = serde_json::from_str(&told["join.json"])?;
    let authority = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    settings["certificateAuthorityData"] = STANDARD.encode(authority).into();
    let settings: JoinSettings = serde_json::from_value(settings)?;
    let location = Place {
        vm: "one".to_owned(),
        max_pods: 110,
        kubernetes_version: Some("1.34.2".to_owned()),
        ..Place::default()
    };
    let mut machine: AzureFlexMachine = serde_json::from_value(json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexMachine",
        "metadata": { "name": "one", "uid": "uid-1" },
        "spec": { "nodeClass": "one", "vmSize": "Standard_D8s_v5" },
    }))?;
    machine.status =
        Some(FlexMachineStatus { place: Some(location), ..FlexMachineStatus::default() });
    let joining = Joining::new(settings, account, Arc::new(WallClock));
    // The second token replaces the first.
    for _ in 0..2 {
        joining.custom_data(&machine).await.map_err(anyhow::Error::msg)?;
    }
    let all: Api<Secret> = Api::namespaced(plane.client(), TOKENS_NAMESPACE);
    assert_eq!(all.list(&ListParams::default()).await?.items.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_policy_that_is_missing_is_noticed() -> Result<()> {
    let plane = installed_with(&["--set", "flex.policy.install=false"]).await?;
    becomes_allowed(&plane, TOKENS_NAMESPACE, "", "secrets", "create").await?;
    assert_eq!(policy::check(&account(&plane)?).await, Policy::Missing);
    let all: Api<Secret> = Api::namespaced(plane.client(), TOKENS_NAMESPACE);
    assert_eq!(all.list(&ListParams::default()).await?.items.len(), 0, "it was only tried out");
    Ok(())
}
