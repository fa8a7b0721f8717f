//! The gRPC service for Karpenter's provider. It creates an `AzureFlexMachine` and waits for Azure's answer;
//! the leader creates the VM. So every replica can answer, and the loss of one loses no state.

mod messages;

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bringup_azure::clock::Clock;
use bringup_azure::{Arm, InstanceId, Priority, ProviderId};
use bringup_contract::Open;
use bringup_contract::flex::{FailureCause, FailureClass};
use bringup_flex::class::Class;
use bringup_flex::hash;
use bringup_flex::names;
use bringup_flex::offers::{self, NoOffer, Offer};
use bringup_flex::sizes;
use bringup_objects::flex::machine::{Failure, Phase};
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_objects::{MANAGER, Readable};
use bringup_runtime::unreadable::Unreadable;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::runtime::reflector::{ObjectRef, Store, reflector, store};
use kube::runtime::wait::await_condition;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use tonic::{Request, Response, Status};
use tracing::{info, warn};

use crate::grpc::refusal;
use crate::grpc::v1;
use crate::grpc::v1::provider_server::Provider;
use crate::inquiries::{Inquiries, exhausted_quota};
use crate::ledger::Ledger;
use crate::reconciler::Replica;
use crate::reconciler::classes::{is_ready, why_not_ready};

/// How long a call waits: the server ends every call after ten seconds.
const PATIENCE: Duration = Duration::from_secs(8);

/// The gRPC service for Karpenter's provider.
pub struct Service {
    client: Client,
    arm: Arm,
    clock: Arc<dyn Clock>,
    cluster: String,
    classes: Store<AzureFlexNodeClass>,
    ledger: Ledger,
    inquiries: Inquiries,
}

type Answer<T> = Result<Response<T>, Status>;

/// The status for a failed request to Kubernetes.
fn failed(what: &str, error: &kube::Error) -> Status {
    refusal::not_now(format!("{what}: {error}"))
}

impl Service {
    /// A service, and its watch of classes, which must run as long as the service does.
    pub fn new(
        client: Client,
        arm: Arm,
        clock: Arc<dyn Clock>,
        replica: &Replica,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (classes, writer) = store();
        let api: Api<Readable<AzureFlexNodeClass>> = Api::all(client.clone());
        let mut unreadable = Unreadable::default();
        let events = watcher(api, watcher::Config::default()).try_filter_map(move |event| {
            ready(Ok(unreadable.event(&AzureFlexNodeClass::kind(&()), event)))
        });
        let stream = reflector(writer, events.default_backoff());
        let watch = async move {
            let mut stream = std::pin::pin!(stream);
            while let Some(seen) = stream.next().await {
                if let Err(error) = seen {
                    warn!(%error, "watch of AzureFlexNodeClass failed; trying again");
                }
            }
        };
        let service = Self {
            ledger: Ledger::new(client.clone(), &replica.namespace),
            inquiries: Inquiries::new(arm.clone(), clock.clone()),
            cluster: replica.cluster.clone(),
            classes,
            client,
            arm,
            clock,
        };
        (service, watch)
    }

    fn machines(&self) -> Api<AzureFlexMachine> {
        Api::all(self.client.clone())
    }

    async fn class(&self, name: &str) -> Result<Option<Arc<AzureFlexNodeClass>>, Status> {
        let ready = tokio::time::timeout(PATIENCE, self.classes.wait_until_ready()).await;
        if !matches!(ready, Ok(Ok(()))) {
            return Err(refusal::not_now("AzureFlexNodeClasses have not been listed yet"));
        }
        Ok(self.classes.get(&ObjectRef::new(name)))
    }

    /// A class from which machines can be created.
    async fn ready_class(&self, name: &str) -> Result<Class, Status> {
        let class = self.class(name).await?;
        let class = class.ok_or_else(|| {
            refusal::class_not_ready(format!("AzureFlexNodeClass {name} does not exist"))
        })?;
        if !is_ready(&class) {
            return Err(refusal::class_not_ready(why_not_ready(&class)));
        }
        let meant = Class::of(&class.spec);
        meant.map_err(|_| refusal::class_not_ready(why_not_ready(&class)))
    }

    /// All offers of a class. An offer is not available if Azure has refused such VMs, or if the quota is too
    /// small.
    async fn offers(&self, class: &Class, name: &str) -> Result<Vec<Offer>, Status> {
        let content = self.ledger.read().await;
        let content = content.map_err(|error| failed("cannot read the ledger", &error))?;
        let quotas = self.inquiries.quotas(&class.subscription, &class.location).await;
        let mut offers = offers::offers(class, name, &content.back_off, self.clock.now());
        for offer in &mut offers {
            offer.available &= exhausted_quota(&quotas, offer.size, offer.capacity_type).is_none();
        }
        Ok(offers)
    }

    async fn chosen(&self, claim: &v1::Claim, class: &Class) -> Result<Offer, Status> {
        let requirements =
            messages::requirements(&claim.requirements).map_err(refusal::wrong_request)?;
        let needs = messages::needs(&claim.requests).map_err(refusal::wrong_request)?;
        let offers = self.offers(class, &claim.node_class).await?;
        match offers::choose(class, &offers, &requirements, needs) {
            Ok(offer) => Ok(offer),
            Err(none) => Err(refusal::of_failure(&self.why_none(claim, class, &none).await)),
        }
    }

    /// Why no offer is available: Azure's last refusal, or the exhausted quota.
    async fn why_none(&self, claim: &v1::Claim, class: &Class, none: &NoOffer) -> Failure {
        let plain = |cause: &str, message: String| Failure {
            class: FailureClass::Capacity.into(),
            cause: Open::parse(cause),
            arm_code: None,
            message,
        };
        let NoOffer::AllRefused(_, names) = none else {
            return plain("SkuUnavailable", none.to_string());
        };
        let content = self.ledger.read().await.unwrap_or_default();
        let quotas = self.inquiries.quotas(&class.subscription, &class.location).await;
        let now = self.clock.now();
        for size in names.split(", ").filter_map(sizes::find) {
            let zones = class.zones.iter().map(|zone| Some(zone.as_str())).chain([None]);
            for zone in zones {
                let request = offers::vm_request(class, &claim.node_class, size, zone);
                if let Some(entry) = content.back_off.blocks(&request, now) {
                    let message = format!(
                        "{none}; {} was refused last at {}, and is requested again after {}",
                        size.name, entry.last, entry.until
                    );
                    return Failure {
                        arm_code: entry.code.clone(),
                        ..plain(&entry.cause, message)
                    };
                }
            }
            if let Some(quota) = exhausted_quota(&quotas, size, class.capacity_type) {
                let message = format!(
                    "{} of {} processors of quota {} in {} are used, and {} needs {}",
                    quota.used, quota.limit, quota.name, class.location, size.name, size.cpus
                );
                return plain("QuotaExceeded", message);
            }
        }
        plain("SkuUnavailable", none.to_string())
    }

    /// Records in the ledger that a refused VM is requested again. Fails if another attempt is under way.
    async fn take_turn(
        &self,
        claim: &v1::Claim,
        class: &Class,
        offer: &Offer,
    ) -> Result<(), Status> {
        let taken = AtomicBool::new(false);
        let now = self.clock.now();
        let request =
            || offers::vm_request(class, &claim.node_class, offer.size, offer.zone.as_deref());
        let recorded = self.ledger.update(|content| {
            let is_taken = content.back_off.blocks(&request(), now).is_some();
            taken.store(is_taken, Ordering::Relaxed);
            !is_taken && content.back_off.attempted(&request(), now)
        });
        recorded.await.map_err(|error| failed("cannot write the ledger", &error))?;
        if taken.load(Ordering::Relaxed) {
            let none = NoOffer::AllRefused(1, offer.size.name.to_owned());
            return Err(refusal::of_failure(&self.why_none(claim, class, &none).await));
        }
        Ok(())
    }

    /// The machine of a claim, created if it does not exist.
    async fn machine_of(&self, claim: &v1::Claim) -> Result<AzureFlexMachine, Status> {
        let machines = self.machines();
        let known = machines.get_opt(&claim.name).await;
        let known = known.map_err(|error| failed("cannot read the machine", &error))?;
        if let Some(machine) = known {
            return self.existing_machine(machine, claim).await;
        }
        let class = self.ready_class(&claim.node_class).await?;
        let offer = self.chosen(claim, &class).await?;
        self.take_turn(claim, &class, &offer).await?;
        let machine = messages::machine(claim, &class, &offer, &self.cluster);
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), dry_run: false };
        match machines.create(&parameters, &machine).await {
            Ok(machine) => {
                info!(
                    claim = claim.name,
                    size = offer.size.name,
                    "creating AzureFlexMachine for NodeClaim"
                );
                Ok(machine)
            }
            Err(error) => Err(failed("cannot create the machine", &error)),
        }
    }

    /// Handles an existing machine under the name of the claim: the claim's own, or an earlier claim's.
    async fn existing_machine(
        &self,
        machine: AzureFlexMachine,
        claim: &v1::Claim,
    ) -> Result<AzureFlexMachine, Status> {
        let is_its = machine.spec.claim_ref.as_ref().is_some_and(|of| of.uid == claim.uid);
        if !is_its || machine.metadata.deletion_timestamp.is_some() {
            let what = format!("an earlier machine named {} is being deleted", claim.name);
            return Err(refusal::not_now(what));
        }
        let status = machine.status.clone().unwrap_or_default();
        // A machine that failed permanently is deleted once Azure holds none of its resources, so that the
        // next call creates another. A machine whose names belong to a foreign resource stays and reports
        // that failure: otherwise it would be created and deleted repeatedly.
        if let Some(failure) = status.failure.filter(|_| status.phase == Phase::Gone)
            && failure.class != FailureClass::Capacity
        {
            if failure.cause != FailureCause::ForeignResource {
                self.delete_machine(&machine).await?;
            }
            return Err(refusal::of_failure(&failure));
        }
        Ok(machine)
    }

    async fn delete_machine(&self, machine: &AzureFlexMachine) -> Result<(), Status> {
        let preconditions = Preconditions { uid: machine.uid(), resource_version: None };
        let parameters =
            DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.machines().delete(&machine.name_any(), &parameters).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(failed("cannot delete the machine", &error)),
        }
    }

    /// Waits until Azure has accepted or refused the VM.
    async fn accepted(&self, machine: AzureFlexMachine) -> Result<AzureFlexMachine, Status> {
        let decided = |machine: Option<&AzureFlexMachine>| {
            machine.is_none_or(|machine| {
                let status = machine.status.as_ref();
                machine.metadata.deletion_timestamp.is_some()
                    || status.is_some_and(|it| it.accepted_at.is_some() || it.failure.is_some())
            })
        };
        let name = machine.name_any();
        let waited =
            tokio::time::timeout(PATIENCE, await_condition(self.machines(), &name, decided)).await;
        match waited {
            Ok(Ok(Some(machine))) if machine.metadata.deletion_timestamp.is_none() => {
                let status = machine.status.clone().unwrap_or_default();
                match status.failure {
                    Some(failure) => Err(refusal::of_failure(&failure)),
                    None => Ok(machine),
                }
            }
            Ok(Ok(_)) => Err(refusal::not_now("the machine is being deleted")),
            Ok(Err(error)) => Err(refusal::not_now(format!("cannot watch the machine: {error}"))),
            Err(_) => {
                // The class may have become not ready meanwhile.
                self.ready_class(&machine.spec.node_class).await?;
                Err(refusal::not_now("Azure has not accepted the VM yet; bringup keeps trying"))
            }
        }
    }
}

#[tonic::async_trait]
impl Provider for Service {
    async fn create(&self, request: Request<v1::CreateRequest>) -> Answer<v1::CreateResponse> {
        let claim = request.into_inner().claim.unwrap_or_default();
        for (field, value) in
            [("name", &claim.name), ("uid", &claim.uid), ("node_class", &claim.node_class)]
        {
            if value.is_empty() {
                return Err(refusal::wrong_request(format!("claim.{field} is empty")));
            }
        }
        let machine = self.machine_of(&claim).await?;
        let machine = self.accepted(machine).await?;
        Ok(Response::new(v1::CreateResponse { instance: Some(messages::instance(&machine)) }))
    }

    async fn delete(&self, request: Request<v1::DeleteRequest>) -> Answer<v1::DeleteResponse> {
        let claim = request.into_inner().claim.unwrap_or_default();
        let machine = self.machines().get_opt(&claim.name).await;
        let machine = machine.map_err(|error| failed("cannot read the machine", &error))?;
        let its = machine.filter(|machine| {
            machine.spec.claim_ref.as_ref().is_some_and(|of| of.uid == claim.uid)
        });
        // The machine exists as long as Azure holds any of its resources.
        let machine = its.ok_or_else(|| {
            refusal::not_found(format!("no machine of NodeClaim {} is left", claim.name))
        })?;
        if machine.metadata.deletion_timestamp.is_none() {
            self.delete_machine(&machine).await?;
        }
        Ok(Response::new(v1::DeleteResponse {}))
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Answer<v1::GetResponse> {
        let provider_id = request.into_inner().provider_id;
        let id: ProviderId = provider_id
            .parse()
            .map_err(|error| refusal::wrong_request(format!("provider_id: {error}")))?;
        let InstanceId::VirtualMachine(vm) = &id.instance else {
            return Err(refusal::wrong_request("provider_id: it does not name a single VM"));
        };
        let known = self.machines().list(&ListParams::default()).await;
        let known = known.map_err(|error| failed("cannot list machines", &error))?;
        let machine = known.items.into_iter().find(|machine| {
            let known = machine.status.as_ref().and_then(|status| status.provider_id.as_deref());
            known.is_some_and(|known| known.parse::<ProviderId>().is_ok_and(|known| known == id))
        });
        let gone = || refusal::not_found(format!("{provider_id} does not exist"));
        match self.arm.virtual_machine(vm, Priority::Schedule).await {
            Ok(found) => {
                let instance = match &machine {
                    Some(machine) => messages::instance(machine),
                    // No machine owns this VM any more: the sweep deletes it.
                    None => v1::Instance {
                        provider_id,
                        claim: found.raw["tags"][names::CLAIM]
                            .as_str()
                            .unwrap_or_default()
                            .to_owned(),
                        deleting: true,
                        ..v1::Instance::default()
                    },
                };
                Ok(Response::new(v1::GetResponse { instance: Some(instance) }))
            }
            Err(error) if error.is_not_found() => match machine {
                // Azure may not show an accepted VM yet.
                Some(machine) if messages::is_coming(&machine) => {
                    let instance = Some(messages::instance(&machine));
                    Ok(Response::new(v1::GetResponse { instance }))
                }
                _ => Err(gone()),
            },
            Err(error) => Err(refusal::not_now(format!("cannot read the VM: {error}"))),
        }
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Answer<v1::ListResponse> {
        let known = self.machines().list(&ListParams::default()).await;
        let known = known.map_err(|error| failed("cannot list machines", &error))?;
        let living = known.items.iter().filter(|machine| {
            let status = machine.status.as_ref();
            machine.spec.claim_ref.is_some()
                && status.is_some_and(|it| it.provider_id.is_some() && it.phase != Phase::Gone)
        });
        let instances = living.map(messages::instance).collect();
        Ok(Response::new(v1::ListResponse { instances }))
    }

    async fn get_instance_types(
        &self,
        request: Request<v1::GetInstanceTypesRequest>,
    ) -> Answer<v1::GetInstanceTypesResponse> {
        let name = request.into_inner().node_class;
        let class = self.ready_class(&name).await?;
        let offers = self.offers(&class, &name).await?;
        let instance_types = messages::instance_types(&class, &offers);
        Ok(Response::new(v1::GetInstanceTypesResponse { instance_types }))
    }

    async fn is_drifted(
        &self,
        request: Request<v1::IsDriftedRequest>,
    ) -> Answer<v1::IsDriftedResponse> {
        let claim = request.into_inner().claim.unwrap_or_default();
        let class = self.class(&claim.node_class).await?;
        let class = class.and_then(|class| Class::of(&class.spec).ok());
        let annotation = |name: &str| claim.annotations.get(name).map(String::as_str);
        let (hash, version) = (annotation(hash::ANNOTATION), annotation(hash::VERSION_ANNOTATION));
        let reason = class.and_then(|class| hash::drift(&class, hash, version)).unwrap_or_default();
        Ok(Response::new(v1::IsDriftedResponse { reason: reason.to_owned() }))
    }
}
