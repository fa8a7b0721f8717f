//! What we have to be allowed to do, in one place: the chart grants exactly this, and at the start
//! and from time to time the API server is asked whether it does.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::controller::LEASE;
use crate::flex::{LEDGER, TOKENS};

/// Where a right is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In the whole cluster.
    Everywhere,
    /// In our own namespace.
    Home,
    /// In another namespace.
    Namespace(&'static str),
}

/// One verb on one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Needed {
    /// The API group.
    pub group: &'static str,
    /// The resource, with its subresource behind a slash.
    pub resource: &'static str,
    /// The verb.
    pub verb: &'static str,
    /// Where.
    pub place: Place,
    /// The only object that is meant, if it is only one.
    pub name: Option<&'static str>,
    /// Without it nothing useful is done.
    pub vital: bool,
}

const fn cluster(group: &'static str, resource: &'static str, verb: &'static str) -> Needed {
    Needed { group, resource, verb, place: Place::Everywhere, name: None, vital: true }
}

const fn own(group: &'static str, resource: &'static str, verb: &'static str) -> Needed {
    Needed { place: Place::Home, ..cluster(group, resource, verb) }
}

const fn useful(group: &'static str, resource: &'static str, verb: &'static str) -> Needed {
    Needed { vital: false, ..cluster(group, resource, verb) }
}

const fn ledger(verb: &'static str) -> Needed {
    Needed { name: Some(LEDGER), ..own("", "configmaps", verb) }
}

const fn lease(verb: &'static str) -> Needed {
    Needed { name: Some(LEASE), ..own("coordination.k8s.io", "leases", verb) }
}

const fn token(verb: &'static str, vital: bool) -> Needed {
    Needed { place: Place::Namespace(TOKENS), vital, ..cluster("", "secrets", verb) }
}

/// What observing needs.
pub const NEEDED: [Needed; 24] = [
    cluster("karpenter.sh", "nodeclaims", "get"),
    cluster("karpenter.sh", "nodeclaims", "list"),
    cluster("karpenter.sh", "nodeclaims", "watch"),
    cluster("karpenter.sh", "nodeclaims/status", "patch"),
    cluster("", "nodes", "get"),
    cluster("", "nodes", "list"),
    cluster("", "nodes", "watch"),
    useful("karpenter.sh", "nodepools", "get"),
    useful("karpenter.azure.com", "aksnodeclasses", "get"),
    useful("flex.aks.azure.com", "azureflexnodeclasses", "get"),
    useful("", "events", "list"),
    useful("", "events", "watch"),
    useful("events.k8s.io", "events", "create"),
    useful("events.k8s.io", "events", "patch"),
    useful("certificates.k8s.io", "certificatesigningrequests", "list"),
    own("bringup.dev", "bootstrapreports", "get"),
    own("bringup.dev", "bootstrapreports", "list"),
    own("bringup.dev", "bootstrapreports", "watch"),
    own("bringup.dev", "bootstrapreports", "create"),
    own("bringup.dev", "bootstrapreports", "update"),
    Needed { vital: false, ..own("bringup.dev", "bootstrapreports", "delete") },
    lease("get"),
    lease("update"),
    // What does not exist yet has no name to go by.
    own("coordination.k8s.io", "leases", "create"),
];

const GROUP: &str = bringup_objects::flex::GROUP;

/// What making machines needs, whole: the chart has a role of its own for it.
pub const FLEX: [Needed; 29] = [
    useful(GROUP, "azureflexnodeclasses", "get"),
    cluster(GROUP, "azureflexnodeclasses", "list"),
    cluster(GROUP, "azureflexnodeclasses", "watch"),
    // Its finalizer.
    cluster(GROUP, "azureflexnodeclasses", "update"),
    cluster(GROUP, "azureflexnodeclasses/status", "update"),
    // Pools of aks-flex only.
    useful(GROUP, "azureflexnodeclasses", "create"),
    useful(GROUP, "azureflexnodeclasses", "delete"),
    cluster(GROUP, "azureflexmachines", "get"),
    cluster(GROUP, "azureflexmachines", "list"),
    cluster(GROUP, "azureflexmachines", "watch"),
    cluster(GROUP, "azureflexmachines", "create"),
    // Its finalizer.
    cluster(GROUP, "azureflexmachines", "update"),
    cluster(GROUP, "azureflexmachines", "delete"),
    cluster(GROUP, "azureflexmachines/status", "update"),
    cluster("karpenter.sh", "nodeclaims", "get"),
    cluster("karpenter.sh", "nodeclaims", "list"),
    cluster("karpenter.sh", "nodeclaims", "watch"),
    cluster("karpenter.sh", "nodeclaims", "delete"),
    cluster("", "nodes", "get"),
    cluster("", "nodes", "list"),
    cluster("", "nodes", "watch"),
    useful("", "nodes", "patch"),
    useful("events.k8s.io", "events", "create"),
    ledger("get"),
    ledger("update"),
    // What does not exist yet has no name to go by.
    own("", "configmaps", "create"),
    // Tokens are made and removed, and never read.
    token("create", true),
    token("delete", false),
    // Its uid is part of the names of everything in Azure.
    Needed {
        place: Place::Namespace(TOKENS),
        name: Some("kube-system"),
        ..cluster("", "namespaces", "get")
    },
];

const CAPI: &str = bringup_objects::cluster_api::GROUP;
const CAPZ: &str = bringup_objects::cluster_api::INFRASTRUCTURE;

/// What looking after Machines of Cluster API needs, whole: reports are in their namespaces.
pub const MACHINES: [Needed; 27] = [
    cluster(CAPI, "machines", "get"),
    cluster(CAPI, "machines", "list"),
    cluster(CAPI, "machines", "watch"),
    cluster(CAPI, "machines/status", "patch"),
    useful(CAPI, "machinedeployments", "get"),
    useful(CAPI, "clusters", "get"),
    useful(CAPI, "clusters", "list"),
    useful(CAPI, "clusters", "watch"),
    cluster(CAPZ, "azuremachines", "get"),
    cluster(CAPZ, "azuremachines", "list"),
    cluster(CAPZ, "azuremachines", "watch"),
    useful(CAPZ, "azuremachines/status", "patch"),
    useful(CAPZ, "azuremachinepoolmachines", "get"),
    useful(CAPZ, "azuremachinepoolmachines", "list"),
    useful(CAPZ, "azuremachinepoolmachines", "watch"),
    useful(CAPZ, "azuremachinepoolmachines/status", "patch"),
    useful(CAPZ, "azuremachinepools", "list"),
    useful(CAPZ, "azuremachinepools", "watch"),
    useful(CAPZ, "azureclusters", "list"),
    useful(CAPZ, "azureclusters", "watch"),
    useful("events.k8s.io", "events", "create"),
    cluster("bringup.dev", "bootstrapreports", "get"),
    cluster("bringup.dev", "bootstrapreports", "list"),
    cluster("bringup.dev", "bootstrapreports", "watch"),
    cluster("bringup.dev", "bootstrapreports", "create"),
    cluster("bringup.dev", "bootstrapreports", "update"),
    useful("bringup.dev", "bootstrapreports", "delete"),
];

/// Everything that is needed, each once: what making machines needs goes before.
pub fn needed(flex: bool, machines: bool) -> Vec<Needed> {
    let mut all: Vec<Needed> = if flex { FLEX.to_vec() } else { Vec::new() };
    let machines = MACHINES.into_iter().filter(|_| machines);
    for one in machines.chain(NEEDED) {
        if !all.iter().any(|known| known.words() == one.words() && known.place == one.place) {
            all.push(one);
        }
    }
    all
}

impl Needed {
    /// As a sentence has it: `patch nodeclaims/status in karpenter.sh`.
    pub fn words(&self) -> String {
        let group = if self.group.is_empty() { "the core group" } else { self.group };
        let name = self.name.map(|name| format!(" {name}")).unwrap_or_default();
        let place = match self.place {
            Place::Everywhere | Place::Home => String::new(),
            Place::Namespace(namespace) => format!(" and the namespace {namespace}"),
        };
        format!("{} {}{name} in {group}{place}", self.verb, self.resource)
    }

    fn attributes(&self, namespace: &str) -> ResourceAttributes {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource)),
            None => (self.resource, None),
        };
        ResourceAttributes {
            group: Some(self.group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource: subresource.map(str::to_owned),
            verb: Some(self.verb.to_owned()),
            namespace: match self.place {
                Place::Everywhere => None,
                Place::Home => Some(namespace.to_owned()),
                Place::Namespace(other) => Some(other.to_owned()),
            },
            name: self.name.map(str::to_owned),
            ..ResourceAttributes::default()
        }
    }
}

/// What is missing of what is needed.
pub async fn missing(
    client: &Client,
    namespace: &str,
    needed: &[Needed],
) -> kube::Result<Vec<Needed>> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut missing = Vec::new();
    for needed in needed {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(needed.attributes(namespace)),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &review).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            missing.push(*needed);
        }
    }
    Ok(missing)
}
