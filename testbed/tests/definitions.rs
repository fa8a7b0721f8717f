//! The custom resource definitions of other projects.

use anyhow::Context;
use bringup_testbed::{ControlPlane, CrdSet};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt, api::ListParams};

#[tokio::test]
async fn all_sets_install_and_are_established() -> anyhow::Result<()> {
    let control_plane = ControlPlane::builder().crds(CrdSet::ALL).start().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(control_plane.client());
    let definitions = definitions.list(&ListParams::default()).await?;

    for expected in [
        "nodeclaims.karpenter.sh",
        "nodepools.karpenter.sh",
        "aksnodeclasses.karpenter.azure.com",
        "machines.cluster.x-k8s.io",
        "clusters.cluster.x-k8s.io",
        "azuremachines.infrastructure.cluster.x-k8s.io",
        "azuremachinepoolmachines.infrastructure.cluster.x-k8s.io",
        "servicemonitors.monitoring.coreos.com",
        "prometheusrules.monitoring.coreos.com",
    ] {
        let found = definitions.iter().any(|it| it.name_any() == expected);
        assert!(found, "{expected} is not installed");
    }
    for definition in &definitions {
        assert!(is_established(definition), "{}", definition.name_any());
    }
    Ok(())
}

#[tokio::test]
async fn both_flavours_of_node_claim_install_and_the_later_one_counts() -> anyhow::Result<()> {
    let control_plane = ControlPlane::builder().crds([CrdSet::Karpenter]).start().await?;
    assert!(!restricts_azure_labels(&control_plane).await?);

    control_plane.install(CrdSet::KarpenterAzure).await?;
    assert!(restricts_azure_labels(&control_plane).await?);
    Ok(())
}

/// The difference between the Karpenter sets: the Azure set restricts which of its labels a pool may request.
async fn restricts_azure_labels(control_plane: &ControlPlane) -> anyhow::Result<bool> {
    let definitions: Api<CustomResourceDefinition> = Api::all(control_plane.client());
    let definition = definitions.get("nodeclaims.karpenter.sh").await?;
    assert!(is_established(&definition));
    let version = definition.spec.versions.first().context("no version")?;
    let schema = serde_json::to_string(&version.schema)?;
    Ok(schema.contains("label domain \\\"karpenter.azure.com\\\" is restricted"))
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    definition
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}
