//! Machines of Cluster API as subjects. A subject combines a Machine, its infrastructure machine
//! (AzureMachine or AzureMachinePoolMachine), and the objects that it shares with other Machines.

mod place;
mod records;
mod shared;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_objects::cluster_api::{AzureMachine, GROUP, Machine};
use jiff::{SignedDuration, Timestamp};
use kube::api::ObjectMeta;

use self::place::place;
use self::records::{BootstrapData, InfraRecord, MachineRecord};
pub use self::shared::SharedObject;
use self::shared::{ClusterRecord, PoolRecord, SharedObjects};
use crate::profile::Kind;
use crate::shape::{CLUSTER, MACHINE, Shapes};
use crate::subject::{Labels, Launch, Mirror, Parent, Place, Subject};

/// The kinds of infrastructure machines: each has one VM.
pub const INFRA_KINDS: [&str; 2] = ["AzureMachine", "AzureMachinePoolMachine"];
/// The default time from the VM's existence to a verdict on the Machine: shorter than the time after which
/// Cluster API itself gives up the Machine.
pub const DEADLINE: SignedDuration = SignedDuration::from_mins(10);

/// The namespace and name of an object.
pub type Named = (String, String);

/// An index of the Cluster API objects that subjects are made from: a change of any of them changes Machines.
#[derive(Debug)]
pub struct MachineIndex {
    deadline: SignedDuration,
    /// How conditions look on Machines and infrastructure machines.
    pub shapes: Arc<Shapes>,
    parts: Mutex<Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    machines: HashMap<Named, MachineRecord>,
    /// Infrastructure machines by kind.
    infra_machines: HashMap<String, HashMap<Named, InfraRecord>>,
    shared: SharedObjects,
    /// Whether the first list of Clusters is complete. Until then, any Cluster may be paused.
    clusters_listed: bool,
}

impl MachineIndex {
    /// An empty index. `deadline` is the time from a VM's existence to the verdict.
    pub fn new(deadline: SignedDuration) -> Self {
        Self { deadline, shapes: Arc::default(), parts: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a Machine, and returns its subject.
    pub fn machine_seen(&self, machine: Machine) -> Option<Subject> {
        let name = named(&machine.metadata)?;
        let machine = MachineRecord::of(machine)?;
        let mut parts = self.lock();
        let machine = machine.known_as(parts.machines.get(&name));
        parts.machines.insert(name.clone(), machine);
        self.subject(&parts, &name)
    }

    /// Removes a deleted Machine.
    pub fn machine_gone(&self, machine: &Machine) {
        if let Some(name) = named(&machine.metadata) {
            self.lock().machines.remove(&name);
        }
    }

    /// Removes all Machines but those with these uids.
    pub fn only_machines(&self, uids: &HashSet<String>) {
        self.lock().machines.retain(|_, machine| uids.contains(&machine.uid));
    }

    /// Stores an infrastructure machine, and returns its Machine's subject.
    pub fn infra_machine_seen(&self, kind: &str, object: AzureMachine) -> Option<Subject> {
        let name = named(&object.metadata)?;
        let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
        let owner = owners.iter().find(|owner| owner.kind == MACHINE).map(|it| it.name.clone());
        let record = InfraRecord::of(object);
        let mut parts = self.lock();
        parts.infra_machines.entry(kind.to_owned()).or_default().insert(name.clone(), record);
        let owner = parts.owner(kind, name, owner)?;
        self.subject(&parts, &owner)
    }

    /// Removes a deleted infrastructure machine. Returns its Machine, unless no other object contains the
    /// VM's ID.
    pub fn infra_machine_gone(&self, kind: &str, object: &AzureMachine) -> Option<Subject> {
        let name = named(&object.metadata)?;
        let mut parts = self.lock();
        parts.infra_machines.get_mut(kind)?.remove(&name);
        let owner = parts.owner(kind, name, None)?;
        self.subject(&parts, &owner).filter(|subject| matches!(subject.place, Place::Known(_)))
    }

    /// Removes all infrastructure machines of a kind but these.
    pub fn only_infra_machines(&self, kind: &str, names: &HashSet<Named>) {
        if let Some(of_kind) = self.lock().infra_machines.get_mut(kind) {
            of_kind.retain(|name, _| names.contains(name));
        }
    }

    /// Stores a shared object, and returns the Machines that a change of it affects.
    pub fn shared_seen<A: SharedObject>(&self, object: A) -> Vec<Subject> {
        let Some(name) = named(object.meta()) else { return Vec::new() };
        let record = object.record();
        let mut parts = self.lock();
        let known = A::of_kind(&mut parts.shared);
        let before = known.get(&name);
        if before == Some(&record) {
            return Vec::new();
        }
        A::log_change(&name, before, &record);
        known.insert(name.clone(), record);
        let affected = parts.affected::<A>(&name);
        self.subjects(&parts, &affected)
    }

    /// Removes a deleted shared object, and returns the Machines that it affects.
    pub fn shared_gone<A: SharedObject>(&self, name: &Named) -> Vec<Subject> {
        let mut parts = self.lock();
        let affected = parts.affected::<A>(name);
        A::of_kind(&mut parts.shared).remove(name);
        self.subjects(&parts, &affected)
    }

    /// Removes all shared objects of a kind but these, and returns the Machines that the removed ones affect.
    pub fn only_shared<A: SharedObject>(&self, names: &HashSet<Named>) -> Vec<Subject> {
        let gone: Vec<Named> = {
            let mut parts = self.lock();
            let all = A::of_kind(&mut parts.shared).keys();
            all.filter(|name| !names.contains(*name)).cloned().collect()
        };
        gone.iter().flat_map(|name| self.shared_gone::<A>(name)).collect()
    }

    /// The first list of a kind is complete. Returns the Machines that this changes.
    pub fn listed(&self, kind: &str) -> Vec<Subject> {
        let mut parts = self.lock();
        if kind != CLUSTER || parts.clusters_listed {
            return Vec::new();
        }
        parts.clusters_listed = true;
        let all: Vec<Named> = parts.machines.keys().cloned().collect();
        self.subjects(&parts, &all)
    }

    fn subjects(&self, parts: &Parts, names: &[Named]) -> Vec<Subject> {
        names.iter().filter_map(|name| self.subject(parts, name)).collect()
    }

    /// A Machine as a subject; none if its VM is not on Azure.
    fn subject(&self, parts: &Parts, named: &Named) -> Option<Subject> {
        let (namespace, name) = named;
        let machine = parts.machines.get(named)?;
        let reference = &machine.infra_ref;
        let is_known = INFRA_KINDS.contains(&reference.kind.as_str());
        let id = machine.provider_id.as_deref().unwrap_or_default();
        if !is_known && !id.starts_with("azure://") {
            return None;
        }
        let infra = parts.infra_machine(namespace, machine);
        let site = parts.shared.site(namespace, &machine.cluster);
        let cluster = parts.shared.cluster(namespace, &machine.cluster);
        let pool = parts.shared.pool(namespace, infra);
        let since = machine.ready_since;
        let begun = infra.and_then(|infra| infra.created);
        let place = place(machine, infra, site, pool);
        // The provider creates no VM before the bootstrap data exists, and writes the VM's ID once it exists.
        // For an instance of a scale set, only the infrastructure machine has the ID until the Node joins.
        let is_said = machine.is_made
            || !id.is_empty()
            || infra.is_some_and(|infra| infra.provider_id.is_some());
        let launch = match (&place, begun) {
            _ if is_said => Launch::Accepted(since.or(begun).unwrap_or(machine.created)),
            (Place::Known(_), Some(begun)) if let BootstrapData::There(since) = machine.data => {
                Launch::Expected(since.map_or(begun, |since| since.max(begun)))
            }
            _ => Launch::NotYet,
        };
        // A field that an instance does not have comes from its pool.
        let own = |own: fn(&InfraRecord) -> Option<&String>,
                   all: fn(&PoolRecord) -> Option<&String>| {
            infra.and_then(own).or_else(|| pool.and_then(all)).cloned()
        };
        let shape = self.shapes.of(MACHINE);
        Some(Subject {
            profile: Kind::Machine.profile(),
            namespace: Some(namespace.clone()),
            name: name.clone(),
            uid: machine.uid.clone(),
            resource_version: machine.resource_version.clone(),
            generation: machine.generation,
            created: machine.created,
            deleting: machine.deleting,
            is_control_plane: machine.is_control_plane,
            parent: Some(parent(namespace, machine.deployment.clone(), &machine.cluster)),
            launch,
            registered: machine
                .node
                .as_ref()
                .map(|_| machine.healthy_since.unwrap_or(machine.created)),
            place,
            flex_class: None,
            machine: None,
            node_name: machine.node.clone(),
            image: None,
            labels: Labels {
                size: own(|it| it.size.as_ref(), |pool| pool.size.as_ref()),
                zone: infra.and_then(|it| it.zone.clone()),
                region: site
                    .map(|site| site.location.clone())
                    .or_else(|| pool.and_then(|pool| pool.region.clone())),
                capacity: None,
                os: own(|it| it.os.as_ref(), |pool| pool.os.as_ref()),
                cluster: Some(machine.cluster.clone()).filter(|name| !name.is_empty()),
            },
            conditions: machine.conditions.clone(),
            counted_from: since,
            allowed: self.deadline,
            has_room: machine.has_room(shape.most),
            shape,
            held: parts.held(name, machine, cluster),
            // Cluster API copies the host from the AzureCluster to the Cluster.
            api_server: site
                .map(|site| site.control_plane_endpoint.host.clone())
                .filter(|host| !host.is_empty())
                .or_else(|| cluster.and_then(|cluster| cluster.host.clone())),
            provider_failure: provider_failure(machine, infra, pool),
            trouble: match infra {
                Some(_) => None,
                None if is_known => {
                    Some(format!("{} {} was not seen", reference.kind, reference.name))
                }
                None => Some(format!("objects of kind {} are not known", reference.kind)),
            },
            mirror: infra.filter(|infra| !infra.is_paused).map(|infra| {
                Box::new(Mirror {
                    shape: self.shapes.of(&reference.kind),
                    name: reference.name.clone(),
                    condition: infra.condition.clone(),
                })
            }),
        })
    }
}

fn named(meta: &ObjectMeta) -> Option<Named> {
    Some((meta.namespace.clone()?, meta.name.clone()?))
}

impl Parts {
    fn infra_machine(&self, namespace: &str, machine: &MachineRecord) -> Option<&InfraRecord> {
        let of_kind = self.infra_machines.get(&machine.infra_ref.kind)?;
        of_kind.get(&(namespace.to_owned(), machine.infra_ref.name.clone()))
    }

    /// The Machines that share this object.
    fn affected<A: SharedObject>(&self, name: &Named) -> Vec<Named> {
        let within = self.machines.iter().filter(|((namespace, _), _)| *namespace == name.0);
        let affected = within.filter(|(_, machine)| {
            A::affects(&self.shared, name, machine, self.infra_machine(&name.0, machine))
        });
        affected.map(|(machine, _)| machine.clone()).collect()
    }

    /// Why controllers must not write to a Machine, if so.
    fn held(
        &self,
        name: &str,
        machine: &MachineRecord,
        cluster: Option<&ClusterRecord>,
    ) -> Option<String> {
        match cluster {
            _ if machine.is_paused => Some(format!("Machine {name} is paused")),
            Some(cluster) if cluster.is_paused => {
                Some(format!("Cluster {} is paused", machine.cluster))
            }
            None if !self.clusters_listed => {
                Some(format!("Cluster {} was not seen yet", machine.cluster))
            }
            Some(_) | None => None,
        }
    }

    /// The Machine of a provider's object: the owner that the object names, or else any Machine that refers
    /// to the object.
    fn owner(&self, kind: &str, (namespace, name): Named, owner: Option<String>) -> Option<Named> {
        if let Some(owner) = owner {
            let owner = (namespace.clone(), owner);
            if self
                .machines
                .get(&owner)
                .is_some_and(|machine| machine.has_infra_machine(kind, &name))
            {
                return Some(owner);
            }
        }
        let found = self.machines.iter().find(|((within, _), machine)| {
            *within == namespace && machine.has_infra_machine(kind, &name)
        });
        found.map(|(owner, _)| owner.clone())
    }
}

/// The object that a Machine belongs to, and that outlives the Machine.
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

/// The time of the failure that the provider reports: of the VM, or of its whole pool while the Machine
/// existed.
fn provider_failure(
    machine: &MachineRecord,
    infra: Option<&InfraRecord>,
    pool: Option<&PoolRecord>,
) -> Option<Timestamp> {
    let of_pool = pool.and_then(|pool| pool.failed_since).filter(|at| *at >= machine.created);
    infra.and_then(|infra| infra.failed_since).max(of_pool)
}
