//! The state of a pool, and the next step for it. Pure.

use std::collections::BTreeMap;

use bringup_flex::class::Class;
use bringup_flex::ids::vm_id;
use bringup_flex::names;
use bringup_objects::condition::find;
use bringup_objects::flex::machine::{Failure, FlexMachineSpec, Phase};
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;

use crate::grpc::plugin::{Pool, PoolError, Record, Stored};
use crate::reconciler::classes::why_not_ready;

/// The label of the class and the machine of a pool; its value is the name of both.
pub const LABEL: &str = "flex.aks.azure.com/agent-pool";
/// The annotation with the ID of the pool, as its client wrote it.
pub const ID: &str = "flex.aks.azure.com/agent-pool-id";
/// The annotation with the type of an item; without it, the item is a pool.
pub const TYPE: &str = "flex.aks.azure.com/agent-pool-type";

/// The cluster that machines join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The URL of the cluster's API server.
    pub server: String,
    /// The cluster's certificate authority, as PEM.
    pub authority: Vec<u8>,
}

/// The class and the machine of a pool, as just read.
#[derive(Debug, Clone, Default)]
pub(super) struct PoolState {
    pub(super) class: Option<DynamicObject>,
    pub(super) machine: Option<DynamicObject>,
}

/// The next step for a pool that a client requests.
#[derive(Debug)]
pub(super) enum Step {
    MakeClass(Box<AzureFlexNodeClass>),
    MakeMachine(Box<AzureFlexMachine>),
    /// Azure has not answered yet; the pool as stored so far.
    Wait(Box<Stored>),
    Answer(Box<Stored>),
    Refuse(PoolError),
    /// Azure refused the pool or its class: delete the pool.
    Remove(PoolError),
}

/// Whether Azure has accepted or refused the VM of a machine, or the machine is being deleted.
pub(super) fn is_settled(machine: Option<&AzureFlexMachine>) -> bool {
    machine.is_none_or(|machine| {
        machine.metadata.deletion_timestamp.is_some()
            || vm_of(machine).is_some()
            || failure_of(machine).is_some()
    })
}

/// Whether no machine can be created from a class, according to the conditions of its present generation.
pub(super) fn is_refused(class: Option<&AzureFlexNodeClass>) -> bool {
    let status = class.and_then(|class| class.status.as_ref());
    let generation = class.and_then(|class| class.metadata.generation);
    let ready = status.and_then(|status| find(&status.conditions, "Ready"));
    ready.is_some_and(|ready| ready.status == "False" && ready.observed_generation == generation)
}

/// The ID of the VM, once Azure has accepted it.
fn vm_of(machine: &AzureFlexMachine) -> Option<String> {
    let status = machine.status.as_ref()?;
    let there = status.accepted_at.is_some() && status.phase != Phase::Gone;
    status.place.as_ref().filter(|_| there).map(vm_id)
}

/// The failure of the last attempt, unless another attempt is under way.
fn failure_of(machine: &AzureFlexMachine) -> Option<Failure> {
    let status = machine.status.as_ref()?;
    status.failure.clone().filter(|_| status.phase.is_cleaning())
}

/// Whether an object belongs to the pool with this ID.
pub(super) fn is_of(object: &DynamicObject, id: &str) -> bool {
    object.annotations().get(ID).is_some_and(|known| known == id)
}

fn read<K: DeserializeOwned>(object: Option<&DynamicObject>) -> Result<Option<K>, String> {
    let Some(object) = object else { return Ok(None) };
    let value = serde_json::to_value(object).map_err(|error| error.to_string())?;
    serde_json::from_value(value).map(Some).map_err(|error| error.to_string())
}

impl PoolState {
    /// Pairs classes and machines with the same name.
    pub(super) fn all(classes: Vec<DynamicObject>, machines: Vec<DynamicObject>) -> Vec<Self> {
        let mut all: BTreeMap<String, Self> = BTreeMap::new();
        for class in classes {
            let name = class.name_any();
            all.entry(name).or_default().class = Some(class);
        }
        for machine in machines {
            let name = machine.name_any();
            all.entry(name).or_default().machine = Some(machine);
        }
        all.into_values().collect()
    }

    fn objects(&self) -> impl Iterator<Item = &DynamicObject> {
        self.class.iter().chain(&self.machine)
    }

    /// Whether one of the objects belongs to the pool with this ID.
    pub(super) fn is_of(&self, id: &str) -> bool {
        self.objects().any(|object| is_of(object, id))
    }

    /// The ID of the pool; if the annotation is missing, the name of its objects.
    pub(super) fn id(&self) -> String {
        let known = self.objects().find_map(|object| object.annotations().get(ID).cloned());
        known.or_else(|| self.objects().next().map(ResourceExt::name_any)).unwrap_or_default()
    }

    fn class(&self) -> Result<Option<AzureFlexNodeClass>, String> {
        read(self.class.as_ref())
    }

    pub(super) fn machine(&self) -> Result<Option<AzureFlexMachine>, String> {
        read(self.machine.as_ref())
    }

    /// The item that is stored.
    pub(super) fn record(&self, cluster: &Cluster) -> Record {
        if self.objects().any(|object| object.annotations().contains_key(TYPE)) {
            return Record::Other;
        }
        if let Some(nameless) = self.objects().find(|one| !one.annotations().contains_key(ID)) {
            let kind = nameless.types.as_ref().map_or("object", |types| types.kind.as_str());
            return Record::Broken(format!("its {kind} has no annotation with the id of its pool"));
        }
        self.stored(cluster).map_or_else(Record::Broken, |stored| Record::Pool(Box::new(stored)))
    }

    fn stored(&self, cluster: &Cluster) -> Result<Stored, String> {
        let class = self.class()?.ok_or("its class does not exist")?;
        let created_at = class.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let machine = self.machine()?;
        let vm_resource_id = machine.as_ref().and_then(vm_of);
        let spec = machine.map(|machine| machine.spec).unwrap_or_default();
        Ok(Stored {
            pool: Pool {
                id: self.id(),
                class: class.spec,
                size: spec.vm_size,
                labels: spec.labels,
                taints: spec.taints,
                server: cluster.server.clone(),
                authority: cluster.authority.clone(),
            },
            vm_resource_id,
            created_at: created_at.ok_or("its class has no creation time")?,
        })
    }

    /// The next step when a client requests this pool.
    pub(super) fn next_step(&self, pool: &Pool, cluster: &Cluster) -> Step {
        if let Some(foreign) = self.objects().find(|object| !is_of(object, &pool.id)) {
            let kind = foreign.types.as_ref().map_or("object", |types| types.kind.as_str());
            let name = foreign.name_any();
            let what = format!("a {kind} named {name} exists that is not of this pool");
            return Step::Refuse(PoolError::Fixed(what));
        }
        if matches!(self.record(cluster), Record::Other) {
            let what = format!("{} is of another type", pool.id);
            return Step::Refuse(PoolError::Fixed(what));
        }
        let machine = match self.machine() {
            Ok(machine) => machine,
            Err(why) => return Step::Refuse(broken(pool, &why)),
        };
        if self.objects().any(|object| object.metadata.deletion_timestamp.is_some()) {
            let failure = machine.as_ref().and_then(failure_of);
            let busy = || PoolError::Busy(format!("the pool {} is being deleted", pool.id));
            return Step::Refuse(failure.map_or_else(busy, PoolError::Azure));
        }
        if self.class.is_none() && machine.is_none() {
            return Step::MakeClass(Box::new(class(pool)));
        }
        let stored = match self.stored(cluster) {
            Ok(stored) => stored,
            Err(why) => return Step::Refuse(broken(pool, &why)),
        };
        let mut changed = Vec::new();
        if Class::of(&stored.pool.class) != Class::of(&pool.class) {
            changed.push("spec");
        }
        let Some(machine) = machine else {
            return if changed.is_empty() {
                Step::MakeMachine(Box::new(self::machine(pool)))
            } else {
                Step::Refuse(fixed(pool, &changed))
            };
        };
        if !stored.pool.size.eq_ignore_ascii_case(&pool.size) {
            changed.push("spec.vm_size");
        }
        if stored.pool.labels != pool.labels {
            changed.push("spec.kubeadm.node_labels");
        }
        if stored.pool.taints != pool.taints {
            changed.push("spec.kubeadm.register_with_taints");
        }
        if !changed.is_empty() {
            return Step::Refuse(fixed(pool, &changed));
        }
        match failure_of(&machine) {
            Some(failure) => Step::Remove(PoolError::Azure(failure)),
            None if is_settled(Some(&machine)) => Step::Answer(Box::new(stored)),
            None => match self.class().ok().flatten().filter(|class| is_refused(Some(class))) {
                Some(class) => Step::Remove(PoolError::NotReady(why_not_ready(&class))),
                None => Step::Wait(Box::new(stored)),
            },
        }
    }
}

fn broken(pool: &Pool, why: &str) -> PoolError {
    let what = format!("the stored pool {} cannot be read: delete it first", pool.id);
    PoolError::Fixed(format!("{what} ({why})"))
}

fn fixed(pool: &Pool, changed: &[&str]) -> PoolError {
    let changed = changed.join(" and ");
    let id = &pool.id;
    PoolError::Fixed(format!(
        "the pool {id} exists with another {changed}; a machine is never changed: delete it first"
    ))
}

fn marked<K: kube::Resource<DynamicType = ()>>(mut object: K, pool: &Pool) -> K {
    let name = object.name_any();
    object.labels_mut().insert(LABEL.to_owned(), name);
    object.annotations_mut().insert(ID.to_owned(), pool.id.clone());
    object
}

fn class(pool: &Pool) -> AzureFlexNodeClass {
    marked(AzureFlexNodeClass::new(&names::pool(&pool.id), pool.class.clone()), pool)
}

fn machine(pool: &Pool) -> AzureFlexMachine {
    let name = names::pool(&pool.id);
    let spec = FlexMachineSpec {
        node_class: name.clone(),
        vm_size: pool.size.clone(),
        labels: pool.labels.clone(),
        taints: pool.taints.clone(),
        ..FlexMachineSpec::default()
    };
    marked(AzureFlexMachine::new(&name, spec), pool)
}

#[cfg(test)]
mod tests {
    use bringup_objects::flex::machine::FlexMachineStatus;
    use bringup_objects::flex::{FlexNodeClassSpec, FlexNodeClassStatus};
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde::Serialize;

    use super::*;

    fn pool() -> Pool {
        let class = FlexNodeClassSpec {
            subscription_id: "00000000-0000-0000-0000-000000000000".to_owned(),
            location: "eastus2".to_owned(),
            resource_group: "rg".to_owned(),
            subnet_id: "/subscriptions/s/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v/subnets/x".to_owned(),
            ..FlexNodeClassSpec::default()
        };
        let size = "Standard_D8s_v5".to_owned();
        Pool { id: "Pool 1".to_owned(), class, size, ..Pool::default() }
    }

    fn cluster() -> Cluster {
        Cluster { server: String::new(), authority: Vec::new() }
    }

    fn object(of: &impl Serialize) -> DynamicObject {
        serde_json::from_value(serde_json::to_value(of).unwrap()).unwrap()
    }

    fn stored_class() -> AzureFlexNodeClass {
        let mut class = class(&pool());
        class.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        class
    }

    fn with(status: FlexMachineStatus) -> PoolState {
        let machine = AzureFlexMachine { status: Some(status), ..machine(&pool()) };
        PoolState { class: Some(object(&stored_class())), machine: Some(object(&machine)) }
    }

    fn failed(phase: Phase) -> FlexMachineStatus {
        let failure =
            Failure { arm_code: Some("SkuNotAvailable".to_owned()), ..Failure::default() };
        FlexMachineStatus { phase, failure: Some(failure), ..FlexMachineStatus::default() }
    }

    #[test]
    fn a_class_comes_first_then_its_machine_then_azure() {
        let step = |seen: &PoolState| seen.next_step(&pool(), &cluster());
        let Step::MakeClass(made) = step(&PoolState::default()) else { panic!("no class") };
        assert_eq!(made.labels()[LABEL], made.name_any());
        assert_eq!(made.annotations()[ID], "Pool 1");
        let half = PoolState { class: Some(object(&stored_class())), machine: None };
        let Step::MakeMachine(machine) = step(&half) else { panic!("no machine") };
        assert_eq!(machine.spec.node_class, made.name_any());
        assert!(matches!(step(&with(FlexMachineStatus::default())), Step::Wait(_)));
        let accepted = FlexMachineStatus {
            phase: Phase::VmAccepted,
            accepted_at: Some(Time(Timestamp::UNIX_EPOCH)),
            place: Some(bringup_objects::flex::machine::Place::default()),
            ..FlexMachineStatus::default()
        };
        assert!(
            matches!(step(&with(accepted)), Step::Answer(stored) if stored.vm_resource_id.is_some())
        );
    }

    #[test]
    fn a_refused_pool_is_deleted_and_refused_while_that_lasts() {
        let seen = with(failed(Phase::CleanNic));
        let step = seen.next_step(&pool(), &cluster());
        assert!(matches!(step, Step::Remove(PoolError::Azure(_))), "{step:?}");
        let mut deleting = seen.clone();
        let machine = deleting.machine.as_mut().unwrap();
        machine.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let step = deleting.next_step(&pool(), &cluster());
        assert!(matches!(step, Step::Refuse(PoolError::Azure(_))), "{step:?}");
        // Another attempt is under way.
        let step = with(failed(Phase::NicPut)).next_step(&pool(), &cluster());
        assert!(matches!(step, Step::Wait(_)), "{step:?}");
        // The reason for the deletion is unknown.
        let mut deleting = with(FlexMachineStatus::default());
        let class = deleting.class.as_mut().unwrap();
        class.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let step = deleting.next_step(&pool(), &cluster());
        assert!(matches!(step, Step::Refuse(PoolError::Busy(_))), "{step:?}");
    }

    #[test]
    fn a_class_that_is_not_ready_is_refused_by_conditions_of_its_generation() {
        let ready = |generation| bringup_objects::condition::Condition {
            type_: "Ready".to_owned(),
            status: "False".to_owned(),
            reason: "UnhealthyDependents".to_owned(),
            message: String::new(),
            observed_generation: Some(generation),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        };
        let step = |generation| {
            let mut class = stored_class();
            class.metadata.generation = Some(2);
            class.status = Some(FlexNodeClassStatus { conditions: vec![ready(generation)] });
            let seen =
                PoolState { class: Some(object(&class)), ..with(FlexMachineStatus::default()) };
            seen.next_step(&pool(), &cluster())
        };
        assert!(matches!(step(2), Step::Remove(PoolError::NotReady(_))));
        assert!(matches!(step(1), Step::Wait(_)));
    }

    #[test]
    fn every_change_is_named() {
        let change = |change: fn(&mut Pool)| {
            let mut pool = pool();
            change(&mut pool);
            match with(FlexMachineStatus::default()).next_step(&pool, &cluster()) {
                Step::Refuse(PoolError::Fixed(what)) => what,
                other => panic!("{other:?}"),
            }
        };
        let refusal = change(|pool| pool.class.max_pods_per_node = Some(20));
        assert!(refusal.contains("another spec;"), "{refusal}");
        let refusal = change(|pool| pool.taints.push("a=b:NoExecute".to_owned()));
        assert!(refusal.contains("spec.kubeadm.register_with_taints"), "{refusal}");
        let refusal = change(|pool| {
            pool.size = "Standard_NC24ads_A100_v4".to_owned();
            pool.labels.insert("a".to_owned(), "b".to_owned());
        });
        assert!(refusal.contains("spec.vm_size and spec.kubeadm.node_labels"), "{refusal}");
        // The same pool in another notation.
        let mut same = pool();
        same.class.location = "East US 2".to_owned();
        let step = with(FlexMachineStatus::default()).next_step(&same, &cluster());
        assert!(matches!(step, Step::Wait(_)), "{step:?}");
    }
}
