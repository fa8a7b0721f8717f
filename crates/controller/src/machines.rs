//! Machines of Cluster API as subjects: a Machine, the provider's object behind it, and the cluster
//! that says where both are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bringup_azure::ProviderId;
use bringup_diagnosis::redaction::redact;
use bringup_objects::cluster_api::{
    AnyCondition, AzureCluster, AzureClusterSpec, AzureMachine, CLUSTER_LABEL, DEPLOYMENT_LABEL,
    GROUP, MOST_CONDITIONS, Machine, NODE_BOOTSTRAP_SUCCEEDED, REPLACEMENT_USEFUL, any, vm_name,
};
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, cut};
use jiff::{SignedDuration, Timestamp};

use crate::subject::{Kind, Labels, Launch, Mirror, Parent, Place, Subject};

/// The provider's kinds that have a VM behind them.
pub const PROVIDED: [&str; 2] = ["AzureMachine", "AzureMachinePoolMachine"];
/// How long after its VM is there a machine is judged, unless it is said otherwise: below the time
/// after which Cluster API itself gives it up.
pub const DEADLINE: SignedDuration = SignedDuration::from_mins(10);

/// An object in a namespace.
type Named = (String, String);

/// What is known of machines, in parts.
#[derive(Debug)]
pub struct Land {
    deadline: SignedDuration,
    parts: Mutex<Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    machines: HashMap<Named, Machine>,
    provided: HashMap<(String, String, String), AzureMachine>,
    clusters: HashMap<Named, AzureClusterSpec>,
}

impl Land {
    /// Nothing is known yet. Machines are judged so long after their VM is there.
    pub fn new(deadline: SignedDuration) -> Self {
        Self { deadline, parts: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A Machine was seen: what it is now.
    pub fn machine_seen(&self, machine: Machine) -> Option<Subject> {
        let name = named(&machine.metadata)?;
        let mut parts = self.lock();
        parts.machines.insert(name.clone(), trimmed(machine));
        parts.subject(&name, self.deadline)
    }

    /// A Machine is gone.
    pub fn machine_gone(&self, machine: &Machine) {
        if let Some(name) = named(&machine.metadata) {
            self.lock().machines.remove(&name);
        }
    }

    /// An object of the provider was seen: what its Machine is now.
    pub fn provided_seen(&self, kind: &str, mut object: AzureMachine) -> Option<Subject> {
        let (namespace, name) = named(&object.metadata)?;
        object.metadata.managed_fields = None;
        let mut parts = self.lock();
        parts.provided.insert((kind.to_owned(), namespace.clone(), name.clone()), object);
        let owner = parts.machines.iter().find(|((within, _), machine)| {
            let reference = &machine.spec.infrastructure_ref;
            *within == namespace && reference.kind == kind && reference.name == name
        });
        let owner = owner.map(|(owner, _)| owner.clone())?;
        parts.subject(&owner, self.deadline)
    }

    /// An object of the provider is gone.
    pub fn provided_gone(&self, kind: &str, object: &AzureMachine) {
        if let Some((namespace, name)) = named(&object.metadata) {
            self.lock().provided.remove(&(kind.to_owned(), namespace, name));
        }
    }

    /// A cluster was seen: what its Machines are now.
    pub fn cluster_seen(&self, cluster: &AzureCluster) -> Vec<Subject> {
        let Some((namespace, name)) = named(&cluster.metadata) else { return Vec::new() };
        // It bears the name of the Cluster in a label; its own is often the same.
        let label =
            cluster.metadata.labels.as_ref().and_then(|all| all.get(CLUSTER_LABEL).cloned());
        let cluster_name = label.unwrap_or(name);
        let mut parts = self.lock();
        let key = (namespace.clone(), cluster_name.clone());
        if parts.clusters.insert(key, cluster.spec.clone()).as_ref() == Some(&cluster.spec) {
            return Vec::new();
        }
        let of_cluster: Vec<Named> = parts
            .machines
            .iter()
            .filter(|((within, _), machine)| {
                *within == namespace && machine.spec.cluster_name == cluster_name
            })
            .map(|(name, _)| name.clone())
            .collect();
        of_cluster.iter().filter_map(|name| parts.subject(name, self.deadline)).collect()
    }
}

/// Lets go of what is not looked at.
fn trimmed(mut machine: Machine) -> Machine {
    let meta = &mut machine.metadata;
    meta.managed_fields = None;
    meta.annotations = None;
    meta.owner_references = None;
    meta.finalizers = None;
    let kept = [
        BOOTSTRAP_SUCCEEDED,
        REPLACEMENT_USEFUL,
        "InfrastructureReady",
        "NodeHealthy",
        "NodeReady",
    ];
    let count = machine.status.conditions.len();
    machine.status.conditions.retain(|one| kept.contains(&one.kind.as_str()));
    machine.status.conditions.shrink_to_fit();
    machine.status.count = count;
    machine
}

fn named(meta: &kube::api::ObjectMeta) -> Option<Named> {
    Some((meta.namespace.clone()?, meta.name.clone()?))
}

impl Parts {
    /// A Machine as a subject; none if its VM is not on Azure.
    fn subject(&self, (namespace, name): &Named, deadline: SignedDuration) -> Option<Subject> {
        let machine = self.machines.get(&(namespace.clone(), name.clone()))?;
        let reference = &machine.spec.infrastructure_ref;
        let is_known = PROVIDED.contains(&reference.kind.as_str());
        let id = machine.spec.provider_id.as_deref().unwrap_or_default();
        if !is_known && !id.starts_with("azure://") {
            return None;
        }
        let key = (reference.kind.clone(), namespace.clone(), reference.name.clone());
        let provided = self.provided.get(&key);
        let cluster = self.clusters.get(&(namespace.clone(), machine.spec.cluster_name.clone()));
        let meta = &machine.metadata;
        let label = |name: &str| meta.labels.as_ref()?.get(name).cloned();
        let created = meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |at| at.0);
        let conditions = &machine.status.conditions;
        let ready = any(conditions, "InfrastructureReady").filter(|ready| ready.status == "True");
        let made = machine.status.initialization.as_ref();
        let is_made = made.is_some_and(|made| made.infrastructure_provisioned)
            || machine.status.infrastructure_ready
            || ready.is_some();
        let since = ready.and_then(AnyCondition::since);
        let begun = provided.and_then(|it| it.metadata.creation_timestamp.as_ref()).map(|at| at.0);
        let place = place(machine, provided, cluster);
        // From when on its VM may exist.
        let launch = match (&place, begun) {
            (Place::NotSaid, _) if !is_made => Launch::NotYet,
            (_, Some(begun)) => Launch::Accepted(since.unwrap_or(begun)),
            (_, None) if is_made => Launch::Accepted(since.unwrap_or(created)),
            (_, None) => Launch::NotYet,
        };
        let node = machine.status.node_ref.as_ref().filter(|node| !node.name.is_empty());
        let healthy = any(conditions, "NodeHealthy").or_else(|| any(conditions, "NodeReady"));
        let spec = provided.map(|provided| &provided.spec);
        Some(Subject {
            kind: Kind::Machine,
            namespace: Some(namespace.clone()),
            name: name.clone(),
            uid: meta.uid.clone()?,
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            generation: meta.generation,
            created,
            deleting: meta.deletion_timestamp.as_ref().map(|at| at.0),
            parent: Some(parent(namespace, label(DEPLOYMENT_LABEL), &machine.spec.cluster_name)),
            launch,
            registered: node.map(|_| healthy.and_then(AnyCondition::since).unwrap_or(created)),
            place,
            machine: None,
            node_name: node.map(|node| node.name.clone()),
            image: None,
            labels: Labels {
                size: spec.and_then(|spec| spec.vm_size.clone()),
                zone: spec.and_then(|spec| spec.failure_domain.clone()),
                region: cluster.map(|cluster| cluster.location.clone()),
                capacity: None,
                os: spec.and_then(|spec| spec.os_disk.os_type.clone()).map(|os| os.to_lowercase()),
                cluster: Some(machine.spec.cluster_name.clone()).filter(|name| !name.is_empty()),
            },
            conditions: conditions
                .iter()
                .filter(|one| {
                    [BOOTSTRAP_SUCCEEDED, REPLACEMENT_USEFUL].contains(&one.kind.as_str())
                })
                .map(AnyCondition::plain)
                .collect(),
            deadline: since.or(begun).unwrap_or(created) + deadline,
            has_room: has_room(machine),
            // Cluster API copies it from here to the Cluster.
            api_server: cluster
                .map(|cluster| cluster.control_plane_endpoint.host.clone())
                .filter(|host| !host.is_empty()),
            trouble: match provided {
                Some(_) => None,
                None if is_known => {
                    Some(format!("{} {} was not seen", reference.kind, reference.name))
                }
                None => Some(format!("objects of kind {} are not known", reference.kind)),
            },
            mirror: provided.map(|provided| Mirror {
                kind: reference.kind.clone(),
                name: reference.name.clone(),
                condition: any(&provided.status.conditions, NODE_BOOTSTRAP_SUCCEEDED).cloned(),
            }),
        })
    }
}

/// Whether a Machine takes our conditions: those that are there do not count.
fn has_room(machine: &Machine) -> bool {
    let ours = [BOOTSTRAP_SUCCEEDED, REPLACEMENT_USEFUL];
    let missing =
        ours.iter().filter(|kind| any(&machine.status.conditions, kind).is_none()).count();
    machine.status.count + missing <= MOST_CONDITIONS
}

/// What outlives a Machine.
fn parent(namespace: &str, deployment: Option<String>, cluster: &str) -> Parent {
    let (kind, name) = match deployment {
        Some(deployment) => ("MachineDeployment", deployment),
        None => ("Cluster", cluster.to_owned()),
    };
    Parent {
        group: GROUP.to_owned(),
        kind: kind.to_owned(),
        namespace: Some(namespace.to_owned()),
        name,
    }
}

/// Where the VM is: as somebody said, or as follows from its name before anybody says so.
fn place(
    machine: &Machine,
    provided: Option<&AzureMachine>,
    cluster: Option<&AzureClusterSpec>,
) -> Place {
    let said = machine.spec.provider_id.as_deref();
    let said = said.or_else(|| provided.and_then(|it| it.spec.provider_id.as_deref()));
    if let Some(id) = said.filter(|id| !id.is_empty()) {
        return known(id);
    }
    let (Some(provided), Some(cluster)) = (provided, cluster) else { return Place::NotSaid };
    let whole = !cluster.subscription_id.is_empty() && !cluster.resource_group.is_empty();
    // An instance of a scale set has no name before it is made.
    if machine.spec.infrastructure_ref.kind != PROVIDED[0] || !whole {
        return Place::NotSaid;
    }
    let os = provided.spec.os_disk.os_type.as_deref().unwrap_or_default();
    let name = provided.metadata.name.as_deref().unwrap_or_default();
    let AzureClusterSpec { subscription_id, resource_group, .. } = cluster;
    known(&format!(
        "azure:///subscriptions/{subscription_id}/resourceGroups/{resource_group}/providers/Microsoft.Compute/virtualMachines/{}",
        vm_name(name, os.eq_ignore_ascii_case("windows"))
    ))
}

fn known(id: &str) -> Place {
    match id.parse::<ProviderId>() {
        Ok(id) => Place::Known(id),
        Err(error) => {
            let why = redact(&format!("providerID: {error}")).text.into_string();
            Place::Malformed(cut(&why, 300))
        }
    }
}
