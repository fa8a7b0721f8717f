//! Where the VM of a Machine is.

use bringup_azure::id::VirtualMachineId;
use bringup_azure::{InstanceId, ProviderId};
use bringup_diagnosis::redaction::redact;
use bringup_objects::cluster_api::{AzureClusterSpec, vm_name};
use bringup_objects::condition::cut;

use super::INFRA_KINDS;
use super::records::{InfraRecord, MachineRecord};
use super::shared::PoolRecord;
use crate::subject::Place;

/// Where the VM is: from the provider ID, or, until that exists, derived from the machine's name.
pub(super) fn place(
    machine: &MachineRecord,
    infra: Option<&InfraRecord>,
    site: Option<&AzureClusterSpec>,
    pool: Option<&PoolRecord>,
) -> Place {
    let said = machine.provider_id.as_deref();
    if let Some(id) = said.or_else(|| infra.and_then(|it| it.provider_id.as_deref())) {
        let is_flexible = pool.is_some_and(|pool| pool.is_flexible);
        return if is_flexible { standing_alone(known(id)) } else { known(id) };
    }
    let (Some(infra), Some(site)) = (infra, site) else { return Place::NotSaid };
    let whole = !site.subscription_id.is_empty() && !site.resource_group.is_empty();
    // An instance of a scale set has no name before Azure creates it.
    if machine.infra_ref.kind != INFRA_KINDS[0] || !whole {
        return Place::NotSaid;
    }
    let AzureClusterSpec { subscription_id, resource_group, .. } = site;
    known(&format!(
        "azure:///subscriptions/{subscription_id}/resourceGroups/{resource_group}/providers/Microsoft.Compute/virtualMachines/{}",
        vm_name(&machine.infra_ref.name, infra.os.as_deref() == Some("windows"))
    ))
}

/// Corrects the ID of an instance of a flexible scale set: the instance is a VM of its own, even if Azure
/// lists it under the scale set.
fn standing_alone(place: Place) -> Place {
    let Place::Known(id) = place else { return place };
    let instance = match id.instance {
        InstanceId::ScaleSetInstance(it) => InstanceId::VirtualMachine(VirtualMachineId {
            subscription: it.subscription,
            resource_group: it.resource_group,
            name: it.instance,
        }),
        other @ InstanceId::VirtualMachine(_) => other,
    };
    Place::Known(ProviderId { instance, ..id })
}

fn known(id: &str) -> Place {
    match id.parse::<ProviderId>() {
        Ok(id) => Place::Known(id),
        Err(error) => {
            let why = redact(&format!("providerID: {error}")).text.into_string();
            Place::Malformed(cut(&why, 300))
        }
    }
}
