//! Machines of Cluster API as subjects: a Machine, the provider's object behind it, and what stands
//! around both: the Cluster, where that is in Azure, the pool.

mod around;
mod facts;
mod place;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_objects::cluster_api::{AzureMachine, GROUP, Machine};
use jiff::{SignedDuration, Timestamp};
use kube::api::ObjectMeta;

pub use self::around::Around;
use self::around::{AnyCluster, Pool, Surroundings};
use self::facts::{Behind, Data, Facts};
use self::place::place;
use crate::profile::Kind;
use crate::shape::{CLUSTER, MACHINE, Shapes};
use crate::subject::{Labels, Launch, Mirror, Parent, Place, Subject};

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
    around: Surroundings,
    /// Whatever can be known of Clusters is known: before, any may be paused.
    clusters_told: bool,
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
        let facts = facts.known_as(parts.machines.get(&name));
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

    /// An object of the provider is gone. Returns its Machine without it, unless no other object
    /// tells where its VM is.
    pub fn provided_gone(&self, kind: &str, object: &AzureMachine) -> Option<Subject> {
        let name = named(&object.metadata)?;
        let mut parts = self.lock();
        parts.provided.get_mut(kind)?.remove(&name);
        let owner = parts.owner(kind, name, None)?;
        self.subject(&parts, &owner).filter(|subject| matches!(subject.place, Place::Known(_)))
    }

    /// The objects of one of the provider's kinds that exist are these.
    pub fn only_provided(&self, kind: &str, names: &HashSet<Named>) {
        if let Some(of_kind) = self.lock().provided.get_mut(kind) {
            of_kind.retain(|name, _| names.contains(name));
        }
    }

    /// What stands around Machines was seen: what they are now.
    pub fn around_seen<A: Around>(&self, object: A) -> Vec<Subject> {
        let Some(name) = named(object.meta()) else { return Vec::new() };
        let kept = object.kept();
        let mut parts = self.lock();
        let known = A::shelf(&mut parts.around);
        let before = known.get(&name);
        if before == Some(&kept) {
            return Vec::new();
        }
        A::tell(&name, before, &kept);
        known.insert(name.clone(), kept);
        let concerned = parts.concerned::<A>(&name);
        self.subjects(&parts, &concerned)
    }

    /// It is gone: what the Machines are without it.
    pub fn around_gone<A: Around>(&self, name: &Named) -> Vec<Subject> {
        let mut parts = self.lock();
        let concerned = parts.concerned::<A>(name);
        A::shelf(&mut parts.around).remove(name);
        self.subjects(&parts, &concerned)
    }

    /// Those of one kind that exist are these: what the Machines of the others are without them.
    pub fn only_around<A: Around>(&self, names: &HashSet<Named>) -> Vec<Subject> {
        let gone: Vec<Named> = {
            let mut parts = self.lock();
            let all = A::shelf(&mut parts.around).keys();
            all.filter(|name| !names.contains(*name)).cloned().collect()
        };
        gone.iter().flat_map(|name| self.around_gone::<A>(name)).collect()
    }

    /// Whatever can be known of a kind is known: what that changes.
    pub fn told(&self, kind: &str) -> Vec<Subject> {
        let mut parts = self.lock();
        if kind != CLUSTER || parts.clusters_told {
            return Vec::new();
        }
        parts.clusters_told = true;
        let all: Vec<Named> = parts.machines.keys().cloned().collect();
        self.subjects(&parts, &all)
    }

    fn subjects(&self, parts: &Parts, names: &[Named]) -> Vec<Subject> {
        names.iter().filter_map(|name| self.subject(parts, name)).collect()
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
        let site = parts.around.site(namespace, &facts.cluster);
        let cluster = parts.around.cluster(namespace, &facts.cluster);
        let pool = parts.around.pool(namespace, provided);
        let since = facts.ready_since;
        let begun = provided.and_then(|provided| provided.created);
        let place = place(facts, provided, site, pool);
        // The provider makes nothing before it knows what from, and says where it is once it is made: of
        // an instance of a scale set on the object behind it alone, until the Node is there.
        let is_said = facts.is_made
            || !id.is_empty()
            || provided.is_some_and(|provided| provided.provider_id.is_some());
        let launch = match (&place, begun) {
            _ if is_said => Launch::Accepted(since.or(begun).unwrap_or(facts.created)),
            (Place::Known(_), Some(begun)) if let Data::There(since) = facts.data => {
                Launch::Expected(since.map_or(begun, |since| since.max(begun)))
            }
            _ => Launch::NotYet,
        };
        // What an instance does not say itself, its pool says of all.
        let own = |own: fn(&Behind) -> Option<&String>, all: fn(&Pool) -> Option<&String>| {
            provided.and_then(own).or_else(|| pool.and_then(all)).cloned()
        };
        let shape = self.shapes.of(MACHINE);
        Some(Subject {
            profile: Kind::Machine.profile(),
            namespace: Some(namespace.clone()),
            name: name.clone(),
            uid: facts.uid.clone(),
            resource_version: facts.resource_version.clone(),
            generation: facts.generation,
            created: facts.created,
            deleting: facts.deleting,
            is_control_plane: facts.is_control_plane,
            parent: Some(parent(namespace, facts.deployment.clone(), &facts.cluster)),
            launch,
            registered: facts.node.as_ref().map(|_| facts.healthy_since.unwrap_or(facts.created)),
            place,
            flex_class: None,
            machine: None,
            node_name: facts.node.clone(),
            image: None,
            labels: Labels {
                size: own(|it| it.size.as_ref(), |pool| pool.size.as_ref()),
                zone: provided.and_then(|it| it.zone.clone()),
                region: site
                    .map(|site| site.location.clone())
                    .or_else(|| pool.and_then(|pool| pool.region.clone())),
                capacity: None,
                os: own(|it| it.os.as_ref(), |pool| pool.os.as_ref()),
                cluster: Some(facts.cluster.clone()).filter(|name| !name.is_empty()),
            },
            conditions: facts.conditions.clone(),
            counted_from: since,
            allowed: self.deadline,
            has_room: facts.has_room(shape.most),
            shape,
            held: parts.held(name, facts, cluster),
            // Cluster API copies it from here to the Cluster, if there is one here.
            api_server: site
                .map(|site| site.control_plane_endpoint.host.clone())
                .filter(|host| !host.is_empty())
                .or_else(|| cluster.and_then(|cluster| cluster.host.clone())),
            told_of: told_of(facts, provided, pool),
            trouble: match provided {
                Some(_) => None,
                None if is_known => {
                    Some(format!("{} {} was not seen", reference.kind, reference.name))
                }
                None => Some(format!("objects of kind {} are not known", reference.kind)),
            },
            mirror: provided.filter(|provided| !provided.is_paused).map(|provided| {
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

    /// The Machines around which this stands.
    fn concerned<A: Around>(&self, name: &Named) -> Vec<Named> {
        let within = self.machines.iter().filter(|((namespace, _), _)| *namespace == name.0);
        let concerned = within.filter(|(_, facts)| {
            A::concerns(&self.around, name, facts, self.behind(&name.0, facts))
        });
        concerned.map(|(machine, _)| machine.clone()).collect()
    }

    /// Why controllers must not write to a Machine.
    fn held(&self, name: &str, facts: &Facts, cluster: Option<&AnyCluster>) -> Option<String> {
        match cluster {
            _ if facts.is_paused => Some(format!("Machine {name} is paused")),
            Some(cluster) if cluster.is_paused => {
                Some(format!("Cluster {} is paused", facts.cluster))
            }
            None if !self.clusters_told => {
                Some(format!("Cluster {} was not seen yet", facts.cluster))
            }
            Some(_) | None => None,
        }
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

/// Since when the provider says that something has failed: of the VM, or of its whole pool while it was
/// there.
fn told_of(facts: &Facts, provided: Option<&Behind>, pool: Option<&Pool>) -> Option<Timestamp> {
    let of_pool = pool.and_then(|pool| pool.failed_since).filter(|at| *at >= facts.created);
    provided.and_then(|provided| provided.failed_since).max(of_pool)
}
