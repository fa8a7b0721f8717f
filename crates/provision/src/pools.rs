//! Pools of the aks-flex plugin, stored in Kubernetes: each pool is a class and a machine with one name.
//!
//! # Guarantees
//! Each object is created as a whole in one write, and only objects with the ID of the pool are changed or
//! deleted, so several replicas may serve the same pools. The token that a client sends is neither stored nor
//! used: a machine joins with a token of its own.
//!
//! A pool that Azure refuses is deleted: its client may never send another request, and must not pay for a VM
//! that is created later.

mod limits;
mod state;

use std::error::Error;
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use bringup_azure::arm::{Verb, Write};
use bringup_azure::id::{Name, ResourceId, VirtualMachineId};
use bringup_azure::{Arm, ArmError, Priority, Scopes};
use bringup_flex::ids::vm_id;
use bringup_flex::names;
use bringup_flex::trouble::Trouble;
use bringup_objects::flex::machine::{Failure, Phase, Place};
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams, Preconditions};
use kube::core::ApiResource;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};

pub use self::state::{Cluster, ID, LABEL, TYPE};
use self::state::{PoolState, Step, is_of, is_refused, is_settled};
use crate::grpc::plugin::{Pool, PoolError, Pools, Record, Stored, same_authority};

/// How long a call waits for Azure's answer by default. The server ends every call within 10 seconds.
const PATIENCE: Duration = Duration::from_secs(7);
/// The number of conflicts with other writers before a call fails.
const TRIES: usize = 8;
/// The API version of the VM restart.
const API_VERSION: &str = "2024-07-01";

/// Pools in Kubernetes.
#[derive(Clone)]
pub struct KubePools {
    client: Client,
    arm: Arm,
    cluster: Cluster,
    scopes: Scopes,
    patience: Duration,
}

impl KubePools {
    /// Pools whose machines join `cluster`, which `client` is connected to. The reconciler creates the VMs;
    /// `arm` only restarts them. Resources outside `scopes` are neither used nor restarted.
    pub fn new(client: Client, arm: Arm, cluster: Cluster, scopes: Scopes) -> Self {
        Self { client, arm, cluster, scopes, patience: PATIENCE }
    }

    /// Sets how long a call waits for Azure's answer.
    #[must_use]
    pub fn waiting(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    fn api<K: Resource<DynamicType = ()>>(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &ApiResource::erase::<K>(&()))
    }

    /// Reads the objects of a pool, untyped, so that an object that cannot be parsed is a result and no
    /// error.
    async fn observe(&self, id: &str) -> Result<PoolState, PoolError> {
        let name = names::pool(id);
        let (classes, machines) =
            (self.api::<AzureFlexNodeClass>(), self.api::<AzureFlexMachine>());
        let (class, machine) = tokio::join!(classes.get_opt(&name), machines.get_opt(&name));
        let read = |read| failed_or("read", id, read);
        Ok(PoolState { class: read(class)?, machine: read(machine)? })
    }

    /// Creates an object, unless it exists.
    async fn create<K>(&self, id: &str, object: &K) -> Result<(), PoolError>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.client.clone());
        match api.create(&PostParams::default(), object).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            // A validation rule of the definition refused the object; its message names the field.
            Err(kube::Error::Api(status)) if status.code == 422 => {
                Err(PoolError::Field { field: "spec".to_owned(), what: status.message })
            }
            Err(error) => failed_or("create", id, Err(error)),
        }
    }

    /// Deletes exactly the objects that were read, and no later ones with their names.
    async fn remove(&self, id: &str, seen: &PoolState) -> Result<(), PoolError> {
        // The class's finalizer waits for the machine.
        let (classes, machines) =
            (self.api::<AzureFlexNodeClass>(), self.api::<AzureFlexMachine>());
        for (api, object) in [(machines, &seen.machine), (classes, &seen.class)] {
            let Some(object) = object.as_ref().filter(|object| is_of(object, id)) else {
                continue;
            };
            let uid = object.metadata.uid.clone();
            let preconditions = Some(Preconditions { uid, ..Preconditions::default() });
            let delete = DeleteParams { preconditions, ..DeleteParams::default() };
            match api.delete(&object.name_any(), &delete).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return failed_or("delete", id, Err(error)),
            }
        }
        Ok(())
    }

    /// Waits until Azure has accepted or refused the VM or its class, or until the pool is deleted.
    async fn wait(&self, id: &str, until: Instant) -> bool {
        let name = names::pool(id);
        let machines: Api<AzureFlexMachine> = Api::all(self.client.clone());
        let classes: Api<AzureFlexNodeClass> = Api::all(self.client.clone());
        tokio::select! {
            _ = await_condition(machines, &name, is_settled) => true,
            _ = await_condition(classes, &name, is_refused) => true,
            () = sleep_until(until) => false,
        }
    }

    /// The place of a pool's VM, and the vmId that Azure returned for its creation.
    async fn place(&self, id: &str) -> Result<(Place, String), PoolError> {
        let seen = self.observe(id).await?;
        let machine = seen.machine().ok().flatten();
        let machine = machine.ok_or_else(|| PoolError::Absent(id.to_owned()))?;
        let status = machine.status.unwrap_or_default();
        let running = status.phase == Phase::Running;
        let place = status.place.zip(status.vm_id).filter(|_| running);
        place.ok_or_else(|| PoolError::Busy(format!("the VM of {id} does not run yet")))
    }

    /// Reads the VM of a pool, and fails if another VM has replaced it.
    async fn prove(&self, vm: &ResourceId, vm_id: &str) -> Result<(), PoolError> {
        let what = || format!("cannot restart {vm}");
        let instance = VirtualMachineId::try_from(vm).map_err(|error| failed(what(), error))?;
        let found = self.arm.virtual_machine(&instance, Priority::Event).await;
        let found = found.map_err(|error| azure_failed(&error))?;
        match found.vm_id {
            Some(found) if found.eq_ignore_ascii_case(vm_id) => Ok(()),
            found => Err(PoolError::Fixed(format!(
                "{vm} is another VM than the one that was created for this pool: its vmId is {}, not {vm_id}",
                found.unwrap_or_default()
            ))),
        }
    }
}

/// Adds the action and the pool to an error of Kubernetes.
fn failed_or<T>(verb: &str, id: &str, result: Result<T, kube::Error>) -> Result<T, PoolError> {
    result.map_err(|source| failed(format!("cannot {verb} the pool {id}"), source))
}

fn azure_failed(error: &ArmError) -> PoolError {
    let failure: Failure = Trouble::of_error(error, false).stored();
    PoolError::Azure(failure)
}

fn failed(what: String, source: impl Error + Send + Sync + 'static) -> PoolError {
    PoolError::Failed { what, source: Box::new(source) }
}

#[async_trait]
impl Pools for KubePools {
    async fn put(&self, pool: Pool) -> Result<Stored, PoolError> {
        if !same_authority(&pool.authority, &self.cluster.authority) {
            return Err(PoolError::Field {
                field: "spec.kubeadm.certificate_authority_data".to_owned(),
                what: "it is not the authority of this cluster, and machines join no other"
                    .to_owned(),
            });
        }
        limits::check(&self.scopes, &pool.class)?;
        let now = Instant::now();
        let until = now.checked_add(self.patience).unwrap_or(now);
        for _ in 0..TRIES {
            let seen = self.observe(&pool.id).await?;
            match seen.next_step(&pool, &self.cluster) {
                Step::MakeClass(class) => self.create(&pool.id, &*class).await?,
                Step::MakeMachine(machine) => self.create(&pool.id, &*machine).await?,
                Step::Wait(stored) => {
                    if !self.wait(&pool.id, until).await {
                        return Ok(*stored);
                    }
                }
                Step::Answer(stored) => return Ok(*stored),
                Step::Refuse(error) => return Err(error),
                Step::Remove(error) => {
                    self.remove(&pool.id, &seen).await?;
                    return Err(error);
                }
            }
        }
        Err(PoolError::Busy(format!("another client is changing the pool {}", pool.id)))
    }

    async fn get(&self, id: &str) -> Result<Option<Record>, PoolError> {
        let seen = self.observe(id).await?;
        Ok(seen.is_of(id).then(|| seen.record(&self.cluster)))
    }

    async fn list(&self) -> Result<Vec<(String, Record)>, PoolError> {
        let ours = ListParams::default().labels(LABEL);
        let (classes, machines) =
            (self.api::<AzureFlexNodeClass>(), self.api::<AzureFlexMachine>());
        let (classes, machines) = tokio::join!(classes.list(&ours), machines.list(&ours));
        let read = |list: Result<kube::core::ObjectList<_>, _>| {
            let list = list.map_err(|source| failed("cannot list pools".to_owned(), source))?;
            Ok::<Vec<DynamicObject>, PoolError>(list.items)
        };
        let all = PoolState::all(read(classes)?, read(machines)?);
        Ok(all.into_iter().map(|seen| (seen.id(), seen.record(&self.cluster))).collect())
    }

    async fn delete(&self, id: &str) -> Result<(), PoolError> {
        let seen = self.observe(id).await?;
        self.remove(id, &seen).await
    }

    async fn restart(&self, id: &str) -> Result<(), PoolError> {
        let (place, made) = self.place(id).await?;
        let id_of_vm = vm_id(&place);
        let what = || format!("cannot restart {id_of_vm}");
        let resource: ResourceId = id_of_vm.parse().map_err(|error| failed(what(), error))?;
        limits::check_resource(&self.scopes, "id", &resource)?;
        self.prove(&resource, &made).await?;
        let action: Name = "restart".parse().map_err(|error| failed(what(), error))?;
        let write = Write {
            verb: Verb::Post,
            resource: &resource,
            action: Some(&action),
            api_version: API_VERSION,
            query: &[],
            body: None,
        };
        // Azure completes an accepted restart; the client does not wait for the operation.
        self.arm.start(&write).await.map(drop).map_err(|error| azure_failed(&error))
    }
}
