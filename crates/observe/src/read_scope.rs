//! Which VMs bringup may read.
//!
//! A VM's ID comes from an object that a tenant may write: a Machine's `spec.providerID`, a Cluster's
//! subscription, an annotation, a report. bringup's identity may have far more rights in Azure than the
//! tenant. So bringup reads only in the resource groups of this cluster's own Nodes, in those that the
//! AzureFlexNodeClass of a claim names, and in those that the operator configures.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bringup_azure::clock::Clock;
use bringup_azure::id::Scheme;
use bringup_azure::{InstanceId, MachineId, ProviderId, ResourceId, Scope, Scopes};
use bringup_contract::bounds::TimeMath as _;
use bringup_objects::flex::AzureFlexNodeClass;
use jiff::{SignedDuration, Timestamp};
use kube::{Api, Client};
use tracing::warn;

use crate::cluster::Cluster;
use crate::subject::Subject;

/// How long the scope of a class is cached.
const REMEMBERED: SignedDuration = SignedDuration::from_mins(1);
/// The most classes in the cache.
const MOST_CLASSES: usize = 1024;

/// The VMs that bringup may read.
#[derive(Clone, Default)]
pub struct ReadScope(Option<Arc<Limits>>);

struct Limits {
    scopes: Scopes,
    cluster: Arc<Cluster>,
    client: Client,
    clock: Arc<dyn Clock>,
    classes: Mutex<HashMap<String, (Timestamp, Option<Scope>)>>,
}

impl ReadScope {
    /// All VMs that the identity may read: for a person who uses their own identity.
    pub fn everything() -> Self {
        Self(None)
    }

    /// Only VMs in the resource groups of this cluster's Nodes and classes, and in `scopes`.
    pub fn limited(
        scopes: Scopes,
        cluster: Arc<Cluster>,
        client: Client,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let classes = Mutex::default();
        Self(Some(Arc::new(Limits { scopes, cluster, client, clock, classes })))
    }

    /// Why the VM of a subject must not be read; none if it may be read.
    pub(crate) async fn refuses(&self, subject: &Subject, id: &InstanceId) -> Option<String> {
        let limits = self.0.as_deref()?;
        let id = ResourceId::from(id);
        if limits.allow(&id) {
            return None;
        }
        if let Some(class) = &subject.flex_class
            && limits.class(class).await.is_some_and(|scope| allows(scope, &id))
        {
            return None;
        }
        Some(refusal(&id))
    }

    /// Why a claim's AKS machine must not be read; none if it may be read.
    pub(crate) fn refuses_machine(&self, id: &MachineId) -> Option<String> {
        let limits = self.0.as_deref()?;
        let resource = ResourceId::from(id);
        let is_own = || {
            let group = format!("MC_{}_{}_", id.resource_group, id.cluster).to_ascii_lowercase();
            limits.cluster.has_node_in(&id.subscription, |own| own.starts_with(&group))
        };
        (!limits.allow(&resource) && !is_own()).then(|| refusal(&resource))
    }

    /// Why the activity log of a deleted VM must not be read; none if it may be read.
    pub(crate) fn refuses_lost(&self, id: &ProviderId) -> Option<String> {
        let limits = self.0.as_deref()?;
        let resource = ResourceId::from(&id.instance);
        let is_flex = id.scheme == Scheme::AzureFlex && limits.is_of_a_class(&resource);
        (!limits.allow(&resource) && !is_flex).then(|| refusal(&resource))
    }
}

impl Limits {
    fn allow(&self, id: &ResourceId) -> bool {
        let (subscription, group) = (id.subscription(), id.resource_group());
        self.scopes.allow(subscription, group)
            || self.cluster.has_node_in(subscription, |own| *group == *own)
    }

    fn is_of_a_class(&self, id: &ResourceId) -> bool {
        let classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scopes = classes.values().filter_map(|(_, scope)| scope.clone());
        scopes.any(|scope| allows(scope, id))
    }

    /// The subscription and resource group of a class's VMs.
    async fn class(&self, name: &str) -> Option<Scope> {
        let now = self.clock.now();
        {
            let classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, scope)) = classes.get(name)
                && now < at.plus(REMEMBERED)
            {
                return scope.clone();
            }
        }
        let api: Api<AzureFlexNodeClass> = Api::all(self.client.clone());
        let scope = match api.get_opt(name).await {
            Ok(class) => class.and_then(|class| {
                let group = class.spec.resource_group.parse().ok()?;
                Some(Scope::group(&class.spec.subscription_id.parse().ok()?, &group))
            }),
            Err(error) => {
                warn!(class = name, %error, "cannot read AzureFlexNodeClass");
                return None;
            }
        };
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        if classes.len() >= MOST_CLASSES {
            classes.clear();
        }
        classes.insert(name.to_owned(), (now, scope.clone()));
        scope
    }
}

fn allows(scope: Scope, id: &ResourceId) -> bool {
    Scopes::from_iter([scope]).allow(id.subscription(), id.resource_group())
}

fn refusal(id: &ResourceId) -> String {
    let (subscription, group) = (id.subscription(), id.resource_group());
    format!(
        "resource group {group} of subscription {subscription} is outside the scopes that bringup \
         reads: no Node of this cluster is in it; allow it with --azure-scope {subscription}/{group}"
    )
}
