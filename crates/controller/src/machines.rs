//! Machines of Cluster API as subjects: a Machine, the provider's object behind it, and the cluster
//! that says where both are.

mod facts;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_azure::ProviderId;
use bringup_diagnosis::redaction::redact;
use bringup_objects::cluster_api::{
    AzureCluster, AzureClusterSpec, AzureMachine, CLUSTER_LABEL, GROUP, Machine, vm_name,
};
use bringup_objects::condition::cut;
use jiff::SignedDuration;
use kube::api::ObjectMeta;

use self::facts::{Behind, Facts};
use crate::shape::{MACHINE, Shapes};
use crate::subject::{Kind, Labels, Launch, Mirror, Parent, Place, Subject};

/// The provider's kinds that have a VM behind them.
pub const PROVIDED: [&str; 2] = ["AzureMachine", "AzureMachinePoolMachine"];
/// How long after its VM is there a machine is judged, unless it is said otherwise: below the time
/// after which Cluster API itself gives it up.
pub const DEADLINE: SignedDuration = SignedDuration::from_mins(10);

/// An object in a namespace: that, and its name.
pub type Named = (String, String);

/// What is known of machines, in parts.
#[derive(Debug)]
pub struct Land {
    deadline: SignedDuration,
    /// How conditions look on Machines, and on what is behind them.
    pub shapes: Arc<Shapes>,
    parts: Mutex<Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    machines: HashMap<Named, Facts>,
    /// By kind.
    provided: HashMap<String, HashMap<Named, Behind>>,
    clusters: HashMap<Named, AzureClusterSpec>,
}

impl Land {
    /// Nothing is known yet. Machines are judged so long after their VM is there.
    pub fn new(deadline: SignedDuration) -> Self {
        Self { deadline, shapes: Arc::default(), parts: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A Machine was seen: what it is now.
    pub fn machine_seen(&self, machine: Machine) -> Option<Subject> {
        let name = named(&machine.metadata)?;
        let facts = Facts::of(machine)?;
        let mut parts = self.lock();
        parts.machines.insert(name.clone(), facts);
        self.subject(&parts, &name)
    }

    /// A Machine is gone.
    pub fn machine_gone(&self, machine: &Machine) {
        if let Some(name) = named(&machine.metadata) {
            self.lock().machines.remove(&name);
        }
    }

    /// The Machines that exist are these, by uid.
    pub fn only_machines(&self, uids: &HashSet<String>) {
        self.lock().machines.retain(|_, facts| uids.contains(&facts.uid));
    }

    /// An object of the provider was seen: what its Machine is now.
    pub fn provided_seen(&self, kind: &str, object: AzureMachine) -> Option<Subject> {
        let name = named(&object.metadata)?;
        let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
        let owner = owners.iter().find(|owner| owner.kind == MACHINE).map(|it| it.name.clone());
        let behind = Behind::of(object);
        let mut parts = self.lock();
        parts.provided.entry(kind.to_owned()).or_default().insert(name.clone(), behind);
        let owner = parts.owner(kind, name, owner)?;
        self.subject(&parts, &owner)
    }

    /// An object of the provider is gone.
    pub fn provided_gone(&self, kind: &str, object: &AzureMachine) {
        if let (Some(name), Some(of_kind)) =
            (named(&object.metadata), self.lock().provided.get_mut(kind))
        {
            of_kind.remove(&name);
        }
    }

    /// The objects of one of the provider's kinds that exist are these.
    pub fn only_provided(&self, kind: &str, names: &HashSet<Named>) {
        if let Some(of_kind) = self.lock().provided.get_mut(kind) {
            of_kind.retain(|name, _| names.contains(name));
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
        let of_cluster = parts
            .machines
            .iter()
            .filter(|((within, _), facts)| *within == namespace && facts.cluster == cluster_name);
        of_cluster.filter_map(|(name, _)| self.subject(&parts, name)).collect()
    }

    /// A Machine as a subject; none if its VM is not on Azure.
    fn subject(&self, parts: &Parts, named: &Named) -> Option<Subject> {
        let (namespace, name) = named;
        let facts = parts.machines.get(named)?;
        let reference = &facts.behind;
        let is_known = PROVIDED.contains(&reference.kind.as_str());
        let id = facts.provider_id.as_deref().unwrap_or_default();
        if !is_known && !id.starts_with("azure://") {
            return None;
        }
        let provided = parts.behind(namespace, facts);
        let cluster = parts.clusters.get(&(namespace.clone(), facts.cluster.clone()));
        let since = facts.ready_since;
        let begun = provided.and_then(|provided| provided.created);
        let place = place(facts, provided, cluster);
        // From when on its VM may exist.
        let launch = match (&place, begun) {
            (Place::NotSaid, _) if !facts.is_made => Launch::NotYet,
            (_, Some(begun)) => Launch::Accepted(since.unwrap_or(begun)),
            (_, None) if facts.is_made => Launch::Accepted(since.unwrap_or(facts.created)),
            (_, None) => Launch::NotYet,
        };
        let shape = self.shapes.of(MACHINE);
        Some(Subject {
            kind: Kind::Machine,
            namespace: Some(namespace.clone()),
            name: name.clone(),
            uid: facts.uid.clone(),
            resource_version: facts.resource_version.clone(),
            generation: facts.generation,
            created: facts.created,
            deleting: facts.deleting,
            parent: Some(parent(namespace, facts.deployment.clone(), &facts.cluster)),
            launch,
            registered: facts.node.as_ref().map(|_| facts.healthy_since.unwrap_or(facts.created)),
            place,
            machine: None,
            node_name: facts.node.clone(),
            image: None,
            labels: Labels {
                size: provided.and_then(|it| it.size.clone()),
                zone: provided.and_then(|it| it.zone.clone()),
                region: cluster.map(|cluster| cluster.location.clone()),
                capacity: None,
                os: provided.and_then(|it| it.os.clone()),
                cluster: Some(facts.cluster.clone()).filter(|name| !name.is_empty()),
            },
            conditions: facts.conditions.clone(),
            deadline: since.or(begun).unwrap_or(facts.created) + self.deadline,
            has_room: facts.has_room(shape.most),
            shape,
            // Cluster API copies it from here to the Cluster.
            api_server: cluster
                .map(|cluster| cluster.control_plane_endpoint.host.clone())
                .filter(|host| !host.is_empty()),
            told_of: provided.and_then(|provided| provided.failed_since),
            trouble: match provided {
                Some(_) => None,
                None if is_known => {
                    Some(format!("{} {} was not seen", reference.kind, reference.name))
                }
                None => Some(format!("objects of kind {} are not known", reference.kind)),
            },
            mirror: provided.map(|provided| {
                Box::new(Mirror {
                    shape: self.shapes.of(&reference.kind),
                    name: reference.name.clone(),
                    condition: provided.condition.clone(),
                })
            }),
        })
    }
}

fn named(meta: &ObjectMeta) -> Option<Named> {
    Some((meta.namespace.clone()?, meta.name.clone()?))
}

impl Parts {
    /// What is behind a Machine.
    fn behind(&self, namespace: &str, facts: &Facts) -> Option<&Behind> {
        let of_kind = self.provided.get(&facts.behind.kind)?;
        of_kind.get(&(namespace.to_owned(), facts.behind.name.clone()))
    }

    /// Whose Machine an object of the provider is: the one it names as its owner, or else whichever
    /// names it.
    fn owner(&self, kind: &str, (namespace, name): Named, owner: Option<String>) -> Option<Named> {
        if let Some(owner) = owner {
            let owner = (namespace.clone(), owner);
            if self.machines.get(&owner).is_some_and(|facts| facts.has_behind(kind, &name)) {
                return Some(owner);
            }
        }
        let found = self
            .machines
            .iter()
            .find(|((within, _), facts)| *within == namespace && facts.has_behind(kind, &name));
        found.map(|(owner, _)| owner.clone())
    }
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
fn place(facts: &Facts, provided: Option<&Behind>, cluster: Option<&AzureClusterSpec>) -> Place {
    let said = facts.provider_id.as_deref();
    if let Some(id) = said.or_else(|| provided.and_then(|it| it.provider_id.as_deref())) {
        return known(id);
    }
    let (Some(provided), Some(cluster)) = (provided, cluster) else { return Place::NotSaid };
    let whole = !cluster.subscription_id.is_empty() && !cluster.resource_group.is_empty();
    // An instance of a scale set has no name before it is made.
    if facts.behind.kind != PROVIDED[0] || !whole {
        return Place::NotSaid;
    }
    let AzureClusterSpec { subscription_id, resource_group, .. } = cluster;
    known(&format!(
        "azure:///subscriptions/{subscription_id}/resourceGroups/{resource_group}/providers/Microsoft.Compute/virtualMachines/{}",
        vm_name(&facts.behind.name, provided.os.as_deref() == Some("windows"))
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
