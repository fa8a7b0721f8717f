//! A simulated Azure, a store in memory with versions like the API server's, and an engine that tests can
//! stop at any point.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod foreign;
#[path = "../../../azure/tests/common/simulated_clock.rs"]
mod simulated_clock;
pub mod steps;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use bringup_azure::{Arm, Cloud as AzureCloud};
use bringup_azure_sim::endpoints::{AnyToken, InProcess};
use bringup_azure_sim::fault::{Fault, FaultRule, On};
use bringup_azure_sim::{Simulator, scenario};
use bringup_flex::claim::{Claim, ClaimState};
use bringup_flex::engine::{
    ArmCloud, Bootstrap, Claims, Cloud, CurrentClaim, Engine, Next, Store, StoreError, Sweeper,
    Swept,
};
use bringup_flex::machine::{Answer, Memory, Request, Snapshot};
use bringup_flex::names;
use bringup_flex::sweep::Owners;
use bringup_objects::flex::machine::{
    AzureFlexMachine, ClaimReference, FlexMachineSpec, Image, Phase, Place,
};
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;

use self::simulated_clock::SimulatedClock;

pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
/// More passes than any test needs.
const MOST_PASSES: usize = 2_000;

pub const CLUSTER: &str = "cluster-1";
pub const CLUSTER_UID: &str = "uid-of-kube-system";

/// Issues tokens, or fails like an unavailable Entra.
#[derive(Debug)]
struct Tokens(Arc<AtomicBool>);

#[async_trait]
impl TokenCredential for Tokens {
    async fn get_token(
        &self,
        scopes: &[&str],
        options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        if self.0.load(Ordering::SeqCst) {
            let kind = azure_core::error::ErrorKind::Credential;
            return Err(azure_core::Error::with_message(kind, "Entra answered 503"));
        }
        AnyToken("observer").get_token(scopes, options).await
    }
}

pub struct NoSecrets;

#[async_trait]
impl Bootstrap for NoSecrets {
    async fn custom_data(&self, _: &AzureFlexMachine) -> Result<String, String> {
        Ok("I2Nsb3VkLWNvbmZpZwo=".to_owned())
    }
}

/// Where a process is killed: at the n-th point that it passes. One point is before and one after each
/// effect.
#[derive(Debug, Clone, Default)]
pub struct Crash {
    at: Arc<AtomicUsize>,
    passed: Arc<AtomicUsize>,
    dead: Arc<AtomicBool>,
    calls: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Crash {
    pub fn at(point: usize) -> Self {
        let crash = Self::default();
        crash.at.store(point, Ordering::SeqCst);
        crash
    }

    /// The number of points that the process passed.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    async fn point(&self) {
        if self.passed.fetch_add(1, Ordering::SeqCst) + 1 == self.at.load(Ordering::SeqCst) {
            self.dead.store(true, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
    }
}

/// Machines with versions. A write that is based on an older version fails.
#[derive(Debug, Clone, Default)]
pub struct Shelf(Arc<Mutex<BTreeMap<String, AzureFlexMachine>>>);

impl Shelf {
    pub fn put(&self, machine: AzureFlexMachine) {
        let name = machine.metadata.name.clone().unwrap();
        self.0.lock().unwrap().insert(name, machine);
    }

    pub fn get(&self, name: &str) -> Option<AzureFlexMachine> {
        self.0.lock().unwrap().get(name).cloned()
    }

    /// Requests the deletion of a machine, as `kubectl delete` does.
    pub fn delete(&self, name: &str, now: Timestamp) {
        let mut all = self.0.lock().unwrap();
        let Some(machine) = all.get_mut(name) else { return };
        machine.metadata.deletion_timestamp.get_or_insert(Time(now));
        bump(machine);
        let free = machine.metadata.finalizers.iter().flatten().next().is_none();
        if free {
            all.remove(name);
        }
    }

    pub fn write_status(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        self.write(machine, |stored| stored.status.clone_from(&machine.status))
    }

    pub fn write_finalizers(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        let finalizers = &machine.metadata.finalizers;
        self.write(machine, |stored| stored.metadata.finalizers.clone_from(finalizers))
    }

    fn write(
        &self,
        new: &AzureFlexMachine,
        change: impl Fn(&mut AzureFlexMachine),
    ) -> Result<(), StoreError> {
        let mut all = self.0.lock().unwrap();
        let name = new.metadata.name.as_deref().unwrap_or_default();
        let stored = all.get_mut(name).ok_or_else(|| StoreError::Failed("not found".to_owned()))?;
        if stored.metadata.resource_version != new.metadata.resource_version {
            return Err(StoreError::Conflict);
        }
        change(stored);
        // Serialised and parsed as in the API server, which stores no fractions of seconds.
        *stored = serde_json::from_value(serde_json::to_value(&*stored).unwrap()).unwrap();
        bump(stored);
        let free = stored.metadata.finalizers.iter().flatten().next().is_none();
        if stored.metadata.deletion_timestamp.is_some() && free {
            all.remove(name);
        }
        Ok(())
    }
}

fn bump(machine: &mut AzureFlexMachine) {
    let version: u64 = machine.metadata.resource_version.as_deref().unwrap_or("0").parse().unwrap();
    machine.metadata.resource_version = Some((version + 1).to_string());
}

pub struct Brittle<T> {
    inner: T,
    crash: Crash,
}

#[async_trait]
impl Store for Brittle<Shelf> {
    async fn write_status(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        self.crash.point().await;
        let done = self.inner.write_status(machine);
        self.crash.point().await;
        done
    }

    async fn write_finalizers(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        self.crash.point().await;
        let done = self.inner.write_finalizers(machine);
        self.crash.point().await;
        done
    }

    async fn delete(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        Err(StoreError::Failed(format!("{:?} has a claim", machine.metadata.name)))
    }
}

/// Fails on every use: in these tests each claim is either registered or not listed yet, so no claim is read
/// or deleted.
pub struct NoClaims;

#[async_trait]
impl Claims for NoClaims {
    async fn read(&self, claim: &ClaimReference) -> Result<Option<CurrentClaim>, StoreError> {
        Err(StoreError::Failed(format!("{claim:?} is read")))
    }

    async fn announce_failure(&self, _: &ClaimReference, _: &AzureFlexMachine, _: &str) {}

    async fn delete(&self, claim: &ClaimReference, _: &str) -> Result<(), StoreError> {
        Err(StoreError::Failed(format!("{claim:?} is deleted")))
    }
}

/// A claim whose Node has registered, so that it needs no step.
pub fn registered_claim() -> Claim {
    Claim {
        uid: "uid-1".to_owned(),
        class: "default".to_owned(),
        is_deleting: false,
        is_registered: true,
        provider_id: None,
        verdict: None,
    }
}

#[async_trait]
impl<C: Cloud> Cloud for Brittle<C> {
    async fn send(&self, request: Request, machine: &AzureFlexMachine, place: &Place) -> Answer {
        self.crash.point().await;
        let answer = self.inner.send(request, machine, place).await;
        self.crash.point().await;
        answer
    }
}

/// An engine, with its process's memory of each machine.
pub struct Process<S = Brittle<Shelf>, C = Brittle<ArmCloud<NoSecrets>>> {
    engine: Engine<S, C, NoClaims>,
    remembered: Mutex<BTreeMap<String, Memory>>,
}

impl<S: Store, C: Cloud> Process<S, C> {
    pub fn new(store: S, cloud: C) -> Self {
        Self { engine: Engine::new(store, cloud, NoClaims), remembered: Mutex::default() }
    }

    pub fn remember(&self, name: &str, memory: Memory) {
        self.remembered.lock().unwrap().insert(name.to_owned(), memory);
    }

    /// One pass for the stored state of a machine, with this place and claim.
    pub async fn pass(
        &self,
        stored: &Shelf,
        name: &str,
        (place, join_error): (&Place, Option<&str>),
        claim: ClaimState<'_>,
        now: Timestamp,
    ) -> Result<Next, StoreError> {
        let remembered = self.remembered.lock().unwrap().remove(name);
        let Some(machine) = stored.get(name) else { return Ok(Next::Never) };
        let memory = remembered.unwrap_or_default();
        let place = Some(place);
        let mut snapshot = Snapshot { machine: &machine, place, join_error, claim, memory, now };
        let passed = self.engine.pass(&mut snapshot).await;
        self.remember(name, snapshot.memory);
        passed.map(|pass| pass.next)
    }
}

/// The simulated Azure, the store, and the settings of a test.
pub struct World {
    pub azure: Simulator,
    pub shelf: Shelf,
    /// Whether failed VMs are still needed as evidence.
    pub is_evidence: bool,
    /// Whether the credential returns no token.
    pub has_no_token: Arc<AtomicBool>,
    /// The places of machines that differ from [`place`].
    pub places: Mutex<BTreeMap<String, Place>>,
    foreign: Vec<String>,
}

impl World {
    pub fn new(scenario: &str) -> Self {
        let azure = Simulator::manual(scenario::parse("flex", scenario).unwrap());
        let (shelf, foreign) = (Shelf::default(), Vec::new());
        let has_no_token = Arc::default();
        let places = Mutex::default();
        let world = Self { azure, shelf, is_evidence: false, has_no_token, places, foreign };
        let foreign = world.make_foreign();
        Self { foreign, ..world }
    }

    fn arm(&self) -> Arm {
        Arm::new(
            AzureCloud::Public.endpoint(),
            Arc::new(Tokens(self.has_no_token.clone())),
            Arc::new(InProcess::new(self.azure.clone())),
            Arc::new(SimulatedClock(self.azure.clone())),
        )
    }

    pub fn now(&self) -> Timestamp {
        self.azure.clock().now()
    }

    /// Creates resources of another cluster, with names like ours.
    fn make_foreign(&self) -> Vec<String> {
        let body = serde_json::json!({
            "location": "eastus2",
            "tags": { "bringup-managed-by": "bringup", "bringup-cluster": "another" },
            "properties": { "ipConfigurations": [{ "name": "ipconfig", "properties": { "subnet": { "id": place("x").subnet_id } } }] },
        });
        let path = format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Network/networkInterfaces/node-1-nic2?api-version=2024-05-01"
        );
        let request = http::Request::builder()
            .method("PUT")
            .uri(path)
            .header("host", "management.azure.com")
            .header("authorization", "Bearer another")
            .body(bytes::Bytes::from(body.to_string()))
            .unwrap();
        drop(self.azure.answer(&request));
        self.azure.advance(Duration::from_secs(30));
        self.resources()
    }

    /// The IDs of all existing resources.
    pub fn resources(&self) -> Vec<String> {
        let mut all: Vec<String> = self.azure.with(|azure| {
            azure.resources().into_iter().map(|one| one.id.to_ascii_lowercase()).collect()
        });
        all.sort_unstable();
        all
    }

    /// The IDs of existing resources, without those of the other cluster.
    pub fn ours(&self) -> Vec<String> {
        let short = |id: &String| id.rsplit('/').next().unwrap_or_default().to_owned();
        self.resources().iter().filter(|id| !self.foreign.contains(id)).map(short).collect()
    }

    pub fn foreign_is_untouched(&self) -> bool {
        let all = self.resources();
        self.foreign.iter().all(|id| all.contains(id))
    }

    /// The number of VMs that were created, including those whose answer was lost.
    pub fn created(&self) -> usize {
        self.azure.with(|azure| {
            let lines = azure.journal().text().lines();
            lines
                .filter(|line| line.contains("/virtualMachines/") && line.ends_with(": creating"))
                .count()
        })
    }

    /// Injects a fault into the next request to Azure. Only reads can return old data, or be denied without
    /// an effect.
    pub fn strike(&self, fault: Fault) {
        let is_of_reads = matches!(fault, Fault::Stale | Fault::StatusBefore(403));
        let method = is_of_reads.then(|| "GET".to_owned());
        let on = On { times: Some(1), method, ..On::default() };
        self.azure.with(|azure| azure.arm_fault(FaultRule { on, fault }));
    }

    /// Sweeps the resource group of the tests, with no machine as an owner.
    pub async fn sweep(&self) -> Swept {
        let sweeper = Sweeper::new(self.arm(), CLUSTER);
        let names = (SUBSCRIPTION.parse().unwrap(), "rg-flex".parse().unwrap());
        let mut sweep = pin!(async {
            let found = sweeper.list(&names.0, &names.1, self.now()).await.unwrap();
            let cluster_uid = Some(CLUSTER_UID.to_owned());
            let owners = Owners { cluster_uid, ..Owners::default() };
            sweeper.sweep(&found, &owners, self.now(), false).await
        });
        loop {
            tokio::task::yield_now().await;
            if let Some(swept) = sweep.as_mut().now_or_never() {
                return swept;
            }
            self.azure.advance(Duration::from_secs(1));
        }
    }

    /// The client of Azure, as a process uses it.
    pub fn cloud(&self) -> ArmCloud<NoSecrets> {
        ArmCloud::new(self.arm(), CLUSTER, NoSecrets)
    }

    /// A process that is killed at a point.
    pub fn process(&self, crash: &Crash) -> Process {
        Process::new(
            Brittle { inner: self.shelf.clone(), crash: crash.clone() },
            Brittle { inner: self.cloud(), crash: crash.clone() },
        )
    }

    /// Advances the time.
    pub fn wait_until(&self, at: Timestamp) {
        let pause = Duration::try_from(self.now().duration_until(at)).unwrap_or_default();
        self.azure.advance(pause);
    }

    /// Runs one pass for a machine; none if the process was killed.
    pub async fn pass(&self, process: &Process, crash: &Crash, name: &str) -> Option<Next> {
        let elsewhere = self.places.lock().unwrap().get(name).cloned();
        let place = elsewhere.unwrap_or_else(|| place(name));
        let begun = self.now();
        // Renews the task's budget: without a renewal, tokio makes a busy task yield, and a future that waits
        // for nothing would be pending.
        tokio::task::yield_now().await;
        let registered = registered_claim();
        let claim =
            if self.is_evidence { ClaimState::NotListed } else { ClaimState::Exists(&registered) };
        let mut pass = pin!(process.pass(&self.shelf, name, (&place, None), claim, self.now()));
        loop {
            match pass.as_mut().now_or_never() {
                Some(Ok(next)) => return Some(next),
                Some(Err(StoreError::Conflict)) => return Some(Next::Now),
                Some(Err(StoreError::Failed(why) | StoreError::Denied(why))) => panic!("{why}"),
                None if crash.is_dead() => return None,
                // The pass waits for its turn to send a request to Azure.
                None => drop(self.azure.advance(Duration::from_secs(1))),
            }
            assert!(
                begun.duration_until(self.now()) < SignedDuration::from_hours(48),
                "{name} waits for ever"
            );
        }
    }

    /// Runs passes for a machine until it rests or `until` is true. Returns false if the process was killed.
    /// Time advances as needed.
    pub async fn work(
        &self,
        process: &Process,
        crash: &Crash,
        name: &str,
        until: impl Fn(&Self) -> bool,
    ) -> bool {
        let begun = self.now();
        for _ in 0..MOST_PASSES {
            if until(self) {
                return true;
            }
            assert!(
                begun.duration_until(self.now()) < SignedDuration::from_hours(48),
                "{name} never rests: {:#?}",
                self.shelf.get(name)
            );
            match self.pass(process, crash, name).await {
                None => return false,
                Some(Next::Now) => {}
                Some(Next::At(at)) => self.wait_until(at),
                Some(Next::Never) => return true,
            }
        }
        panic!(
            "{name} never rests: {:#?}\n{}",
            self.shelf.get(name),
            self.azure.with(|azure| azure.journal().text().to_owned())
        );
    }
}

/// The uid of a machine in these tests.
pub fn uid(name: &str) -> String {
    format!("uid-of-{name}")
}

/// The name of a machine's VM.
pub fn vm(name: &str) -> String {
    names::vm(name, &names::suffix(CLUSTER_UID, &uid(name)))
}

/// The names of a machine's VM, NIC and disk.
pub fn all_names(name: &str) -> [String; 3] {
    let vm = vm(name);
    [names::nic(&vm), names::disk(&vm), vm]
}

/// The place of the machines in these tests.
pub fn place(name: &str) -> Place {
    let vm = vm(name);
    Place {
        machine_uid: Some(uid(name)),
        subscription_id: SUBSCRIPTION.to_owned(),
        resource_group: "rg-flex".to_owned(),
        location: "eastus2".to_owned(),
        subnet_id: format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes"
        ),
        nic: names::nic(&vm),
        disk: names::disk(&vm),
        vm,
        image: Image::Marketplace {
            publisher: "microsoft-dsvm".to_owned(),
            offer: "ubuntu-hpc".to_owned(),
            sku: "2204".to_owned(),
            version: "22.04.2026011301".to_owned(),
        },
        os_disk_size_gb: 128,
        boot_diagnostics: true,
        ssh_public_keys: vec!["ssh-ed25519 AAAA".to_owned()],
        tags: BTreeMap::new(),
        boot_timeout_seconds: 900,
        launch_timeout_seconds: 300,
        max_pods: 110,
        kubernetes_version: None,
        hunting: false,
    }
}

/// A new machine, with or without a claim.
pub fn machine(name: &str, for_a_claim: bool) -> AzureFlexMachine {
    let claim = ClaimReference { name: name.to_owned(), uid: "uid-1".to_owned() };
    AzureFlexMachine {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            uid: Some(uid(name)),
            resource_version: Some("1".to_owned()),
            ..ObjectMeta::default()
        },
        spec: FlexMachineSpec {
            node_class: "default".to_owned(),
            vm_size: "Standard_D8s_v5".to_owned(),
            claim_ref: for_a_claim.then_some(claim),
            ..FlexMachineSpec::default()
        },
        status: None,
    }
}

/// The phase of a machine; none if the machine does not exist.
pub fn phase(world: &World, name: &str) -> Option<Phase> {
    Some(world.shelf.get(name)?.status.unwrap_or_default().phase)
}
