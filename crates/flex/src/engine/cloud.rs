//! Azure by its own interface.

use std::sync::Arc;

use async_trait::async_trait;
use bringup_azure::arm::{Condition, PollError, Verb, Write};
use bringup_azure::error::ArmFailure;
use bringup_azure::operation::Started;
use bringup_azure::{Arm, OperationAddress, OperationState, Priority, ResourceId};
use bringup_contract::flex::FailureCause;
use bringup_objects::flex::machine::{AzureFlexMachine, Place};
use serde_json::Value;

use super::Cloud;
use super::proof::{Look, LookError, api_version, foreign_companion, foreign_holder, look};
use crate::bodies;
use crate::machine::{Ask, Told, Vm};
use crate::ownership::{Identity, holder, vm_id as vm_id_of};
use crate::sweep::Kind;
use crate::time::pause;
use crate::trouble::{Class, Trouble};

pub(crate) const COMPUTE: &str = "2024-11-01";
/// The version of the network provider's interface.
pub const NETWORK: &str = "2024-05-01";
pub(crate) const DISKS: &str = "2024-03-02";

/// What the guest is given to bootstrap with. It holds secrets, so it is made when it is needed and
/// kept nowhere.
#[async_trait]
pub trait Bootstrap: Send + Sync {
    /// CustomData, in base64; or why there is none.
    async fn custom_data(&self, machine: &AzureFlexMachine) -> Result<String, String>;

    /// Why a machine at this place could never join, if that is certain. It is asked before anything is
    /// made in Azure, and makes no token.
    async fn check(&self, _machine: &AzureFlexMachine, _place: &Place) -> Result<(), String> {
        Ok(())
    }
}

#[async_trait]
impl<B: Bootstrap> Bootstrap for Arc<B> {
    async fn custom_data(&self, machine: &AzureFlexMachine) -> Result<String, String> {
        (**self).custom_data(machine).await
    }

    async fn check(&self, machine: &AzureFlexMachine, place: &Place) -> Result<(), String> {
        (**self).check(machine, place).await
    }
}

/// Azure by its own interface.
pub struct ArmCloud<B> {
    arm: Arm,
    cluster: String,
    bootstrap: B,
}

impl<B: Bootstrap> ArmCloud<B> {
    /// The cluster's id goes into the tags of everything.
    pub fn new(arm: Arm, cluster: &str, bootstrap: B) -> Self {
        Self { arm, cluster: cluster.to_owned(), bootstrap }
    }

    async fn write(&self, write: Asked<'_>, spot: bool) -> Told {
        let Asked { verb, kind, id, query, body, condition } = write;
        let resource: ResourceId = match id.parse() {
            Ok(resource) => resource,
            Err(error) => return Told::Trouble(Trouble::request(&error.to_string())),
        };
        let api_version = api_version(kind);
        let write = Write { verb, resource: &resource, action: None, api_version, query, body };
        match self.arm.start_if(&write, condition).await {
            Ok(Started { status: 204 | 404, .. }) => Told::Absent,
            Ok(Started { operation: Ok(operation), retry_after, body, .. }) => {
                let ended = body.pointer("/properties/provisioningState").and_then(Value::as_str);
                let ended = ended.is_some_and(|state| state.eq_ignore_ascii_case("succeeded"));
                // A NIC often exists at once, and its operation need not be followed.
                let operation = operation.filter(|_| !(ended && verb == Verb::Put));
                Told::Accepted {
                    operation: operation.map(|address| address.to_store().to_owned()),
                    wait: pause(retry_after),
                    vm_id: vm_id_of(&body).map(str::to_owned),
                }
            }
            // It was accepted, and where to follow it is unknown: look at the resource.
            Ok(Started { operation: Err(_), .. }) => Told::Lost,
            Err(error) if error.is_not_found() && verb == Verb::Delete => Told::Absent,
            Err(error) => Told::Trouble(Trouble::of_error(&error, spot)),
        }
    }

    async fn poll(&self, machine: &AzureFlexMachine, spot: bool) -> Told {
        let call = machine.status.as_ref().and_then(|status| status.call.as_ref());
        let url = call.and_then(|call| call.operation_url.as_deref()).unwrap_or_default();
        let Ok(address) = OperationAddress::parse(url, self.arm.endpoint()) else {
            return Told::Lost;
        };
        match self.arm.poll(&address, Priority::Schedule).await {
            Ok(OperationState::Running { retry_after, .. }) => {
                Told::Running { wait: pause(retry_after) }
            }
            Ok(OperationState::Succeeded(_)) => Told::Done,
            Ok(OperationState::Failed(failure)) => preempted_or(&failure, spot),
            Ok(OperationState::Canceled(_) | OperationState::Expired)
            | Err(PollError::Address(_)) => Told::Lost,
            Err(PollError::Arm(error)) => Told::Trouble(Trouble::of_error(&error, spot)),
        }
    }

    async fn read(&self, place: &Place, identity: &Identity<'_>, spot: bool) -> Told {
        match look(&self.arm, Kind::Vm, &vm_id(place), identity).await {
            Ok(Look::Ours(vm)) => told_vm(&vm, spot),
            Ok(Look::Foreign(what)) => Told::Foreign(what),
            Ok(Look::Unseen) => Told::Absent,
            Err(error) => trouble(&error, spot),
        }
    }

    /// Makes the NIC, unless something is there under its name.
    async fn put_nic(&self, machine: &AzureFlexMachine, place: &Place, spot: bool) -> Told {
        let (id, identity) = (nic_id(place), self.identity(machine, place));
        match look(&self.arm, Kind::Nic, &id, &identity).await {
            Err(error) => return trouble(&error, spot),
            Ok(Look::Foreign(what)) => return Told::Foreign(what),
            Ok(Look::Unseen) => {}
            Ok(Look::Ours(nic)) => {
                if let Some(told) = self.used((Kind::Nic, &id, &nic), place, &identity, spot).await
                {
                    return told;
                }
                let state = nic.pointer("/properties/provisioningState").and_then(Value::as_str);
                match state.unwrap_or_default().to_ascii_lowercase().as_str() {
                    "succeeded" => return Told::Done,
                    // Its creation has failed: it is made anew.
                    "failed" => {}
                    _ => return Told::Running { wait: None },
                }
                let etag = nic["etag"].as_str().map(Condition::Unchanged);
                return self.send_nic(machine, place, etag, spot).await;
            }
        }
        self.send_nic(machine, place, Some(Condition::Absent), spot).await
    }

    async fn send_nic(
        &self,
        machine: &AzureFlexMachine,
        place: &Place,
        condition: Option<Condition<'_>>,
        spot: bool,
    ) -> Told {
        let body = bodies::nic(place, &bodies::tags(machine, place, &self.cluster));
        let id = nic_id(place);
        self.write(Asked::put(Kind::Nic, &id, &body, condition), spot).await
    }

    /// Makes the VM, unless something is there under its name. Its NIC must be ours, and no disk may
    /// have the name of its disk: both go with it when it is deleted.
    async fn put_vm(&self, machine: &AzureFlexMachine, place: &Place, spot: bool) -> Told {
        let identity = self.identity(machine, place);
        let (vm, nic, disk) = (vm_id(place), nic_id(place), disk_id(place));
        match look(&self.arm, Kind::Vm, &vm, &identity).await {
            Err(error) => return trouble(&error, spot),
            Ok(Look::Foreign(what)) => return Told::Foreign(what),
            Ok(Look::Ours(vm)) => return told_vm(&vm, spot),
            Ok(Look::Unseen) => {}
        }
        match look(&self.arm, Kind::Nic, &nic, &identity).await {
            Err(error) => return trouble(&error, spot),
            Ok(Look::Foreign(what)) => return Told::Foreign(what),
            Ok(Look::Unseen) => return Told::Unseen,
            Ok(Look::Ours(body)) => {
                if let Some(told) =
                    self.used((Kind::Nic, &nic, &body), place, &identity, spot).await
                {
                    return told;
                }
            }
        }
        match look(&self.arm, Kind::Disk, &disk, &identity).await {
            Err(error) => return trouble(&error, spot),
            Ok(Look::Foreign(what)) => return Told::Foreign(what),
            Ok(Look::Ours(_)) => {
                let what = format!("disk {disk} of an earlier attempt still exists");
                return Told::Failed(Trouble::transient(&what));
            }
            Ok(Look::Unseen) => {}
        }
        let custom_data = match self.bootstrap.custom_data(machine).await {
            Ok(custom_data) => custom_data,
            Err(why) => return Told::Trouble(Trouble::transient(&why)),
        };
        let tags = bodies::tags(machine, place, &self.cluster);
        let body = bodies::vm(machine, place, &tags, &custom_data);
        let asked = Asked::put(Kind::Vm, &vm, &body, Some(Condition::Absent));
        self.write(asked, spot).await
    }

    /// Deletes a resource that was just proven to be ours.
    async fn delete(
        &self,
        kind: Kind,
        machine: &AzureFlexMachine,
        place: &Place,
        spot: bool,
    ) -> Told {
        let identity = self.identity(machine, place);
        let id = match kind {
            Kind::Vm => vm_id(place),
            Kind::Nic => nic_id(place),
            Kind::Disk => disk_id(place),
        };
        let body = match look(&self.arm, kind, &id, &identity).await {
            Err(error) => return trouble(&error, spot),
            Ok(Look::Unseen) => return Told::Unseen,
            Ok(Look::Foreign(what)) => return Told::Foreign(what),
            Ok(Look::Ours(body)) => body,
        };
        let told = match kind {
            Kind::Vm => match foreign_companion(&self.arm, &body, &identity).await {
                Ok(found) => found.map(Told::Foreign),
                Err(error) => Some(trouble(&error, spot)),
            },
            Kind::Nic | Kind::Disk => self.used((kind, &id, &body), place, &identity, spot).await,
        };
        let told = match told {
            None if holder(kind, &body).is_some() => {
                self.kept(machine, place, &identity, spot).await
            }
            told => told,
        };
        match told {
            Some(told) => told,
            None => self.write(Asked::delete(kind, &id, &body), spot).await,
        }
    }

    /// What is told where a foreign VM uses a NIC or a disk of ours; none: no foreign one does.
    async fn used(
        &self,
        resource: (Kind, &str, &Value),
        place: &Place,
        identity: &Identity<'_>,
        spot: bool,
    ) -> Option<Told> {
        match foreign_holder(&self.arm, resource, &vm_id(place), identity).await {
            Ok(found) => found.map(Told::Foreign),
            Err(error) => Some(trouble(&error, spot)),
        }
    }

    /// What is told of a NIC or disk whose VM is kept because something foreign would go with it: it is
    /// kept too. None: the VM is not kept.
    async fn kept(
        &self,
        machine: &AzureFlexMachine,
        place: &Place,
        identity: &Identity<'_>,
        spot: bool,
    ) -> Option<Told> {
        let failure = machine.status.as_ref().and_then(|status| status.failure.as_ref());
        failure.filter(|failure| failure.cause == FailureCause::ForeignResource)?;
        match look(&self.arm, Kind::Vm, &vm_id(place), identity).await {
            Ok(Look::Ours(_)) => Some(Told::Foreign(format!("{} is kept", vm_id(place)))),
            Ok(Look::Unseen | Look::Foreign(_)) => None,
            Err(error) => Some(trouble(&error, spot)),
        }
    }

    fn identity<'a>(&'a self, machine: &'a AzureFlexMachine, place: &'a Place) -> Identity<'a> {
        let status = machine.status.as_ref();
        Identity {
            cluster: &self.cluster,
            machine: machine.metadata.name.as_deref().unwrap_or_default(),
            uid: place.machine_uid.as_deref(),
            vm_id: status.and_then(|status| status.vm_id.as_deref()),
        }
    }
}

/// A write that is asked for.
pub(super) struct Asked<'a> {
    verb: Verb,
    kind: Kind,
    id: &'a str,
    query: &'a [(&'a str, &'a str)],
    body: Option<&'a Value>,
    condition: Option<Condition<'a>>,
}

impl<'a> Asked<'a> {
    fn put(kind: Kind, id: &'a str, body: &'a Value, condition: Option<Condition<'a>>) -> Self {
        Self { verb: Verb::Put, kind, id, query: &[], body: Some(body), condition }
    }

    /// `read` is the resource as it was just read: one that has changed since is not deleted, where
    /// Azure knows such conditions.
    fn delete(kind: Kind, id: &'a str, read: &'a Value) -> Self {
        let (query, condition) = deletion(kind, read);
        Self { verb: Verb::Delete, kind, id, query, body: None, condition }
    }
}

/// How a resource is deleted that was just read: with which parameters, and on which condition. The
/// deletion of VMs and disks knows no conditions.
pub(super) fn deletion(
    kind: Kind,
    read: &Value,
) -> (&'static [(&'static str, &'static str)], Option<Condition<'_>>) {
    match kind {
        Kind::Vm => (&[("forceDeletion", "true")], None),
        Kind::Nic => (&[], read["etag"].as_str().map(Condition::Unchanged)),
        Kind::Disk => (&[], None),
    }
}

fn trouble(error: &LookError, spot: bool) -> Told {
    Told::Trouble(match error {
        LookError::Id(why) => Trouble::request(why),
        LookError::Arm(error) => Trouble::of_error(error, spot),
    })
}

fn told_vm(vm: &Value, spot: bool) -> Told {
    let word = vm.pointer("/properties/provisioningState").and_then(Value::as_str);
    let state = match word.unwrap_or_default().to_ascii_lowercase().as_str() {
        "succeeded" => Vm::Succeeded,
        "failed" => Vm::Failed(Trouble::of_failure(&failure(vm), spot)),
        "deleting" => Vm::Deleting,
        _ => Vm::Underway,
    };
    Told::Vm { state, id: vm_id_of(vm).map(str::to_owned) }
}

#[async_trait]
impl<B: Bootstrap> Cloud for ArmCloud<B> {
    async fn ask(&self, ask: Ask, machine: &AzureFlexMachine, place: &Place) -> Told {
        let spot = machine.spec.is_spot();
        match ask {
            Ask::Poll => self.poll(machine, spot).await,
            Ask::ReadVm => self.read(place, &self.identity(machine, place), spot).await,
            Ask::PutNic => self.put_nic(machine, place, spot).await,
            Ask::PutVm => self.put_vm(machine, place, spot).await,
            Ask::DeleteVm => self.delete(Kind::Vm, machine, place, spot).await,
            Ask::DeleteNic => self.delete(Kind::Nic, machine, place, spot).await,
            Ask::DeleteDisk => self.delete(Kind::Disk, machine, place, spot).await,
        }
    }
}

fn under(place: &Place, kind: &str, name: &str) -> String {
    let (subscription, group) = (&place.subscription_id, &place.resource_group);
    format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{kind}/{name}")
}

/// The id of a machine's VM.
pub fn vm_id(place: &Place) -> String {
    under(place, "Microsoft.Compute/virtualMachines", &place.vm)
}

/// The id of its NIC.
pub fn nic_id(place: &Place) -> String {
    under(place, "Microsoft.Network/networkInterfaces", &place.nic)
}

fn disk_id(place: &Place) -> String {
    under(place, "Microsoft.Compute/disks", &place.disk)
}

/// An operation that something newer took the place of did not fail.
fn preempted_or(failure: &ArmFailure, spot: bool) -> Told {
    let trouble = Trouble::of_failure(failure, spot);
    match trouble.class {
        Class::Conflict if trouble.code.as_deref() == Some("OperationPreempted") => Told::Lost,
        _ => Told::Failed(trouble),
    }
}

/// What the platform says of a VM that failed: the code stands at the end of the status.
fn failure(raw: &Value) -> ArmFailure {
    let statuses = raw.pointer("/properties/instanceView/statuses").and_then(Value::as_array);
    let mut failed = statuses.into_iter().flatten().filter_map(|status| {
        let code = status["code"].as_str()?.strip_prefix("ProvisioningState/failed/")?;
        Some(ArmFailure {
            code: Some(code.to_owned()),
            message: status["message"].as_str().map(str::to_owned),
            ..ArmFailure::default()
        })
    });
    failed.next().unwrap_or_default()
}
