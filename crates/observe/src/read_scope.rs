//! Which VMs may be read.
//!
//! The id of a VM comes out of an object that a tenant may write: a Machine's `spec.providerID`, an
//! Cluster's subscription, an annotation, a report. bringup's identity may be allowed to read far more than the
//! tenant. So it reads only in the resource groups of this cluster's own Nodes, in those that the
//! AzureFlexNodeClass of a claim names, and in those that the operator has named.

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

/// How long what a class names is remembered.
const REMEMBERED: SignedDuration = SignedDuration::from_mins(1);
/// How many classes are remembered.
const MOST_CLASSES: usize = 1024;

/// Which VMs may be read.
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
    /// All that the identity may read: for a person, who asks in their own name.
    pub fn everything() -> Self {
        Self(None)
    }

    /// What this cluster's Nodes and classes show, and `scopes`.
    pub fn limited(
        scopes: Scopes,
        cluster: Arc<Cluster>,
        client: Client,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let classes = Mutex::default();
        Self(Some(Arc::new(Limits { scopes, cluster, client, clock, classes })))
    }

    /// Why the VM of a subject is not read; none, if it may be.
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

    /// Why the machine of AKS that a claim names is not read.
    pub(crate) fn refuses_machine(&self, id: &MachineId) -> Option<String> {
        let limits = self.0.as_deref()?;
        let resource = ResourceId::from(id);
        let is_own = || {
            let group = format!("MC_{}_{}_", id.resource_group, id.cluster).to_ascii_lowercase();
            limits.cluster.has_node_in(&id.subscription, |own| own.starts_with(&group))
        };
        (!limits.allow(&resource) && !is_own()).then(|| refusal(&resource))
    }

    /// Why the activity log of a VM that is gone is not read.
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

    /// Where the VMs of a class are.
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
