//! A test bed with a flex controller, and what its tests create.

use std::ops::Deref;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bringup_azure_sim::azure::Azure;
use bringup_azure_sim::clock::Pace;
use bringup_end_to_end::flex_controller::{FlexController, replica};
use bringup_end_to_end::request_counter::RequestCounter;
use bringup_end_to_end::simulated_clock::SimulatedClock;
use bringup_end_to_end::test_bed::Builder;
use bringup_end_to_end::{TestBed, arm};
use bringup_objects::NodeClaim;
use bringup_objects::condition::find;
use bringup_objects::flex::machine::{ClaimReference, Phase};
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_provision::Service;
use bringup_provision::grpc::listen::{Address, GrpcListener};
use bringup_provision::grpc::v1::provider_client::ProviderClient;
use bringup_provision::grpc::v1::provider_server::ProviderServer;
use bringup_testbed::wait::until_object;
use hyper_util::rt::TokioIo;
use jiff::SignedDuration;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint};

pub(crate) use bringup_end_to_end::{SUBNET, SUBSCRIPTION};

/// The subnet of the class in the region of the tests.
pub(crate) const REGION: &str = "subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/24}]";

/// A test bed with a flex controller. In its Azure a minute takes a second.
pub(crate) struct FlexBed {
    bed: TestBed,
    flex_controller: Option<FlexController>,
}

impl Deref for FlexBed {
    type Target = TestBed;

    fn deref(&self) -> &TestBed {
        &self.bed
    }
}

impl FlexBed {
    /// A test bed with a small subnet, and the rest of `scenario`.
    pub(crate) async fn new(scenario: &str) -> Result<Self> {
        let scenario = format!("{REGION}\n{scenario}");
        Self::with(TestBed::builder().scenario(&scenario).pace(Pace::Times(60.0))).await
    }

    /// A test bed with these options.
    pub(crate) async fn with(builder: Builder) -> Result<Self> {
        // Azure's clock runs faster than the API server's and starts far behind it. If it overtook the
        // API server's clock, claims would be old as soon as they are created.
        let builder = builder.flex().without_nodes().behind(SignedDuration::from_hours(24 * 30));
        let bed = builder.start().await?;
        let flex_controller = Some(FlexController::start(bed.client.clone(), &bed.azure));
        Ok(Self { bed, flex_controller })
    }

    /// Kills the machine controller, and starts another one.
    pub(crate) fn restart(&mut self) {
        drop(self.flex_controller.take());
        self.flex_controller = Some(FlexController::start(self.client.clone(), &self.azure));
    }

    /// Does the same as `restart`, with a controller whose requests to the API server are counted.
    pub(crate) fn restart_counted(&mut self, counter: &RequestCounter) -> Result<()> {
        drop(self.flex_controller.take());
        let client = counter.client(self.control_plane().admin().config())?;
        self.flex_controller = Some(FlexController::start(client, &self.azure));
        Ok(())
    }

    /// Whether the machine controller has ended, which must never happen.
    pub(crate) fn is_finished(&self) -> bool {
        self.flex_controller.as_ref().is_none_or(FlexController::is_finished)
    }

    /// Stops the machine controller.
    pub(crate) fn stop(&mut self) {
        drop(self.flex_controller.take());
    }

    /// Does what Karpenter does when the Node of a claim exists.
    pub(crate) async fn register(&self, claim: &str, id: &str) -> Result<()> {
        let registered = json!({
            "type": "Registered", "status": "True", "reason": "Registered", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status = json!({ "providerID": id, "imageID": "ubuntu", "conditions": [registered] });
        let (parameters, patch) =
            (PatchParams::default(), Patch::Merge(json!({ "status": status })));
        self.claims().patch_status(claim, &parameters, &patch).await?;
        Ok(())
    }

    /// A client of the gRPC service that Karpenter's provider calls, over a real socket. The service runs
    /// as long as the runtime of the test.
    pub(crate) async fn provider(&self) -> Result<ProviderClient<Channel>> {
        let clock = Arc::new(SimulatedClock(self.azure.clone()));
        let arm = arm::client(&self.azure, "flex");
        let (service, watch) = Service::new(self.client.clone(), arm, clock, &replica());
        let path = self.directory().join("provider.sock");
        let listener = GrpcListener::bind(Address::Unix(path.clone()), None).await?;
        let routes = Routes::new(ProviderServer::new(service));
        tokio::spawn(watch);
        tokio::spawn(listener.serve(routes, std::future::pending()));
        let connector = tower::service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_static("http://bringup");
        let channel = endpoint.connect_with_connector(connector).await;
        Ok(ProviderClient::new(channel.context("connect to the gRPC provider")?))
    }

    pub(crate) fn classes(&self) -> Api<AzureFlexNodeClass> {
        Api::all(self.client.clone())
    }

    pub(crate) fn machines(&self) -> Api<AzureFlexMachine> {
        Api::all(self.client.clone())
    }

    pub(crate) async fn create_class(&self, class: &Value) -> Result<()> {
        let class = serde_json::from_value(class.clone())?;
        self.classes().create(&PostParams::default(), &class).await.context("create the class")?;
        Ok(())
    }

    /// Creates a class, and waits until it is ready.
    pub(crate) async fn ready_class(&self, name: &str) -> Result<AzureFlexNodeClass> {
        self.create_class(&class(name)).await?;
        let ready = condition_is("Ready", "True");
        let class = until_object(self.classes(), name, "a class that is ready", ready).await?;
        class.context("the class is there")
    }

    pub(crate) async fn create_machine(&self, machine: &AzureFlexMachine) -> Result<()> {
        self.machines()
            .create(&PostParams::default(), machine)
            .await
            .context("create a machine")?;
        Ok(())
    }

    /// Creates a claim, and returns its uid.
    pub(crate) async fn claim(&self, name: &str, class: &str) -> Result<String> {
        let claim = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": { "name": name },
            "spec": {
                "nodeClassRef": { "group": "flex.aks.azure.com", "kind": "AzureFlexNodeClass", "name": class },
                "requirements": [],
            },
        });
        // bringup's own type for a claim lacks fields that the API server requires.
        let resource = ApiResource::erase::<NodeClaim>(&());
        let claims: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let claim: DynamicObject = serde_json::from_value(claim)?;
        let claim = claims.create(&PostParams::default(), &claim).await;
        Ok(claim.context("create a claim")?.uid().unwrap_or_default())
    }

    /// Creates a claim, and a machine for it.
    pub(crate) async fn claimed_machine(&self, name: &str, class: &str, size: &str) -> Result<()> {
        let mut machine = machine(name, class, size)?;
        let uid = self.claim(name, class).await?;
        machine.spec.claim_ref = Some(ClaimReference { name: name.to_owned(), uid });
        self.create_machine(&machine).await
    }

    pub(crate) async fn machine_in(&self, name: &str, phase: Phase) -> Result<AzureFlexMachine> {
        let there = move |machine: Option<&AzureFlexMachine>| {
            machine.and_then(|one| one.status.as_ref()).is_some_and(|status| status.phase == phase)
        };
        let what = format!("{name} in {phase:?}");
        let found = until_object(self.machines(), name, what, there).await?;
        found.context("the machine is there")
    }

    /// The sorted names of a machine's VM, NIC and disk, and of `others`.
    pub(crate) async fn names_of(&self, machine: &str, others: &[&str]) -> Result<Vec<String>> {
        let machine = self.machines().get(machine).await?;
        let place = machine.status.and_then(|it| it.place).context("it has a place")?;
        let mut all: Vec<String> = others.iter().map(|name| (*name).to_owned()).collect();
        all.extend([place.vm, place.nic, place.disk]);
        all.sort_unstable();
        Ok(all)
    }

    /// Does what Karpenter does when a machine is accepted: writes the machine's id to the claim.
    pub(crate) async fn launch(&self, claim: &str) -> Result<()> {
        let machine = self.machines().get(claim).await?;
        let id = machine.status.and_then(|status| status.provider_id).context("it has an id")?;
        let status = json!({ "status": { "providerID": id, "imageID": "ubuntu" } });
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(status));
        self.claims().patch_status(claim, &parameters, &patch).await?;
        Ok(())
    }

    /// The names of all resources in Azure.
    pub(crate) fn held(&self) -> Vec<String> {
        self.azure.with(names)
    }

    /// Waits until Azure holds exactly these resources.
    pub(crate) async fn until_held(&self, wanted: &[&str]) -> Result<()> {
        let what = format!("Azure to hold {wanted:?}");
        self.azure_when(&what, names, |held| *held == wanted).await.map(drop)
    }

    /// A NIC of another owner, with these tags.
    pub(crate) fn put_nic(&self, group: &str, name: &str, cluster: &str) -> Result<()> {
        let path = format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Network/networkInterfaces/{name}?api-version=2024-05-01"
        );
        let body = json!({
            "location": "eastus2",
            "tags": { "bringup-managed-by": "bringup", "bringup-cluster": cluster, "bringup-machine": "forgotten" },
            "properties": { "ipConfigurations": [{ "name": "ip", "properties": { "subnet": { "id": SUBNET } } }] },
        });
        self.arm().put(&path, &body).map(drop)
    }
}

pub(crate) fn class(name: &str) -> Value {
    json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexNodeClass",
        "metadata": { "name": name },
        "spec": {
            "subscriptionID": SUBSCRIPTION,
            "location": "East US 2",
            "resourceGroup": "rg-flex",
            "subnetID": SUBNET,
        },
    })
}

pub(crate) fn machine(name: &str, class: &str, size: &str) -> Result<AzureFlexMachine> {
    let object = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexMachine",
        "metadata": { "name": name },
        "spec": { "nodeClass": class, "vmSize": size },
    });
    serde_json::from_value(object).context("read the machine")
}

/// The sorted names of all resources in Azure.
fn names(azure: &mut Azure) -> Vec<String> {
    let all = azure.resources();
    let names = all.iter().filter_map(|one| one.id.rsplit('/').next().map(str::to_owned));
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

pub(crate) fn condition_is(
    kind: &str,
    status: &str,
) -> impl Fn(Option<&AzureFlexNodeClass>) -> bool {
    move |class: Option<&AzureFlexNodeClass>| {
        let known = class.and_then(|class| class.status.as_ref());
        known.is_some_and(|known| {
            find(&known.conditions, kind).is_some_and(|found| found.status == status)
        })
    }
}
