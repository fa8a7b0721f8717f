//! All permissions that bringup needs, in one table. The chart grants exactly these, and bringup checks them
//! with the API server at the start and periodically.

use bringup_objects::flex::{LEDGER, TOKENS_NAMESPACE};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// The name of the lease for which replicas compete.
pub const LEASE: &str = "bringup-controller";

/// The scope in which a right is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In the whole cluster.
    Everywhere,
    /// In bringup's own namespace.
    Home,
    /// In another namespace.
    Namespace(&'static str),
}

/// Declares [`Right`]: each with its name in metrics and logs, and whether readiness depends on it.
macro_rules! rights {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $vital:literal;)+) => {
        /// Something that bringup needs permission for. Health reports failures by right; the table of
        /// permissions below says which verbs on which resources a right consists of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Right { $($(#[$doc])* $variant,)+ }

        impl Right {
            /// Every right.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The right as a label of metrics and a field of logs.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Whether bringup is not ready without it.
            pub const fn is_vital(self) -> bool {
                match self { $(Self::$variant => $vital,)+ }
            }
        }
    };
}

rights! {
    /// Watch `NodeClaims`.
    NodeClaims = "nodeclaims", true;
    /// Watch Nodes.
    Nodes = "nodes", true;
    /// Watch Events of Karpenter.
    Events = "events", false;
    /// Watch `BootstrapReports`.
    Reports = "reports", true;
    /// Read `NodePools`, node classes and `MachineDeployments`.
    Parents = "parents", false;
    /// Create and update `BootstrapReports`.
    WriteReports = "write-reports", true;
    /// Delete `BootstrapReports` that are past their retention.
    DeleteReports = "delete-reports", false;
    /// Write conditions on `NodeClaims` and Machines.
    WriteConditions = "write-conditions", true;
    /// Mirror conditions on the Azure provider's machines.
    MirrorConditions = "mirror-conditions", false;
    /// Create and count Events.
    WriteEvents = "write-events", false;
    /// List `CertificateSigningRequests`.
    CertificateRequests = "certificate-requests", false;
    /// Hold the lease.
    Lease = "lease", true;
    /// Watch Machines.
    Machines = "machines", true;
    /// Watch `AzureMachines`.
    InfraMachines = "azuremachines", true;
    /// Watch `AzureMachinePoolMachines`.
    PoolMachines = "azuremachinepoolmachines", false;
    /// Watch Clusters.
    Clusters = "clusters", false;
    /// Watch `AzureClusters`.
    InfraClusters = "azureclusters", false;
    /// Watch `AzureMachinePools`.
    Pools = "azuremachinepools", false;
    /// Read the schemas of Cluster API's kinds.
    Schemas = "schemas", false;
    /// Watch and write `AzureFlexNodeClasses`.
    FlexClasses = "flex-classes", true;
    /// Create and delete `AzureFlexNodeClasses` for the plugin of aks-flex.
    FlexPools = "flex-pools", false;
    /// Watch and write `AzureFlexMachines`.
    FlexMachines = "flex-machines", true;
    /// Delete `NodeClaims` whose machine failed.
    EndClaims = "end-claims", true;
    /// Give flex Nodes their provider ID.
    PatchNodes = "patch-nodes", false;
    /// Read and write the ledger.
    Ledger = "ledger", true;
    /// Create bootstrap tokens.
    CreateTokens = "create-tokens", true;
    /// Delete bootstrap tokens that are no longer needed.
    DeleteTokens = "delete-tokens", false;
    /// Read the uid of the namespace kube-system.
    ClusterIdentity = "cluster-identity", true;
}

/// A permission: one verb on one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Needed {
    /// The right that includes this permission.
    pub right: Right,
    /// The API group.
    pub group: &'static str,
    /// The resource, followed by a slash and its subresource if any.
    pub resource: &'static str,
    /// The verb.
    pub verb: &'static str,
    /// The scope of the permission.
    pub place: Place,
    /// The name of the object, if the permission is limited to one object.
    pub name: Option<&'static str>,
}

const fn all(
    right: Right,
    group: &'static str,
    resource: &'static str,
    verb: &'static str,
) -> Needed {
    Needed { right, group, resource, verb, place: Place::Everywhere, name: None }
}

const fn own(
    right: Right,
    group: &'static str,
    resource: &'static str,
    verb: &'static str,
) -> Needed {
    Needed { place: Place::Home, ..all(right, group, resource, verb) }
}

const fn ledger(verb: &'static str) -> Needed {
    Needed { name: Some(LEDGER), ..own(Right::Ledger, "", "configmaps", verb) }
}

const fn lease(verb: &'static str) -> Needed {
    Needed { name: Some(LEASE), ..own(Right::Lease, "coordination.k8s.io", "leases", verb) }
}

const fn token(right: Right, verb: &'static str) -> Needed {
    Needed { place: Place::Namespace(TOKENS_NAMESPACE), ..all(right, "", "secrets", verb) }
}

/// The permissions of the observer.
pub const NEEDED: [Needed; 24] = [
    all(Right::NodeClaims, "karpenter.sh", "nodeclaims", "get"),
    all(Right::NodeClaims, "karpenter.sh", "nodeclaims", "list"),
    all(Right::NodeClaims, "karpenter.sh", "nodeclaims", "watch"),
    all(Right::WriteConditions, "karpenter.sh", "nodeclaims/status", "patch"),
    all(Right::Nodes, "", "nodes", "get"),
    all(Right::Nodes, "", "nodes", "list"),
    all(Right::Nodes, "", "nodes", "watch"),
    all(Right::Parents, "karpenter.sh", "nodepools", "get"),
    all(Right::Parents, "karpenter.azure.com", "aksnodeclasses", "get"),
    all(Right::Parents, "flex.aks.azure.com", "azureflexnodeclasses", "get"),
    all(Right::Events, "", "events", "list"),
    all(Right::Events, "", "events", "watch"),
    all(Right::WriteEvents, "events.k8s.io", "events", "create"),
    all(Right::WriteEvents, "events.k8s.io", "events", "patch"),
    all(Right::CertificateRequests, "certificates.k8s.io", "certificatesigningrequests", "list"),
    own(Right::Reports, "bringup.dev", "bootstrapreports", "get"),
    own(Right::Reports, "bringup.dev", "bootstrapreports", "list"),
    own(Right::Reports, "bringup.dev", "bootstrapreports", "watch"),
    own(Right::WriteReports, "bringup.dev", "bootstrapreports", "create"),
    own(Right::WriteReports, "bringup.dev", "bootstrapreports", "update"),
    own(Right::DeleteReports, "bringup.dev", "bootstrapreports", "delete"),
    lease("get"),
    lease("update"),
    // RBAC cannot limit the creation of an object to a name.
    own(Right::Lease, "coordination.k8s.io", "leases", "create"),
];

const GROUP: &str = bringup_objects::flex::GROUP;

/// All permissions for creating machines: the chart has a separate role for them.
pub const FLEX: [Needed; 29] = [
    all(Right::Parents, GROUP, "azureflexnodeclasses", "get"),
    all(Right::FlexClasses, GROUP, "azureflexnodeclasses", "list"),
    all(Right::FlexClasses, GROUP, "azureflexnodeclasses", "watch"),
    // Needed for the finalizer.
    all(Right::FlexClasses, GROUP, "azureflexnodeclasses", "update"),
    all(Right::FlexClasses, GROUP, "azureflexnodeclasses/status", "update"),
    // Only for pools of aks-flex.
    all(Right::FlexPools, GROUP, "azureflexnodeclasses", "create"),
    all(Right::FlexPools, GROUP, "azureflexnodeclasses", "delete"),
    all(Right::FlexMachines, GROUP, "azureflexmachines", "get"),
    all(Right::FlexMachines, GROUP, "azureflexmachines", "list"),
    all(Right::FlexMachines, GROUP, "azureflexmachines", "watch"),
    all(Right::FlexMachines, GROUP, "azureflexmachines", "create"),
    // Needed for the finalizer.
    all(Right::FlexMachines, GROUP, "azureflexmachines", "update"),
    all(Right::FlexMachines, GROUP, "azureflexmachines", "delete"),
    all(Right::FlexMachines, GROUP, "azureflexmachines/status", "update"),
    all(Right::NodeClaims, "karpenter.sh", "nodeclaims", "get"),
    all(Right::NodeClaims, "karpenter.sh", "nodeclaims", "list"),
    all(Right::NodeClaims, "karpenter.sh", "nodeclaims", "watch"),
    all(Right::EndClaims, "karpenter.sh", "nodeclaims", "delete"),
    all(Right::Nodes, "", "nodes", "get"),
    all(Right::Nodes, "", "nodes", "list"),
    all(Right::Nodes, "", "nodes", "watch"),
    all(Right::PatchNodes, "", "nodes", "patch"),
    all(Right::WriteEvents, "events.k8s.io", "events", "create"),
    ledger("get"),
    ledger("update"),
    // RBAC cannot limit the creation of an object to a name.
    own(Right::Ledger, "", "configmaps", "create"),
    // Tokens are created and deleted, but never read.
    token(Right::CreateTokens, "create"),
    token(Right::DeleteTokens, "delete"),
    // The uid of this namespace is part of the names of all resources in Azure.
    Needed {
        place: Place::Namespace(TOKENS_NAMESPACE),
        name: Some("kube-system"),
        ..all(Right::ClusterIdentity, "", "namespaces", "get")
    },
];

const CAPI: &str = bringup_objects::cluster_api::GROUP;
const CAPZ: &str = bringup_objects::cluster_api::INFRASTRUCTURE;

/// All permissions for observing Machines of Cluster API, including those on reports in the Machines'
/// namespaces.
pub const MACHINES: [Needed; 27] = [
    all(Right::Machines, CAPI, "machines", "get"),
    all(Right::Machines, CAPI, "machines", "list"),
    all(Right::Machines, CAPI, "machines", "watch"),
    all(Right::WriteConditions, CAPI, "machines/status", "patch"),
    all(Right::Parents, CAPI, "machinedeployments", "get"),
    all(Right::Clusters, CAPI, "clusters", "get"),
    all(Right::Clusters, CAPI, "clusters", "list"),
    all(Right::Clusters, CAPI, "clusters", "watch"),
    all(Right::InfraMachines, CAPZ, "azuremachines", "get"),
    all(Right::InfraMachines, CAPZ, "azuremachines", "list"),
    all(Right::InfraMachines, CAPZ, "azuremachines", "watch"),
    all(Right::MirrorConditions, CAPZ, "azuremachines/status", "patch"),
    all(Right::PoolMachines, CAPZ, "azuremachinepoolmachines", "get"),
    all(Right::PoolMachines, CAPZ, "azuremachinepoolmachines", "list"),
    all(Right::PoolMachines, CAPZ, "azuremachinepoolmachines", "watch"),
    all(Right::MirrorConditions, CAPZ, "azuremachinepoolmachines/status", "patch"),
    all(Right::Pools, CAPZ, "azuremachinepools", "list"),
    all(Right::Pools, CAPZ, "azuremachinepools", "watch"),
    all(Right::InfraClusters, CAPZ, "azureclusters", "list"),
    all(Right::InfraClusters, CAPZ, "azureclusters", "watch"),
    all(Right::WriteEvents, "events.k8s.io", "events", "create"),
    all(Right::Reports, "bringup.dev", "bootstrapreports", "get"),
    all(Right::Reports, "bringup.dev", "bootstrapreports", "list"),
    all(Right::Reports, "bringup.dev", "bootstrapreports", "watch"),
    all(Right::WriteReports, "bringup.dev", "bootstrapreports", "create"),
    all(Right::WriteReports, "bringup.dev", "bootstrapreports", "update"),
    all(Right::DeleteReports, "bringup.dev", "bootstrapreports", "delete"),
];

/// All needed permissions, each once. Those for creating machines come first.
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
    /// The permission for a sentence: `patch nodeclaims/status in karpenter.sh`.
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

/// The needed permissions that bringup lacks.
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
