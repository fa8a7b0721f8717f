//! Requests to Azure through ARM: a read that proves ownership precedes every write and every deletion.

use async_trait::async_trait;
use bringup_azure::arm::{Condition, PollError, Verb, Write};
use bringup_azure::error::ArmFailure;
use bringup_azure::operation::Started;
use bringup_azure::{Arm, OperationAddress, OperationState, Priority, ResourceId};
use bringup_contract::flex::FailureCause;
use bringup_objects::flex::machine::{AzureFlexMachine, Place};
use serde_json::Value;

use super::interfaces::{Bootstrap, Cloud};
use super::kinds::{api_version, deletion};
use super::proof::{Proof, ReadError, foreign_companion, foreign_holder, prove};
use crate::bodies;
use crate::ids::{disk_id, nic_id, vm_id};
use crate::machine::{Answer, Request, Vm};
use crate::ownership::{Identity, holder, vm_id as vm_id_of};
use crate::sweep::Kind;
use crate::time::pause;
use crate::trouble::{Class, Trouble};

/// Sends requests to Azure through ARM.
pub struct ArmCloud<B> {
    arm: Arm,
    cluster: String,
    bootstrap: B,
}

impl<B: Bootstrap> ArmCloud<B> {
    /// For the machines of a cluster. The cluster's ID is in the tags of every resource.
    pub fn new(arm: Arm, cluster: &str, bootstrap: B) -> Self {
        Self { arm, cluster: cluster.to_owned(), bootstrap }
    }

    async fn write(&self, write: ResourceWrite<'_>, spot: bool) -> Answer {
        let ResourceWrite { verb, kind, id, query, body, condition } = write;
        let resource: ResourceId = match id.parse() {
            Ok(resource) => resource,
            Err(error) => return Answer::Trouble(Trouble::request(&error.to_string())),
        };
        let api_version = api_version(kind);
        let write = Write { verb, resource: &resource, action: None, api_version, query, body };
        match self.arm.start_if(&write, condition).await {
            Ok(Started { status: 204 | 404, .. }) => Answer::Absent,
            Ok(Started { operation: Ok(operation), retry_after, body, .. }) => {
                let ended = body.pointer("/properties/provisioningState").and_then(Value::as_str);
                let ended = ended.is_some_and(|state| state.eq_ignore_ascii_case("succeeded"));
                // A NIC often exists at once, so its operation need not be polled.
                let operation = operation.filter(|_| !(ended && verb == Verb::Put));
                Answer::Accepted {
                    operation: operation.map(|address| address.to_store().to_owned()),
                    wait: pause(retry_after),
                    vm_id: vm_id_of(&body).map(str::to_owned),
                }
            }
            // Azure accepted the request, but its operation is unknown: the resource must be read.
            Ok(Started { operation: Err(_), .. }) => Answer::Lost,
            Err(error) if error.is_not_found() && verb == Verb::Delete => Answer::Absent,
            Err(error) => Answer::Trouble(Trouble::of_error(&error, spot)),
        }
    }

    async fn poll(&self, machine: &AzureFlexMachine, spot: bool) -> Answer {
        let call = machine.status.as_ref().and_then(|status| status.call.as_ref());
        let url = call.and_then(|call| call.operation_url.as_deref()).unwrap_or_default();
        let Ok(address) = OperationAddress::parse(url, self.arm.endpoint()) else {
            return Answer::Lost;
        };
        match self.arm.poll(&address, Priority::Schedule).await {
            Ok(OperationState::Running { retry_after, .. }) => {
                Answer::Running { wait: pause(retry_after) }
            }
            Ok(OperationState::Succeeded(_)) => Answer::Done,
            Ok(OperationState::Failed(failure)) => preempted_or(&failure, spot),
            Ok(OperationState::Canceled(_) | OperationState::Expired)
            | Err(PollError::Address(_)) => Answer::Lost,
            Err(PollError::Arm(error)) => Answer::Trouble(Trouble::of_error(&error, spot)),
        }
    }

    async fn read(&self, place: &Place, identity: &Identity<'_>, spot: bool) -> Answer {
        match prove(&self.arm, Kind::Vm, &vm_id(place), identity).await {
            Ok(Proof::Ours(vm)) => vm_answer(&vm, spot),
            Ok(Proof::Foreign(what)) => Answer::Foreign(what),
            Ok(Proof::Unseen) => Answer::Absent,
            Err(error) => read_error(&error, spot),
        }
    }

    /// Creates the NIC, unless a resource with its name exists.
    async fn put_nic(&self, machine: &AzureFlexMachine, place: &Place, spot: bool) -> Answer {
        let (id, identity) = (nic_id(place), self.identity(machine, place));
        match prove(&self.arm, Kind::Nic, &id, &identity).await {
            Err(error) => return read_error(&error, spot),
            Ok(Proof::Foreign(what)) => return Answer::Foreign(what),
            Ok(Proof::Unseen) => {}
            Ok(Proof::Ours(nic)) => {
                let nic_of_id = (Kind::Nic, id.as_str(), &nic);
                if let Some(answer) = self.foreign_use(nic_of_id, place, &identity, spot).await {
                    return answer;
                }
                let state = nic.pointer("/properties/provisioningState").and_then(Value::as_str);
                match state.unwrap_or_default().to_ascii_lowercase().as_str() {
                    "succeeded" => return Answer::Done,
                    // The creation of the NIC failed, so it is created again.
                    "failed" => {}
                    _ => return Answer::Running { wait: None },
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
    ) -> Answer {
        let body = bodies::nic(place, &bodies::tags(machine, place, &self.cluster));
        let id = nic_id(place);
        self.write(ResourceWrite::put(Kind::Nic, &id, &body, condition), spot).await
    }

    /// Creates the VM, unless a resource with its name exists. The NIC must be ours, and no disk may have the
    /// name of the VM's disk, because Azure deletes both with the VM.
    async fn put_vm(&self, machine: &AzureFlexMachine, place: &Place, spot: bool) -> Answer {
        let identity = self.identity(machine, place);
        let (vm, nic, disk) = (vm_id(place), nic_id(place), disk_id(place));
        match prove(&self.arm, Kind::Vm, &vm, &identity).await {
            Err(error) => return read_error(&error, spot),
            Ok(Proof::Foreign(what)) => return Answer::Foreign(what),
            Ok(Proof::Ours(vm)) => return vm_answer(&vm, spot),
            Ok(Proof::Unseen) => {}
        }
        match prove(&self.arm, Kind::Nic, &nic, &identity).await {
            Err(error) => return read_error(&error, spot),
            Ok(Proof::Foreign(what)) => return Answer::Foreign(what),
            Ok(Proof::Unseen) => return Answer::Unseen,
            Ok(Proof::Ours(body)) => {
                let nic_of_id = (Kind::Nic, nic.as_str(), &body);
                if let Some(answer) = self.foreign_use(nic_of_id, place, &identity, spot).await {
                    return answer;
                }
            }
        }
        match prove(&self.arm, Kind::Disk, &disk, &identity).await {
            Err(error) => return read_error(&error, spot),
            Ok(Proof::Foreign(what)) => return Answer::Foreign(what),
            Ok(Proof::Ours(_)) => {
                let what = format!("disk {disk} of an earlier attempt still exists");
                return Answer::Failed(Trouble::transient(&what));
            }
            Ok(Proof::Unseen) => {}
        }
        let custom_data = match self.bootstrap.custom_data(machine).await {
            Ok(custom_data) => custom_data,
            Err(why) => return Answer::Trouble(Trouble::transient(&why)),
        };
        let tags = bodies::tags(machine, place, &self.cluster);
        let body = bodies::vm(machine, place, &tags, &custom_data);
        let put = ResourceWrite::put(Kind::Vm, &vm, &body, Some(Condition::Absent));
        self.write(put, spot).await
    }

    /// Deletes a resource that was just proven to be ours.
    async fn delete(
        &self,
        kind: Kind,
        machine: &AzureFlexMachine,
        place: &Place,
        spot: bool,
    ) -> Answer {
        let identity = self.identity(machine, place);
        let id = match kind {
            Kind::Vm => vm_id(place),
            Kind::Nic => nic_id(place),
            Kind::Disk => disk_id(place),
        };
        let body = match prove(&self.arm, kind, &id, &identity).await {
            Err(error) => return read_error(&error, spot),
            Ok(Proof::Unseen) => return Answer::Unseen,
            Ok(Proof::Foreign(what)) => return Answer::Foreign(what),
            Ok(Proof::Ours(body)) => body,
        };
        let refusal = match kind {
            Kind::Vm => match foreign_companion(&self.arm, &body, &identity).await {
                Ok(found) => found.map(Answer::Foreign),
                Err(error) => Some(read_error(&error, spot)),
            },
            Kind::Nic | Kind::Disk => {
                self.foreign_use((kind, &id, &body), place, &identity, spot).await
            }
        };
        let refusal = match refusal {
            None if holder(kind, &body).is_some() => {
                self.kept_with_vm(machine, place, &identity, spot).await
            }
            refusal => refusal,
        };
        match refusal {
            Some(answer) => answer,
            None => self.write(ResourceWrite::delete(kind, &id, &body), spot).await,
        }
    }

    /// The answer if a foreign VM uses a NIC or disk of ours; none if no foreign VM does.
    async fn foreign_use(
        &self,
        resource: (Kind, &str, &Value),
        place: &Place,
        identity: &Identity<'_>,
        spot: bool,
    ) -> Option<Answer> {
        match foreign_holder(&self.arm, resource, &vm_id(place), identity).await {
            Ok(found) => found.map(Answer::Foreign),
            Err(error) => Some(read_error(&error, spot)),
        }
    }

    /// The answer for a NIC or disk whose VM must not be deleted, because Azure would delete a foreign
    /// resource with the VM: then the NIC or disk is not deleted either. None if the VM may be deleted.
    async fn kept_with_vm(
        &self,
        machine: &AzureFlexMachine,
        place: &Place,
        identity: &Identity<'_>,
        spot: bool,
    ) -> Option<Answer> {
        let failure = machine.status.as_ref().and_then(|status| status.failure.as_ref());
        failure.filter(|failure| failure.cause == FailureCause::ForeignResource)?;
        match prove(&self.arm, Kind::Vm, &vm_id(place), identity).await {
            Ok(Proof::Ours(_)) => Some(Answer::Foreign(format!(
                "VM {} is kept, and so is what it uses",
                vm_id(place)
            ))),
            Ok(Proof::Unseen | Proof::Foreign(_)) => None,
            Err(error) => Some(read_error(&error, spot)),
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

/// A write to a resource, before its ID is parsed.
pub(super) struct ResourceWrite<'a> {
    verb: Verb,
    kind: Kind,
    id: &'a str,
    query: &'a [(&'a str, &'a str)],
    body: Option<&'a Value>,
    condition: Option<Condition<'a>>,
}

impl<'a> ResourceWrite<'a> {
    fn put(kind: Kind, id: &'a str, body: &'a Value, condition: Option<Condition<'a>>) -> Self {
        Self { verb: Verb::Put, kind, id, query: &[], body: Some(body), condition }
    }

    /// `read` is the resource as just read: if the resource has changed since, Azure refuses the deletion,
    /// for kinds that support such a condition.
    fn delete(kind: Kind, id: &'a str, read: &'a Value) -> Self {
        let (query, condition) = deletion(kind, read);
        Self { verb: Verb::Delete, kind, id, query, body: None, condition }
    }
}

fn read_error(error: &ReadError, spot: bool) -> Answer {
    Answer::Trouble(match error {
        ReadError::Id(why) => Trouble::request(why),
        ReadError::Arm(error) => Trouble::of_error(error, spot),
    })
}

fn vm_answer(vm: &Value, spot: bool) -> Answer {
    let word = vm.pointer("/properties/provisioningState").and_then(Value::as_str);
    let state = match word.unwrap_or_default().to_ascii_lowercase().as_str() {
        "succeeded" => Vm::Succeeded,
        "failed" => Vm::Failed(Trouble::of_failure(&failure(vm), spot)),
        "deleting" => Vm::Deleting,
        _ => Vm::Underway,
    };
    Answer::Vm { state, id: vm_id_of(vm).map(str::to_owned) }
}

#[async_trait]
impl<B: Bootstrap> Cloud for ArmCloud<B> {
    async fn send(&self, request: Request, machine: &AzureFlexMachine, place: &Place) -> Answer {
        let spot = machine.spec.is_spot();
        match request {
            Request::Poll => self.poll(machine, spot).await,
            Request::ReadVm => self.read(place, &self.identity(machine, place), spot).await,
            Request::PutNic => self.put_nic(machine, place, spot).await,
            Request::PutVm => self.put_vm(machine, place, spot).await,
            Request::DeleteVm => self.delete(Kind::Vm, machine, place, spot).await,
            Request::DeleteNic => self.delete(Kind::Nic, machine, place, spot).await,
            Request::DeleteDisk => self.delete(Kind::Disk, machine, place, spot).await,
        }
    }
}

/// An operation that a newer one replaced did not fail.
fn preempted_or(failure: &ArmFailure, spot: bool) -> Answer {
    let trouble = Trouble::of_failure(failure, spot);
    match trouble.class {
        Class::Conflict if trouble.code.as_deref() == Some("OperationPreempted") => Answer::Lost,
        _ => Answer::Failed(trouble),
    }
}

/// The failure in a VM's instance view: the error code is the last part of the status code.
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
