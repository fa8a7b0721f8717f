//! Reads objects of Cluster API.

use bringup_objects::Readable;
use bringup_objects::cluster_api::{
    AzureCluster, AzureMachine, AzureMachinePool, Cluster as ApiCluster, GROUP, INFRASTRUCTURE,
    Machine,
};
use http::HeaderValue;
use http::header::ACCEPT;
use kube::api::{ListParams, ObjectMeta, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Cluster;
use super::read::readable;
use super::trouble::{Asked, Unseen};

/// The media type that returns only the metadata of objects.
const NAMES: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");

const MACHINES: Asked = Asked { verb: "list", resource: "machines", group: GROUP };
/// The versions of the Cluster API kinds, the newest first: not all kinds of the provider are served in the
/// same version.
const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

#[derive(Debug, Deserialize)]
struct Items<T> {
    /// `null` in an empty list of metadata.
    items: Option<Vec<T>>,
}

#[derive(Debug, Deserialize)]
struct Named {
    metadata: ObjectMeta,
}

impl Cluster {
    /// The Machines with this name, in a namespace or in all.
    pub(crate) async fn machines_called(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Vec<Machine>, Unseen> {
        self.listed(MACHINES, namespace, Some(name), None).await
    }

    /// The namespace and name of every Machine, in a namespace or in all.
    pub(crate) async fn machine_names(
        &self,
        namespace: Option<&str>,
    ) -> Result<Vec<(String, String)>, Unseen> {
        let all: Vec<Named> = self.listed(MACHINES, namespace, None, Some(NAMES)).await?;
        let names = all.into_iter().map(|one| one.metadata);
        Ok(names.filter_map(|meta| Some((meta.namespace?, meta.name?))).collect())
    }

    /// The provider's objects of this kind and name, in a namespace or in all.
    pub(crate) async fn provided_called(
        &self,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Vec<AzureMachine>, Unseen> {
        let resource = match kind {
            "AzureMachine" => "azuremachines",
            _ => "azuremachinepoolmachines",
        };
        let asked = Asked { verb: "list", resource, group: INFRASTRUCTURE };
        self.listed(asked, namespace, Some(name), None).await
    }

    /// The `AzureClusters` of a namespace.
    pub(crate) async fn azure_clusters(
        &self,
        namespace: &str,
    ) -> Result<Vec<AzureCluster>, Unseen> {
        let asked = Asked { verb: "list", resource: "azureclusters", group: INFRASTRUCTURE };
        self.listed(asked, Some(namespace), None, None).await
    }

    /// The Clusters with this name in a namespace.
    pub(crate) async fn clusters_called(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<ApiCluster>, Unseen> {
        let asked = Asked { verb: "list", resource: "clusters", group: GROUP };
        self.listed(asked, Some(namespace), Some(name), None).await
    }

    /// The pools of a namespace.
    pub(crate) async fn pools(&self, namespace: &str) -> Result<Vec<AzureMachinePool>, Unseen> {
        let asked = Asked { verb: "list", resource: "azuremachinepools", group: INFRASTRUCTURE };
        self.listed(asked, Some(namespace), None, None).await
    }

    /// A list, even for a single name: a list distinguishes an unknown name from an unknown kind.
    async fn listed<T: DeserializeOwned>(
        &self,
        asked: Asked,
        namespace: Option<&str>,
        name: Option<&str>,
        form: Option<HeaderValue>,
    ) -> Result<Vec<T>, Unseen> {
        let field_selector = name.map(|name| format!("metadata.name={name}"));
        let params = ListParams { field_selector, ..ListParams::default() };
        let place = namespace.map(|it| format!("namespaces/{it}/")).unwrap_or_default();
        for version in VERSIONS {
            let path = format!("/apis/{}/{version}/{place}{}", asked.group, asked.resource);
            let mut request = Request::new(path).list(&params).map_err(kube::Error::BuildRequest);
            if let (Ok(request), Some(form)) = (&mut request, &form) {
                request.headers_mut().insert(ACCEPT, form.clone());
            }
            match self.ask::<Items<Readable<T>>>(request, asked).await {
                Err(Unseen::NotServed) => {}
                answer => {
                    let items = answer?.items.into_iter().flatten();
                    return Ok(items.filter_map(readable).collect());
                }
            }
        }
        Err(Unseen::NotServed)
    }
}
