//! The chart with machines switched on: the API server accepts it, it grants exactly the rights of the
//! table, and it can be installed before or after Karpenter's chart.

use std::fs;

use anyhow::{Context as _, Result};
use bringup_objects::flex::definitions;
use bringup_objects::flex::{LEDGER, TOKENS_NAMESPACE};
use bringup_provision::JoinSettings;
use bringup_runtime::rights::{FLEX, Needed, Place};
use bringup_testbed::{ControlPlane, CrdSet};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, ResourceExt as _};

use super::super::{NAMESPACE, apply, becomes_allowed, expected, grants, helm, may, output};
use super::super::{render, root};

const VALUES: [&str; 2] = ["--values", "charts/tests/flex.yaml"];
/// The source code that defines the controller's flags.
const FLAGS: &str = concat!(
    include_str!("../../../crates/cli/src/controller.rs"),
    include_str!("../../../crates/cli/src/azure.rs")
);

/// A control plane on which the chart is installed, with machines.
pub(super) async fn installed() -> Result<ControlPlane> {
    installed_with(&[]).await
}

/// The same, with further options of the chart.
pub(super) async fn installed_with(options: &[&str]) -> Result<ControlPlane> {
    let plane = ControlPlane::builder().crds([CrdSet::KarpenterAzure]).start().await?;
    let directory = tempfile::tempdir()?;
    let manifests = directory.path().join("flex.yaml");
    let with_class = ["--set", "definitions.nodeClass=true"];
    fs::write(&manifests, render(&[&VALUES, &with_class, options].concat())?)?;
    apply(&plane, &root().join("manifests/bringup.yaml"), &[])?;
    apply(&plane, &manifests, &["--force-conflicts"])?;
    Ok(plane)
}

fn at(place: Place) -> Vec<Needed> {
    FLEX.into_iter().filter(|needed| needed.place == place).collect()
}

/// What rules grant on one object alone.
fn on_one_object(rules: &[PolicyRule]) -> Vec<(&str, &str)> {
    rules
        .iter()
        .flat_map(|rule| {
            let names = rule.resource_names.iter().flatten();
            names.flat_map(|name| rule.verbs.iter().map(|verb| (name.as_str(), verb.as_str())))
        })
        .collect()
}

#[tokio::test]
async fn with_machines_the_controller_may_do_exactly_what_they_need() -> Result<()> {
    let plane = installed().await?;
    let everywhere = at(Place::Everywhere);
    let role = Api::<ClusterRole>::all(plane.client()).get("bringup-flex").await?;
    assert_eq!(grants(role.rules.as_deref()), expected(&everywhere));
    let (home, system) = (at(Place::Home), at(Place::Namespace(TOKENS_NAMESPACE)));
    for (namespace, wanted) in [(NAMESPACE, &home), (TOKENS_NAMESPACE, &system)] {
        let at_place: Api<Role> = Api::namespaced(plane.client(), namespace);
        let rules = at_place.get("bringup-flex").await?.rules.unwrap_or_default();
        assert_eq!(grants(Some(&rules)), expected(wanted), "{namespace}");
        let named = wanted.iter().filter_map(|needed| Some((needed.name?, needed.verb)));
        assert_eq!(on_one_object(&rules), named.collect::<Vec<_>>(), "{namespace}");
    }
    let places = [("default", everywhere), (NAMESPACE, home), (TOKENS_NAMESPACE, system)];
    for (namespace, grants) in places {
        for Needed { group, resource, verb, .. } in grants.iter().filter(|it| it.name.is_none()) {
            becomes_allowed(&plane, namespace, group, resource, verb).await?;
        }
    }
    for (group, resource, verb, namespace) in [
        ("", "secrets", "get", TOKENS_NAMESPACE),
        ("", "secrets", "list", TOKENS_NAMESPACE),
        ("", "secrets", "create", NAMESPACE),
        ("", "secrets", "delete", "default"),
        ("", "configmaps", "update", NAMESPACE),
        ("", "configmaps", "get", TOKENS_NAMESPACE),
        ("", "nodes", "delete", ""),
        ("karpenter.sh", "nodeclaims", "create", ""),
        ("karpenter.sh", "nodepools", "update", ""),
    ] {
        let allowed = may(&plane, namespace, group, resource, verb).await?;
        assert!(!allowed, "{verb} {resource} in {namespace:?}");
    }
    Ok(())
}

#[tokio::test]
async fn what_the_chart_says_of_machines_is_what_the_controller_reads() -> Result<()> {
    let plane = installed().await?;
    let maps: Api<ConfigMap> = Api::namespaced(plane.client(), NAMESPACE);
    let told = maps.get("bringup-flex-join").await?.data.unwrap_or_default();
    let join: JoinSettings = serde_json::from_str(&told["join.json"])?;
    assert_eq!(join.server, "https://test-1.example.com:443");
    assert_eq!(join.artifacts.kubelet.version, "1.34.2");
    assert_ne!("bringup-flex-join", LEDGER, "that is another");

    let deployments: Api<Deployment> = Api::namespaced(plane.client(), NAMESPACE);
    let template = deployments.get("bringup").await?.spec.context("no spec")?.template;
    let spec = template.spec.context("no pod")?;
    let environment = spec.containers[0].env.iter().flatten();
    let variables: Vec<&str> = environment.map(|variable| variable.name.as_str()).collect();
    for variable in &variables {
        assert!(FLAGS.contains(&format!("env = \"{variable}\"")), "{variable} is no flag's");
    }
    for flag in FLAGS.match_indices("env = \"BRINGUP_FLEX").map(|(at, _)| &FLAGS[at + 7..]) {
        let flag = flag.split('"').next().unwrap_or_default();
        assert!(variables.contains(&flag), "{flag} is not set");
    }
    let services: Api<Service> = Api::namespaced(plane.client(), NAMESPACE);
    let ports = services.get("bringup-flex").await?.spec.and_then(|spec| spec.ports);
    assert_eq!(ports.context("no ports")?[0].port, 9443);

    // The namespace demands the restricted standard.
    let metadata = template.metadata.unwrap_or_default();
    let metadata = ObjectMeta { name: Some("bringup-0".to_owned()), ..metadata };
    let pods: Api<Pod> = Api::namespaced(plane.client(), NAMESPACE);
    let try_out = PostParams { dry_run: true, ..PostParams::default() };
    pods.create(&try_out, &Pod { metadata, spec: Some(spec), status: None }).await?;
    Ok(())
}

#[tokio::test]
async fn test_59_the_definitions_in_the_chart_are_those_of_the_code() -> Result<()> {
    let plane = installed().await?;
    let installed: Api<CustomResourceDefinition> = Api::all(plane.client());
    for definition in definitions() {
        let shipped = installed.get(&definition.name_any()).await?;
        let versions =
            |definition: &CustomResourceDefinition| serde_json::to_value(&definition.spec.versions);
        assert_eq!(versions(&shipped)?, versions(&definition)?, "run make manifests");
    }
    Ok(())
}

#[tokio::test]
async fn helm_installs_both_charts_in_either_order_and_upgrades_and_uninstalls_keep_definitions()
-> Result<()> {
    for order in [["bringup", "karpenter"], ["karpenter", "bringup"]] {
        let helm = Helm::new().await?;
        for release in order {
            helm.install(release, &[])?;
        }
        helm.upgrade(&[])?;
        assert_eq!(helm.owner("azureflexmachines").await?.as_deref(), Some("bringup"));
        assert_eq!(helm.owner("azureflexnodeclasses").await?, None);
        helm.uninstall("bringup")?;
        helm.uninstall("karpenter")?;
        // The definitions, and so the machines and their VMs, outlive both charts.
        helm.owner("azureflexmachines").await?;
        helm.owner("azureflexnodeclasses").await?;
    }
    Ok(())
}

#[tokio::test]
async fn without_karpenters_chart_the_class_is_defined_here() -> Result<()> {
    let helm = Helm::new().await?;
    let with_class = ["--set", "definitions.nodeClass=true"];
    helm.install("bringup", &with_class)?;
    let notes = helm.upgrade(&with_class)?;
    assert!(notes.contains("bringup-flex.bringup-system.svc:9443"), "{notes}");
    for kind in ["azureflexmachines", "azureflexnodeclasses"] {
        assert_eq!(helm.owner(kind).await?.as_deref(), Some("bringup"), "{kind}");
    }
    // With machines switched off, existing machines stay as they are.
    let fixed = ["upgrade", "bringup", "charts/bringup", "--namespace", NAMESPACE];
    helm.run(&fixed)?;
    for kind in ["azureflexmachines", "azureflexnodeclasses"] {
        helm.owner(kind).await?;
    }
    helm.uninstall("bringup")?;
    helm.owner("azureflexmachines").await?;
    Ok(())
}

/// Helm on a cluster of its own.
struct Helm {
    plane: ControlPlane,
    home: tempfile::TempDir,
}

impl Helm {
    async fn new() -> Result<Self> {
        let plane = ControlPlane::builder().crds([CrdSet::Karpenter]).start().await?;
        Ok(Self { plane, home: tempfile::tempdir()? })
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut helm = helm(self.home.path())?;
        helm.env("KUBECONFIG", self.plane.kubeconfig_path());
        output(helm.args(arguments))
    }

    fn install(&self, release: &str, options: &[&str]) -> Result<String> {
        let (chart, values): (_, &[&str]) = match release {
            "bringup" => ("charts/bringup", &VALUES),
            _ => ("karpenter/charts/karpenter", &[]),
        };
        let fixed = ["install", release, chart, "--create-namespace"];
        self.run(&[&fixed[..], &["--namespace", namespace(release)], values, options].concat())
    }

    fn upgrade(&self, options: &[&str]) -> Result<String> {
        let fixed = ["upgrade", "bringup", "charts/bringup", "--namespace", NAMESPACE];
        self.run(&[&fixed[..], &VALUES, options].concat())
    }

    fn uninstall(&self, release: &str) -> Result<String> {
        self.run(&["uninstall", release, "--namespace", namespace(release)])
    }

    /// The release that owns a definition. The definition must exist.
    async fn owner(&self, kind: &str) -> Result<Option<String>> {
        let all: Api<CustomResourceDefinition> = Api::all(self.plane.client());
        let definition = all.get(&format!("{kind}.flex.aks.azure.com")).await?;
        Ok(definition.annotations().get("meta.helm.sh/release-name").cloned())
    }
}

fn namespace(release: &str) -> &str {
    if release == "bringup" { NAMESPACE } else { release }
}
