//! What is read of Cluster API.

use bringup_controller::kinds::{machine_resource, provided_resource};
use bringup_objects::cluster_api::{AzureCluster, AzureMachine, GROUP, INFRASTRUCTURE, Machine};
use http::HeaderValue;
use http::header::ACCEPT;
use kube::api::{ApiResource, DynamicObject, ListParams, Request};
use kube::core::{ObjectMeta, Resource as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Cluster;
use super::trouble::{Asked, Unseen};

/// The form in which only the metadata of objects comes.
const NAMES: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");

const MACHINES: Asked = Asked { verb: "list", resource: "machines", group: GROUP };

#[derive(Debug, Deserialize)]
struct Items<T> {
    /// Of an empty list of metadata, null.
    items: Option<Vec<T>>,
}

#[derive(Debug, Deserialize)]
struct Named {
    metadata: ObjectMeta,
}

impl Cluster {
    /// The Machines of that name, in a namespace or in all.
    pub(crate) async fn machines_called(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Vec<Machine>, Unseen> {
        self.called(&machine_resource(), namespace, Some(name), MACHINES).await
    }

    /// Namespace and name of every Machine, in a namespace or in all.
    pub(crate) async fn machine_names(
        &self,
        namespace: Option<&str>,
    ) -> Result<Vec<(String, String)>, Unseen> {
        let path = DynamicObject::url_path(&machine_resource(), namespace);
        let mut request =
            Request::new(path).list(&ListParams::default()).map_err(kube::Error::BuildRequest);
        if let Ok(request) = &mut request {
            request.headers_mut().insert(ACCEPT, NAMES);
        }
        let list: Items<Named> = self.ask(request, MACHINES).await?;
        let all = list.items.into_iter().flatten();
        Ok(all.filter_map(|one| Some((one.metadata.namespace?, one.metadata.name?))).collect())
    }

    /// The provider's objects of a kind and name, in a namespace or in all.
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
        self.called(&provided_resource(kind), namespace, Some(name), asked).await
    }

    /// Where the clusters of a namespace are.
    pub(crate) async fn azure_clusters(
        &self,
        namespace: &str,
    ) -> Result<Vec<AzureCluster>, Unseen> {
        let asked = Asked { verb: "list", resource: "azureclusters", group: INFRASTRUCTURE };
        self.called(&provided_resource("AzureCluster"), Some(namespace), None, asked).await
    }

    /// A list, also of one: nothing of that name and no such kind are two things.
    async fn called<T: DeserializeOwned>(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: Option<&str>,
        asked: Asked,
    ) -> Result<Vec<T>, Unseen> {
        let field_selector = name.map(|name| format!("metadata.name={name}"));
        let params = ListParams { field_selector, ..ListParams::default() };
        let path = DynamicObject::url_path(resource, namespace);
        let request = Request::new(path).list(&params).map_err(kube::Error::BuildRequest);
        let found: Items<T> = self.ask(request, asked).await?;
        Ok(found.items.unwrap_or_default())
    }
}
