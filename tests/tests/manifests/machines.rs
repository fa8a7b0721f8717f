//! The chart with Machines of Cluster API switched on.

use std::fs;

use anyhow::{Context as _, Result};
use bringup_objects::report::MOVED_DEFINITION_LABEL;
use bringup_runtime::rights::{MACHINES, Place};
use bringup_testbed::{ControlPlane, CrdSet};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt as _};

use super::super::{NAMESPACE, apply, expected, grants, may, render, root};

#[tokio::test]
async fn with_machines_of_cluster_api_the_controller_may_do_exactly_what_they_need() -> Result<()> {
    let plane = ControlPlane::builder().crds([CrdSet::ClusterApi]).start().await?;
    let directory = tempfile::tempdir()?;
    let manifests = directory.path().join("machines.yaml");
    fs::write(&manifests, render(&["--set", "machines.enabled=true"])?)?;
    apply(&plane, &root().join("manifests/bringup.yaml"), &[])?;
    apply(&plane, &manifests, &["--force-conflicts"])?;
    assert!(MACHINES.iter().all(|needed| needed.place == Place::Everywhere));
    let roles: Api<ClusterRole> = Api::all(plane.client());
    let role = roles.get("bringup-machines").await?;
    assert_eq!(grants(role.rules.as_deref()), expected(&MACHINES));
    for (group, resource, verb) in [
        ("", "secrets", "get"),
        ("cluster.x-k8s.io", "machines", "delete"),
        ("cluster.x-k8s.io", "machinehealthchecks", "update"),
    ] {
        assert!(!may(&plane, "default", group, resource, verb).await?, "{verb} {resource}");
    }
    // Without this label `clusterctl move` would ignore reports.
    let definitions: Api<CustomResourceDefinition> = Api::all(plane.client());
    let definition = definitions.get("bootstrapreports.bringup.dev").await?;
    assert!(definition.labels().contains_key(MOVED_DEFINITION_LABEL));
    let deployments: Api<Deployment> = Api::namespaced(plane.client(), NAMESPACE);
    let spec = deployments.get("bringup").await?.spec.and_then(|spec| spec.template.spec);
    let environment = spec.context("no pod")?.containers[0].env.clone().unwrap_or_default();
    let machines = environment.iter().find(|variable| variable.name == "BRINGUP_MACHINES");
    assert_eq!(machines.and_then(|variable| variable.value.as_deref()), Some("true"));
    Ok(())
}
