//! Ids of a machine's resources, as ARM and as Kubernetes write them.

use bringup_azure::ProviderId;
use bringup_objects::flex::machine::Place;

fn resource_id(place: &Place, kind: &str, name: &str) -> String {
    let (subscription, group) = (&place.subscription_id, &place.resource_group);
    format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{kind}/{name}")
}

/// The ARM id of a machine's VM.
pub fn vm_id(place: &Place) -> String {
    resource_id(place, "Microsoft.Compute/virtualMachines", &place.vm)
}

/// The ARM id of a machine's NIC.
pub fn nic_id(place: &Place) -> String {
    resource_id(place, "Microsoft.Network/networkInterfaces", &place.nic)
}

/// The ARM id of a machine's OS disk.
pub fn disk_id(place: &Place) -> String {
    resource_id(place, "Microsoft.Compute/disks", &place.disk)
}

/// The provider id of a machine's VM, as its Node and its NodeClaim carry it.
pub fn provider_id(place: &Place) -> String {
    format!("azure-flex://{}", vm_id(place))
}

/// Whether two provider ids name the same VM. An empty one names none.
pub fn same_provider_id(left: &str, right: &str) -> bool {
    match (left.parse::<ProviderId>(), right.parse::<ProviderId>()) {
        (Ok(left), Ok(right)) => left == right,
        _ => !left.is_empty() && left.eq_ignore_ascii_case(right),
    }
}
