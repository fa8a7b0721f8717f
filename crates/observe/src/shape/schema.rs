//! Shapes from the schema documents that the API server publishes: one index, and for each version one
//! document with the schemas. All authenticated users may read these documents.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bringup_objects::cluster_api::{GROUP, INFRASTRUCTURE};
use http::{HeaderValue, Request, StatusCode, header};
use kube::Client;
use kube::client::Body;
use kube::core::{ApiResource, Status};
use serde::Deserialize;

use super::{FOLLOWED, List, Shape, Shapes};

/// The path of the index of documents, by group and version.
const DOCUMENTS: &str = "/openapi/v3/apis";

/// The schemas of one version of an API group.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    components: Components,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Components {
    schemas: BTreeMap<String, Schema>,
}

/// The fields of a schema that a shape needs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Schema {
    #[serde(rename = "x-kubernetes-group-version-kind")]
    kinds: Vec<Named>,
    #[serde(rename = "x-kubernetes-list-type")]
    list_type: Option<String>,
    #[serde(rename = "maxItems")]
    most: Option<usize>,
    items: Option<Box<Schema>>,
    properties: Properties,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Properties {
    status: Option<Box<Schema>>,
    conditions: Option<Box<Schema>>,
    severity: Option<Box<Schema>>,
}

#[derive(Debug, Deserialize)]
struct Named {
    group: String,
    version: String,
    kind: String,
}

impl Schema {
    /// The shape of the conditions in the object's status, if the status has conditions.
    fn shape(&self, resource: &ApiResource) -> Option<Shape> {
        let status = self.properties.status.as_ref()?;
        let conditions = status.properties.conditions.as_ref()?;
        let item = conditions.items.as_ref()?;
        let is_map = conditions.list_type.as_deref() == Some("map");
        Some(Shape {
            resource: resource.clone(),
            list: if is_map { List::ByType } else { List::Whole },
            has_severity: item.properties.severity.is_some(),
            most: conditions.most,
        })
    }
}

impl Document {
    /// Drops the schemas of all other kinds, to save memory.
    fn trimmed(mut self) -> Self {
        self.components.schemas.retain(|_, schema| {
            schema.kinds.retain(|named| FOLLOWED.contains(&(&named.group, &named.kind)));
            !schema.kinds.is_empty()
        });
        self
    }

    /// The shape of a kind, if this document contains the kind.
    fn shape(&self, resource: &ApiResource) -> Option<Shape> {
        let ApiResource { group, version, kind, .. } = resource;
        let is_it = |named: &Named| {
            named.group == *group && named.version == *version && named.kind == *kind
        };
        let mut schemas = self.components.schemas.values();
        schemas.find(|schema| schema.kinds.iter().any(is_it))?.shape(resource)
    }
}

/// The documents that were read. Each is read again only after it has changed.
#[derive(Debug, Default)]
pub struct Schemas {
    documents: HashMap<String, Read>,
}

#[derive(Debug)]
struct Read {
    /// The etag of the document, with which the API server detects a change.
    tag: Option<HeaderValue>,
    document: Document,
}

impl Schemas {
    /// Reads the documents that have changed. For a kind that is served in several versions, the best version
    /// counts; the shape of a kind that is not served stays. Returns whether every served kind has a schema:
    /// right after a definition was created, its schema is missing, and a shape is assumed for its version.
    ///
    /// # Errors
    /// The API server did not answer, or forbids the read.
    pub async fn refresh(&mut self, client: &Client, shapes: &Shapes) -> kube::Result<bool> {
        let mut served = Vec::new();
        for group in [GROUP, INFRASTRUCTURE] {
            match kube::discovery::group(client, group).await {
                Ok(group) => served.extend(group.resources_by_stability()),
                Err(kube::Error::Discovery(_)) => {} // it is not installed
                Err(error) => return Err(error),
            }
        }
        let is_inspected = |resource: &ApiResource| {
            FOLLOWED.contains(&(resource.group.as_str(), resource.kind.as_str()))
        };
        let served: Vec<ApiResource> =
            served.into_iter().map(|(resource, _)| resource).filter(is_inspected).collect();
        let versions: BTreeSet<&str> = served.iter().map(|it| it.api_version.as_str()).collect();
        let mut read = Ok(());
        for version in versions {
            read = read.and(self.read(client, version).await);
        }
        let mut is_complete = true;
        for resource in served {
            let read = self.documents.get(&resource.api_version);
            let found = read.and_then(|read| read.document.shape(&resource));
            is_complete &= found.is_some();
            shapes.found(&found.unwrap_or_else(|| Shape::assumed_of(resource)));
        }
        read.map(|()| is_complete)
    }

    /// Reads the document of a version, if the document has changed.
    async fn read(&mut self, client: &Client, version: &str) -> kube::Result<()> {
        let mut request = Request::get(format!("{DOCUMENTS}/{version}"));
        if let Some(tag) = self.documents.get(version).and_then(|read| read.tag.as_ref()) {
            request = request.header(header::IF_NONE_MATCH, tag);
        }
        let request = request.body(Body::empty()).map_err(kube::Error::HttpError)?;
        let response = client.send(request).await?;
        match response.status() {
            StatusCode::NOT_MODIFIED => {}
            StatusCode::NOT_FOUND => drop(self.documents.remove(version)),
            status if status.is_success() => {
                let tag = response.headers().get(header::ETAG).cloned();
                let text = response.into_body().collect_bytes().await?;
                let document: Document =
                    serde_json::from_slice(&text).map_err(kube::Error::SerdeError)?;
                self.documents
                    .insert(version.to_owned(), Read { tag, document: document.trimmed() });
            }
            status => {
                let message = format!("the schemas of {version} were not given: {status}");
                let reason = status.canonical_reason().unwrap_or_default();
                let refusal = Status::failure(&message, reason).with_code(status.as_u16());
                return Err(kube::Error::Api(refusal.boxed()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::resource;
    use super::*;

    fn found(version: &str, kind: &str, conditions: &Value) -> Option<Shape> {
        let group = INFRASTRUCTURE;
        let document = json!({ "components": { "schemas": {
            "a.Status": { "type": "object", "properties": { "status": { "type": "string" } } },
            "a.List": { "x-kubernetes-group-version-kind": [{ "group": group, "version": version, "kind": "AzureMachineList" }] },
            "a.Kind": {
                "x-kubernetes-group-version-kind": [{ "group": group, "version": version, "kind": "AzureMachine" }],
                "properties": { "status": { "properties": { "conditions": conditions } } },
            },
        } } });
        let document = serde_json::from_value::<Document>(document).unwrap().trimmed();
        assert_eq!(document.components.schemas.len(), 1);
        document.shape(&resource(group, version, kind))
    }

    #[test]
    fn test_06_the_shape_is_what_the_schema_says() {
        let old = json!({ "type": "array", "items": { "properties": { "type": {}, "severity": { "type": "string" } } } });
        let shape = found("v1beta1", "AzureMachine", &old);
        assert_eq!(shape, Some(Shape::assumed("AzureMachine")));
        let new = json!({ "type": "array", "x-kubernetes-list-type": "map", "maxItems": 32, "items": { "properties": { "type": {} } } });
        let shape = found("v1beta2", "AzureMachine", &new).unwrap();
        assert_eq!((shape.list, shape.has_severity, shape.most), (List::ByType, false, Some(32)));
        assert_eq!(shape.resource.api_version, "infrastructure.cluster.x-k8s.io/v1beta2");
        assert_eq!(found("v1beta1", "AzureMachinePoolMachine", &old), None, "it is not in there");
        assert_eq!(found("v1beta1", "AzureMachine", &Value::Null), None, "nothing is said of them");
    }
}
