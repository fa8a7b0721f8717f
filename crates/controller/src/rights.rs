//! What we have to be allowed to do, in one place: the chart grants exactly this, and at the start
//! and from time to time the API server is asked whether it does.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// One verb on one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Needed {
    /// The API group.
    pub group: &'static str,
    /// The resource, with its subresource behind a slash.
    pub resource: &'static str,
    /// The verb.
    pub verb: &'static str,
    /// In our own namespace only.
    pub namespaced: bool,
    /// Without it nothing useful is done.
    pub vital: bool,
}

const fn cluster(group: &'static str, resource: &'static str, verb: &'static str) -> Needed {
    Needed { group, resource, verb, namespaced: false, vital: true }
}

const fn own(group: &'static str, resource: &'static str, verb: &'static str) -> Needed {
    Needed { group, resource, verb, namespaced: true, vital: true }
}

const fn useful(group: &'static str, resource: &'static str, verb: &'static str) -> Needed {
    Needed { group, resource, verb, namespaced: false, vital: false }
}

/// Everything.
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
    Needed {
        group: "bringup.dev",
        resource: "bootstrapreports",
        verb: "delete",
        namespaced: true,
        vital: false,
    },
    own("coordination.k8s.io", "leases", "get"),
    own("coordination.k8s.io", "leases", "create"),
    own("coordination.k8s.io", "leases", "update"),
];

impl Needed {
    /// As a sentence has it: `patch nodeclaims/status in karpenter.sh`.
    pub fn words(&self) -> String {
        let group = if self.group.is_empty() { "the core group" } else { self.group };
        format!("{} {} in {group}", self.verb, self.resource)
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
            namespace: self.namespaced.then(|| namespace.to_owned()),
            ..ResourceAttributes::default()
        }
    }
}

/// What is missing of it.
pub async fn missing(client: &Client, namespace: &str) -> kube::Result<Vec<Needed>> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut missing = Vec::new();
    for needed in &NEEDED {
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
