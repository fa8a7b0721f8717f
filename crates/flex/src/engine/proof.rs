//! Reads a resource and proves its ownership, before bringup writes or deletes the resource.

use bringup_azure::id::VirtualMachineId;
use bringup_azure::{Arm, ArmError, Priority, ResourceId};
use serde_json::Value;

use super::kinds::api_version;
use crate::audit::word;
use crate::ownership::{Identity, Ownership, companions, holder, may_be_deleted_with, owns};
use crate::sweep::Kind;

/// The result of reading a resource.
pub(super) enum Proof {
    /// Azure does not show the resource, which proves nothing.
    Unseen,
    /// The resource is ours; its body.
    Ours(Value),
    /// The resource exists, and is not ours; the text names the resource and the reason.
    Foreign(String),
}

/// Why a resource could not be read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The resource ID cannot be parsed.
    Id(String),
    /// The request to Azure failed.
    Arm(ArmError),
}

impl From<ArmError> for ReadError {
    fn from(error: ArmError) -> Self {
        Self::Arm(error)
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(why) => formatter.write_str(why),
            Self::Arm(error) => write!(formatter, "{error}"),
        }
    }
}

/// Reads a resource; none if Azure does not show it.
pub(super) async fn read(arm: &Arm, kind: Kind, id: &str) -> Result<Option<Value>, ReadError> {
    let wrong = |error: &dyn std::fmt::Display| ReadError::Id(format!("`{id}`: {error}"));
    let resource: ResourceId = id.parse().map_err(|error| wrong(&error))?;
    // The read precedes a write, so it has priority over reads that only observe.
    let turn = Priority::Event;
    let found = match kind {
        Kind::Vm => {
            let vm = VirtualMachineId::try_from(&resource).map_err(|error| wrong(&error))?;
            arm.virtual_machine(&vm, turn).await.map(|vm| vm.raw)
        }
        Kind::Nic | Kind::Disk => arm.resource(&resource, api_version(kind), turn).await,
    };
    match found {
        Ok(body) => Ok(Some(body)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads a resource and decides whether it is ours.
pub(super) async fn prove(
    arm: &Arm,
    kind: Kind,
    id: &str,
    identity: &Identity<'_>,
) -> Result<Proof, ReadError> {
    let Some(body) = read(arm, kind, id).await? else { return Ok(Proof::Unseen) };
    Ok(match owns(kind, &body, identity) {
        Ownership::Ours => Proof::Ours(body),
        Ownership::Foreign(why) => Proof::Foreign(foreign(kind, id, &why)),
    })
}

/// The message about a resource that is not ours.
pub(super) fn foreign(kind: Kind, id: &str, why: &str) -> String {
    format!("{} {id} exists and does not belong to this machine: {why}", word(kind))
}

/// The first foreign resource that Azure would delete together with one of our VMs.
pub(super) async fn foreign_companion(
    arm: &Arm,
    vm: &Value,
    identity: &Identity<'_>,
) -> Result<Option<String>, ReadError> {
    for companion in companions(vm) {
        let Some(body) = read(arm, companion.kind, &companion.id).await? else { continue };
        if let Ownership::Foreign(why) = may_be_deleted_with(vm, &companion, &body, identity) {
            let (kind, id) = (word(companion.kind), &companion.id);
            let what = format!(
                "{kind} {id} is attached to the VM with deleteOption Delete and does not belong to this machine: {why}; detach it, or set its deleteOption to Detach"
            );
            return Ok(Some(what));
        }
    }
    Ok(None)
}

/// The ID of a foreign VM that uses a NIC or disk of ours. `vm` is the ID of our own VM.
pub(super) async fn foreign_holder(
    arm: &Arm,
    (kind, id, body): (Kind, &str, &Value),
    vm: &str,
    identity: &Identity<'_>,
) -> Result<Option<String>, ReadError> {
    let Some(held) = holder(kind, body) else { return Ok(None) };
    let used = |why: &str| Some(format!("{} {id} is used by VM {held}, {why}", word(kind)));
    if !held.eq_ignore_ascii_case(vm) {
        return Ok(used("which does not belong to this machine"));
    }
    Ok(match prove(arm, Kind::Vm, vm, identity).await? {
        Proof::Unseen | Proof::Ours(_) => None,
        Proof::Foreign(why) => used(&why),
    })
}
