//! The CustomData with which a machine joins.

use bringup_end_to_end::flex_controller::join_settings;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::join_config::JoinConfig;
use bringup_end_to_end::simulated_clock::SimulatedClock;
use bringup_flex::engine::Bootstrap as _;
use bringup_objects::flex::machine::Phase;
use bringup_provision::{JoinSettings, Joining};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};

use crate::common::{FlexBed, class, machine};

fn settings(version: &str) -> Result<JoinSettings> {
    serde_json::from_value(join_settings(version)).context("read the settings")
}

/// The join settings for machines of the cluster's own Kubernetes version.
pub(crate) async fn joining(bed: &FlexBed) -> Result<Joining> {
    let version = bed.client.apiserver_version().await?.git_version;
    let clock = Arc::new(SimulatedClock(bed.azure.clone()));
    Ok(Joining::new(settings(version.trim_start_matches('v'))?, bed.client.clone(), clock))
}

/// The configuration in the CustomData of a machine.
fn config(custom_data: &str) -> Result<JoinConfig> {
    let text = String::from_utf8(STANDARD.decode(custom_data)?)?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("content: "));
    let json = STANDARD.decode(line.context("there is a file")?)?;
    JoinConfig::parse(&json).context("read the configuration")
}

#[tokio::test]
async fn case_25_35_36_custom_data_has_max_pods_the_cluster_version_and_a_token_of_its_own()
-> Result<()> {
    let bed = FlexBed::new("").await?;
    let mut small: Value = class("small");
    small["spec"]["maxPodsPerNode"] = json!(42);
    small["spec"]["kubernetesVersion"] = json!("1.34.0");
    bed.create_class(&small).await?;
    let mut wanted = machine("one", "small", "Standard_D8s_v5")?;
    wanted.spec.labels.insert("team".to_owned(), "blue".to_owned());
    wanted.spec.taints = vec!["karpenter.sh/unregistered:NoExecute".to_owned()];
    bed.create_machine(&wanted).await?;
    let machine = bed.machine_in("one", Phase::Running).await?;
    let clock = Arc::new(SimulatedClock(bed.azure.clone()));
    let joining = Joining::new(settings("1.34.0")?, bed.client.clone(), clock);
    let told = async || joining.custom_data(&machine).await.map_err(|why| anyhow::anyhow!(why));
    let first = config(&told().await?)?;
    assert_eq!((first.node.max_pods, first.kubernetes_version.as_str()), (42, "1.34.0"));
    assert_eq!(Some(first.node.provider_id), machine.status.clone().and_then(|it| it.provider_id));
    assert_eq!(first.node.labels["team"], "blue");
    assert_eq!(first.node.taints.len(), 1);
    // The token is stored in the cluster and expires, and a second token takes its place.
    let second = config(&told().await?)?;
    assert_ne!(first.token, second.token);
    let (id, secret) = second.token.reveal().split_once('.').context("a token has two parts")?;
    let secrets: Api<Secret> = Api::namespaced(bed.client.clone(), "kube-system");
    let stored = secrets.get(&format!("bootstrap-token-{id}")).await?.data.unwrap_or_default();
    assert_eq!(stored["token-secret"].0, secret.as_bytes());
    assert!(stored.contains_key("expiration"));
    // The machine object holds no part of the tokens.
    let kept = serde_json::to_string(&bed.machines().get("one").await?)?;
    assert!(!kept.contains(secret) && !kept.contains(first.token.reveal()));
    // A Kubernetes version without known programs is reported before any CustomData is made.
    let other = Joining::new(
        settings("1.33.1")?,
        bed.client.clone(),
        Arc::new(SimulatedClock(bed.azure.clone())),
    );
    let why = other.custom_data(&machine).await.err().unwrap_or_default();
    assert!(why.contains("no programs of Kubernetes 1.34.0"), "{why}");
    Ok(())
}
