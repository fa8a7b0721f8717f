//! Changes of definitions, as upgrades make them.

use anyhow::{Context as _, Result};
use bringup_testbed::wait::{polled, until};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

/// Changes the versions of a definition.
pub(crate) async fn edit(
    client: &Client,
    name: &str,
    change: impl Fn(&mut Vec<Value>),
) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    loop {
        let mut definition = serde_json::to_value(definitions.get(name).await?)?;
        change(definition["spec"]["versions"].as_array_mut().context("it has versions")?);
        let definition = serde_json::from_value(definition)?;
        match definitions.replace(name, &PostParams::default(), &definition).await {
            // The API server writes the status of the definition at the same time.
            Err(kube::Error::Api(status)) if status.code == 409 => tokio::task::yield_now().await,
            other => return other.map(drop).context("change the definition"),
        }
    }
}

/// Machines are served and stored in this version alone.
pub(crate) async fn serve_only(client: &Client, only: &str) -> Result<()> {
    serve_kind_only(client, "Machine", only).await
}

/// A kind of Cluster API's own is served and stored in this version alone.
pub(crate) async fn serve_kind_only(client: &Client, kind: &str, only: &str) -> Result<()> {
    let name = format!("{}s.cluster.x-k8s.io", kind.to_lowercase());
    edit(client, &name, |versions| {
        for version in versions {
            let is_it = version["name"] == only;
            version["served"] = json!(is_it);
            version["storage"] = json!(is_it);
        }
    })
    .await?;
    let is_served = polled(async || {
        let group = kube::discovery::group(client, "cluster.x-k8s.io").await?;
        let mut served = group.resources_by_stability().into_iter();
        anyhow::Ok(served.any(|(it, _)| it.kind == kind && it.version == only))
    });
    until(format!("{kind} served in {only}"), is_served, |is_served| *is_served).await?;
    Ok(())
}
