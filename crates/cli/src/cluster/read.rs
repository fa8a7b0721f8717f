//! Reads objects of Kubernetes and Karpenter. Texts of other programs are made safe for the terminal here.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Instant;

use bringup_diagnosis::redaction::redact;
use bringup_objects::condition::cut;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_objects::karpenter::POOL_LABEL;
use bringup_objects::readable::Unreadable;
use bringup_objects::{BootstrapReport, Node, NodeClaim, Readable};
use http::HeaderValue;
use http::header::ACCEPT;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, ObjectList, ObjectMeta, Request};
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Cluster;
use super::trouble::{Asked, Unseen};
use crate::{safe, vm};
use bringup_explain::layout::hang;

/// The number of objects per request.
const PAGE: u32 = 500;
/// The longest error about an unreadable object, in bytes.
const LONGEST_ERROR: usize = 200;
/// The media type that `kubectl get` uses: names and a few columns, not the objects.
const TABLE: HeaderValue = HeaderValue::from_static("application/json;as=Table;v=v1;g=meta.k8s.io");

/// A row of a list of NodeClaims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClaimRow {
    pub(crate) name: String,
    pub(crate) pool: Option<String>,
    pub(crate) node: Option<String>,
    pub(crate) vm: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) registered: bool,
}

/// A list, and whether it is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing<T> {
    pub(crate) items: Vec<T>,
    /// Whether the list is complete, and not cut because of the time limit.
    pub(crate) whole: bool,
}

/// The pools to list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pools<'a> {
    All,
    This(&'a str),
    Others(&'a str),
}

impl Cluster {
    /// All reports.
    pub(crate) async fn reports(&self) -> Result<Vec<BootstrapReport>, Unseen> {
        let asked = asked("list", "bootstrapreports", "bringup.dev");
        let mut reports = Vec::new();
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let path = BootstrapReport::url_path(&(), self.namespace.as_deref());
            let request = Request::new(path).list(&params).map_err(kube::Error::BuildRequest);
            let page: ObjectList<Readable<BootstrapReport>> = self.ask(request, asked).await?;
            reports.extend(page.items.into_iter().filter_map(readable));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(reports),
            }
        }
    }

    /// All machines. An unreadable machine is an error: its Azure resources must not be treated as orphaned.
    pub(crate) async fn machines(&self) -> Result<Vec<AzureFlexMachine>, Unseen> {
        let asked = asked("list", "azureflexmachines", "flex.aks.azure.com");
        let path = AzureFlexMachine::url_path(&(), None);
        let request = Request::new(path).list(&ListParams::default());
        let list: ObjectList<AzureFlexMachine> =
            self.ask(request.map_err(kube::Error::BuildRequest), asked).await?;
        Ok(list.items)
    }

    /// The UIDs of all NodeClaims; empty if Karpenter is not installed.
    pub(crate) async fn claim_uids(&self) -> Result<BTreeSet<String>, Unseen> {
        let asked = asked("list", "nodeclaims", "karpenter.sh");
        let request = Request::new(NodeClaim::url_path(&(), None));
        let request = request.list_metadata(&ListParams::default());
        let listed: Result<ObjectList<PartialObjectMeta<NodeClaim>>, Unseen> =
            self.ask(request.map_err(kube::Error::BuildRequest), asked).await;
        match listed {
            Ok(list) => Ok(list.items.iter().filter_map(ResourceExt::uid).collect()),
            Err(Unseen::NotServed) => Ok(BTreeSet::new()),
            Err(unseen) => Err(unseen),
        }
    }

    /// All classes of machines.
    pub(crate) async fn classes(&self) -> Result<Vec<AzureFlexNodeClass>, Unseen> {
        let asked = asked("list", "azureflexnodeclasses", "flex.aks.azure.com");
        let path = AzureFlexNodeClass::url_path(&(), None);
        let request = Request::new(path).list(&ListParams::default());
        let list: ObjectList<AzureFlexNodeClass> =
            self.ask(request.map_err(kube::Error::BuildRequest), asked).await?;
        Ok(list.items)
    }

    /// The UID of the namespace kube-system, which identifies the cluster.
    pub(crate) async fn uid(&self) -> Result<Option<String>, Unseen> {
        let found: Option<Namespace> =
            self.get("kube-system", asked("get", "namespaces", "")).await?;
        Ok(found.and_then(|namespace| namespace.uid()))
    }

    /// The `ConfigMap` with this name, if it exists.
    pub(crate) async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ConfigMap>, Unseen> {
        let request = Request::new(ConfigMap::url_path(&(), Some(namespace)))
            .get(name, &kube::api::GetParams::default())
            .map_err(kube::Error::BuildRequest);
        match self.ask(request, asked("get", "configmaps", "")).await {
            Ok(found) => Ok(Some(found)),
            Err(Unseen::NotServed) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// The NodeClaim with this name, if it exists.
    pub(crate) async fn claim(&self, name: &str) -> Result<Option<NodeClaim>, Unseen> {
        self.get(name, asked("get", "nodeclaims", "karpenter.sh")).await
    }

    /// The Node with this name, if it exists.
    pub(crate) async fn node(&self, name: &str) -> Result<Option<Node>, Unseen> {
        self.get(name, asked("get", "nodes", "")).await
    }

    async fn get<K>(&self, name: &str, asked: Asked) -> Result<Option<K>, Unseen>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let request = Request::new(K::url_path(&(), None))
            .get(name, &kube::api::GetParams::default())
            .map_err(kube::Error::BuildRequest);
        match self.ask(request, asked).await {
            Ok(found) => Ok(Some(found)),
            Err(Unseen::NotServed) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// The NodeClaims of some pools. After `until`, no further page is requested; the first page always is,
    /// so that a small cluster is always listed completely.
    pub(crate) async fn claims(
        &self,
        pools: Pools<'_>,
        until: Option<Instant>,
    ) -> Result<Listing<ClaimRow>, Unseen> {
        let asked = asked("list", "nodeclaims", "karpenter.sh");
        let mut items = Vec::new();
        let mut params = ListParams::default().limit(PAGE);
        params.label_selector = match pools {
            Pools::All => None,
            Pools::This(pool) => Some(format!("{POOL_LABEL}={pool}")),
            Pools::Others(pool) => Some(format!("{POOL_LABEL}!={pool}")),
        };
        loop {
            let request = Request::new(NodeClaim::url_path(&(), None)).list(&params);
            let request = request.map_err(kube::Error::BuildRequest);
            let page: Rows = match request {
                Ok(request) => self.client.request(request).await,
                Err(error) => Err(error),
            }
            .map_err(|error| Unseen::of(&error, asked, &self.address))?;
            items.extend(page.items.into_iter().map(ClaimRow::from));
            let Some(token) = page.metadata.next.filter(|token| !token.is_empty()) else {
                return Ok(Listing { items, whole: true });
            };
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Listing { items, whole: false });
            }
            params = params.continue_token(&token);
        }
    }

    /// The names of all NodeClaims and of their Nodes: about a fortieth of the size of the NodeClaims.
    pub(crate) async fn claim_names(&self) -> Result<Vec<ClaimRow>, Unseen> {
        let path = NodeClaim::url_path(&(), None);
        let table = self.table(&path, asked("list", "nodeclaims", "karpenter.sh")).await?;
        let column = |name: &str| table.columns.iter().position(|column| column.name == name);
        let (node, pool, id) = (column("Node"), column("NodePool"), column("ID"));
        let rows = table.rows.iter().filter_map(|row| {
            let cell = |at: Option<usize>| {
                let text = row.cells.get(at?)?.as_str().filter(|text| !text.is_empty());
                text.map(safe::line)
            };
            Some(ClaimRow {
                name: cell(Some(0))?,
                pool: cell(pool),
                node: cell(node),
                vm: cell(id).as_deref().and_then(vm::name),
                ..ClaimRow::default()
            })
        });
        Ok(rows.collect())
    }

    /// The names of all Nodes.
    pub(crate) async fn node_names(&self) -> Result<Vec<String>, Unseen> {
        let table = self.table("/api/v1/nodes", asked("list", "nodes", "")).await?;
        let names = table.rows.iter().filter_map(|row| row.cells.first()?.as_str());
        Ok(names.map(safe::line).collect())
    }

    async fn table(&self, path: &str, asked: Asked) -> Result<Table, Unseen> {
        let request = http::Request::get(format!("{path}?includeObject=None&resourceVersion=0"))
            .header(ACCEPT, TABLE)
            .body(Vec::new())
            .map_err(kube::Error::HttpError);
        let answer = match request {
            Ok(request) => self.client.request(request).await,
            Err(error) => Err(error),
        };
        answer.map_err(|error| Unseen::of(&error, asked, &self.address))
    }

    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::Error>,
        asked: Asked,
    ) -> Result<T, Unseen> {
        let answer = async {
            let mut answer: Value = self.client.request(request?).await?;
            safe::scrub(&mut answer);
            serde_json::from_value(answer).map_err(kube::Error::SerdeError)
        };
        answer.await.map_err(|error| Unseen::of(&error, asked, &self.address))
    }
}

/// The object, if it can be read. An unreadable object does not hide others; a note on standard error names
/// it.
pub(super) fn readable<K>(object: Readable<K>) -> Option<K> {
    object.0.inspect_err(|unreadable| note_unreadable(unreadable)).ok()
}

fn note_unreadable(unreadable: &Unreadable) {
    let ObjectMeta { namespace, name, .. } = &unreadable.metadata;
    let place = [namespace.as_deref(), name.as_deref()].into_iter().flatten();
    let place = place.map(safe::line).collect::<Vec<_>>().join("/");
    let error = safe::line(redact(&cut(&unreadable.error, LONGEST_ERROR)).text.as_str());
    let note = hang(&format!("cannot read {place}, skipping it: {error}"), "note: ", "      ");
    let _ = writeln!(std::io::stderr().lock(), "{note}");
}

fn asked(verb: &'static str, resource: &'static str, group: &'static str) -> Asked {
    Asked { verb, resource, group }
}

/// A page of NodeClaims, of which most fields are skipped: ten thousand NodeClaims are many megabytes.
#[derive(Debug, Deserialize)]
struct Rows {
    #[serde(default)]
    metadata: Page,
    #[serde(default)]
    items: Vec<Row>,
}

#[derive(Debug, Default, Deserialize)]
struct Page {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Row {
    metadata: RowMeta,
    #[serde(default)]
    status: RowStatus,
}

#[derive(Debug, Deserialize)]
struct RowMeta {
    name: String,
    #[serde(default)]
    labels: RowLabels,
}

#[derive(Debug, Default, Deserialize)]
struct RowLabels {
    #[serde(default, rename = "karpenter.sh/nodepool")]
    pool: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct RowStatus {
    #[serde(default, rename = "providerID")]
    provider_id: Option<String>,
    #[serde(default, rename = "nodeName")]
    node: Option<String>,
    #[serde(default, rename = "imageID")]
    image: Option<String>,
    #[serde(default)]
    conditions: Vec<RowCondition>,
}

#[derive(Debug, Deserialize)]
struct RowCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl From<Row> for ClaimRow {
    fn from(row: Row) -> Self {
        let safe = |text: Option<String>| text.map(|text| safe::line(&text));
        let registered = bringup_objects::condition::karpenter::REGISTERED;
        Self {
            name: safe::line(&row.metadata.name),
            pool: safe(row.metadata.labels.pool),
            node: safe(row.status.node).filter(|node| !node.is_empty()),
            vm: safe(row.status.provider_id).as_deref().and_then(vm::name),
            image: safe(row.status.image),
            registered: row
                .status
                .conditions
                .iter()
                .any(|held| held.kind == registered && held.status == "True"),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Table {
    #[serde(default, rename = "columnDefinitions")]
    columns: Vec<Column>,
    #[serde(default)]
    rows: Vec<TableRow>,
}

#[derive(Debug, Deserialize)]
struct Column {
    name: String,
}

#[derive(Debug, Deserialize)]
struct TableRow {
    #[serde(default)]
    cells: Vec<Value>,
}
