//! Azure by its own interface.

use std::time::Duration;

use async_trait::async_trait;
use bringup_azure::arm::{PollError, Verb, Write};
use bringup_azure::error::ArmFailure;
use bringup_azure::operation::Started;
use bringup_azure::{
    Arm, OperationAddress, OperationState, Priority, ResourceId, VirtualMachineId,
};
use bringup_objects::flex::machine::{AzureFlexMachine, Place};
use jiff::SignedDuration;
use serde_json::Value;

use super::Cloud;
use crate::bodies;
use crate::machine::{Ask, Told, Vm};
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

    async fn write(
        &self,
        verb: Verb,
        id: &str,
        api_version: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        spot: bool,
    ) -> Told {
        let resource: ResourceId = match id.parse() {
            Ok(resource) => resource,
            Err(error) => return Told::Trouble(Trouble::request(&error.to_string())),
        };
        let write = Write { verb, resource: &resource, action: None, api_version, query, body };
        match self.arm.start(&write).await {
            Ok(Started { status: 204 | 404, .. }) => Told::Absent,
            Ok(Started { operation: Ok(operation), retry_after, body, .. }) => {
                let ended = body.pointer("/properties/provisioningState").and_then(Value::as_str);
                let ended = ended.is_some_and(|state| state.eq_ignore_ascii_case("succeeded"));
                // A NIC is often there at once, with an operation beside it that nobody needs.
                let operation = operation.filter(|_| !(ended && verb == Verb::Put));
                Told::Accepted {
                    operation: operation.map(|address| address.to_store().to_owned()),
                    wait: span(retry_after),
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
                Told::Running { wait: span(retry_after) }
            }
            Ok(OperationState::Succeeded(_)) => Told::Done,
            Ok(OperationState::Failed(failure)) => preempted_or(&failure, spot),
            Ok(OperationState::Canceled(_) | OperationState::Expired)
            | Err(PollError::Address(_)) => Told::Lost,
            Err(PollError::Arm(error)) => Told::Trouble(Trouble::of_error(&error, spot)),
        }
    }

    async fn read(&self, place: &Place, spot: bool) -> Told {
        let id: VirtualMachineId = match vm_id(place).parse::<ResourceId>() {
            Ok(id) => match (&id).try_into() {
                Ok(id) => id,
                Err(error) => return Told::Trouble(Trouble::request(&error.to_string())),
            },
            Err(error) => return Told::Trouble(Trouble::request(&error.to_string())),
        };
        match self.arm.virtual_machine(&id, Priority::Schedule).await {
            Ok(vm) => {
                let word = vm.provisioning_state.clone().unwrap_or_default().to_ascii_lowercase();
                let state = match word.as_str() {
                    "succeeded" => Vm::Succeeded,
                    "failed" => Vm::Failed(Trouble::of_failure(&failure(&vm.raw), spot)),
                    "deleting" => Vm::Deleting,
                    _ => Vm::Underway,
                };
                Told::Vm { state, id: vm.vm_id }
            }
            Err(error) if error.is_not_found() => Told::Absent,
            Err(error) => Told::Trouble(Trouble::of_error(&error, spot)),
        }
    }
}

#[async_trait]
impl<B: Bootstrap> Cloud for ArmCloud<B> {
    async fn ask(&self, ask: Ask, machine: &AzureFlexMachine, place: &Place) -> Told {
        let spot = machine.spec.capacity_type.as_deref() == Some("spot");
        let tags = || bodies::tags(machine, place, &self.cluster);
        match ask {
            Ask::Poll => self.poll(machine, spot).await,
            Ask::ReadVm => self.read(place, spot).await,
            Ask::PutNic => {
                let body = bodies::nic(place, &tags());
                self.write(Verb::Put, &nic_id(place), NETWORK, &[], Some(&body), spot).await
            }
            Ask::PutVm => {
                let custom_data = match self.bootstrap.custom_data(machine).await {
                    Ok(custom_data) => custom_data,
                    Err(why) => return Told::Trouble(Trouble::transient(&why)),
                };
                let body = bodies::vm(machine, place, &tags(), &custom_data);
                self.write(Verb::Put, &vm_id(place), COMPUTE, &[], Some(&body), spot).await
            }
            Ask::DeleteVm => {
                let force = [("forceDeletion", "true")];
                self.write(Verb::Delete, &vm_id(place), COMPUTE, &force, None, spot).await
            }
            Ask::DeleteNic => {
                self.write(Verb::Delete, &nic_id(place), NETWORK, &[], None, spot).await
            }
            Ask::DeleteDisk => {
                self.write(Verb::Delete, &disk_id(place), DISKS, &[], None, spot).await
            }
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

fn span(wait: Option<Duration>) -> Option<SignedDuration> {
    wait.and_then(|wait| SignedDuration::try_from(wait).ok())
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
