//! Custom resource definitions: read, applied, and waited for.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, Object},
    runtime::watcher,
};
use serde::Deserialize;

use crate::{Assets, Error, Result, wait};

/// Definitions that belong together, as one project publishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrdSet {
    /// Karpenter's own `NodeClaim` and `NodePool`.
    Karpenter,
    /// `NodeClaim` and `NodePool` as Karpenter's Azure provider ships them, and `AKSNodeClass`.
    KarpenterAzure,
    /// Cluster API's core: Cluster, Machine and so on.
    ClusterApi,
    /// Cluster API's kubeadm providers: `KubeadmConfigTemplate` and so on.
    ClusterApiKubeadm,
    /// Cluster API's Azure provider: `AzureMachine` and so on.
    ClusterApiAzure,
    /// `ServiceMonitor` and `PrometheusRule` of the Prometheus operator.
    Prometheus,
}

impl CrdSet {
    /// All sets; if both Karpenter sets define a resource, the Azure set counts.
    pub const ALL: [Self; 6] = [
        Self::Karpenter,
        Self::KarpenterAzure,
        Self::ClusterApi,
        Self::ClusterApiKubeadm,
        Self::ClusterApiAzure,
        Self::Prometheus,
    ];

    /// The sets of a cluster in which bringup watches both `NodeClaims` and Machines.
    pub const DEFAULT: [Self; 3] = [Self::KarpenterAzure, Self::ClusterApi, Self::ClusterApiAzure];

    fn folder(self) -> &'static str {
        match self {
            Self::Karpenter => "karpenter",
            Self::KarpenterAzure => "karpenter-azure",
            Self::ClusterApi => "cluster-api",
            Self::ClusterApiKubeadm => "cluster-api-kubeadm",
            Self::ClusterApiAzure => "cluster-api-azure",
            Self::Prometheus => "prometheus",
        }
    }
}

/// A definition as text, which the API server parses faster than this program could.
#[derive(Debug)]
pub(crate) struct Manifest {
    name: String,
    yaml: Vec<u8>,
}

impl From<CustomResourceDefinition> for Manifest {
    fn from(definition: CustomResourceDefinition) -> Self {
        Self {
            name: definition.name_any(),
            yaml: serde_json::to_vec(&definition)
                .expect("a definition has string keys only, so it can be JSON, which is YAML"),
        }
    }
}

/// The manifests of all sets, each definition once.
pub(crate) fn read(assets: &Assets, sets: &[CrdSet]) -> Result<Vec<Manifest>> {
    let mut manifests = BTreeMap::new();
    for set in sets {
        let folder = assets.definitions(set.folder());
        let entries = fs::read_dir(&folder).map_err(Error::file("read", &folder))?;
        for entry in entries {
            let path = entry.map_err(Error::file("read", &folder))?.path();
            let Some(name) = path.file_stem().and_then(|stem| definition_name(stem.to_str()?))
            else {
                continue;
            };
            let yaml = fs::read(&path).map_err(Error::file("read", &path))?;
            manifests.insert(name, yaml);
        }
    }
    Ok(manifests.into_iter().map(|(name, yaml)| Manifest { name, yaml }).collect())
}

/// `nodeclaims.karpenter.sh` from `karpenter.sh_nodeclaims`, as controller-gen names files.
fn definition_name(file_stem: &str) -> Option<String> {
    let (group, plural) = file_stem.split_once('_')?;
    Some(format!("{plural}.{group}"))
}

/// Applies all manifests and waits until the API server serves the defined resources.
pub(crate) async fn install(client: &Client, manifests: Vec<Manifest>) -> Result<()> {
    let applied: Vec<Definition> = stream::iter(manifests)
        .map(|manifest| apply(client, manifest))
        .buffer_unordered(8)
        .try_collect()
        .await?;
    if applied.is_empty() {
        return Ok(());
    }
    let awaited = "the definitions being established";
    wait::in_time(awaited, established(client, &applied)).await??;
    served(client, &applied).await
}

/// The few fields of a definition that the testbed uses; most of a definition is schema.
type Definition = Object<Spec, Status>;

#[derive(Debug, Clone, Deserialize)]
struct Spec {
    group: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Debug, Clone, Deserialize)]
struct Names {
    plural: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Version {
    name: String,
    served: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Option<Vec<CustomResourceDefinitionCondition>>,
}

fn is_established(definition: &Definition) -> bool {
    definition
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}

async fn apply(client: &Client, manifest: Manifest) -> Result<Definition> {
    let Manifest { name, yaml } = manifest;
    let path = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}\
         ?fieldManager=bringup-testbed&force=true"
    );
    let request = http::Request::patch(path)
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(yaml)
        .map_err(kube::Error::HttpError)
        .map_err(Error::api(format!("name the definition {name:?}")))?;
    client.request(request).await.map_err(Error::api(format!("install the definition {name}")))
}

async fn established(client: &Client, definitions: &[Definition]) -> Result<()> {
    let mut pending: BTreeSet<String> = definitions
        .iter()
        .filter(|definition| !is_established(definition))
        .map(ResourceExt::name_any)
        .collect();
    if pending.is_empty() {
        return Ok(());
    }
    let resource = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<Definition> = Api::all_with(client.clone(), &resource);
    let mut events = watcher(api, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        let event = event.map_err(|source| Error::Watch {
            watched: "custom resource definitions",
            source: Box::new(source),
        })?;
        let (watcher::Event::InitApply(definition) | watcher::Event::Apply(definition)) = event
        else {
            continue;
        };
        if is_established(&definition) {
            pending.remove(&definition.name_any());
        }
        if pending.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Waits for discovery. Discovery and the request handler learn of a definition in that order from the same
/// cache, some time after the watch reported `Established`.
async fn served(client: &Client, definitions: &[Definition]) -> Result<()> {
    let mut expected: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for Spec { group, names, versions } in definitions.iter().map(|definition| &definition.spec) {
        for version in versions.iter().filter(|version| version.served) {
            let served = expected.entry(format!("{group}/{}", version.name)).or_default();
            served.insert(&names.plural);
        }
    }
    for (group_version, plurals) in expected {
        wait::answer(&format!("{group_version} being served"), async || {
            // The request returns 404 until the API server knows the first definition of the group.
            let Ok(list) = client.list_api_group_resources(&group_version).await else {
                return Ok(None);
            };
            let known: BTreeSet<&str> = list.resources.iter().map(|it| it.name.as_str()).collect();
            Ok(plurals.is_subset(&known).then_some(()))
        })
        .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_named_by_its_file() {
        assert_eq!(
            definition_name("karpenter.sh_nodeclaims").as_deref(),
            Some("nodeclaims.karpenter.sh")
        );
        assert_eq!(definition_name("kustomization"), None);
    }
}
