//! IDs of a machine's resources in the notations of ARM and Kubernetes.

use bringup_azure::ProviderId;
use bringup_objects::flex::machine::Place;

fn resource_id(place: &Place, kind: &str, name: &str) -> String {
    let (subscription, group) = (&place.subscription_id, &place.resource_group);
    format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{kind}/{name}")
}

/// The ARM ID of a machine's VM.
pub fn vm_id(place: &Place) -> String {
    resource_id(place, "Microsoft.Compute/virtualMachines", &place.vm)
}

/// The ARM ID of a machine's NIC.
pub fn nic_id(place: &Place) -> String {
    resource_id(place, "Microsoft.Network/networkInterfaces", &place.nic)
}

/// The ARM ID of a machine's OS disk.
pub fn disk_id(place: &Place) -> String {
    resource_id(place, "Microsoft.Compute/disks", &place.disk)
}

/// The provider ID of a machine's VM in its Node and NodeClaim.
pub fn provider_id(place: &Place) -> String {
    format!("azure-flex://{}", vm_id(place))
}

/// Whether two provider IDs name the same VM. An empty ID names none.
pub fn same_provider_id(left: &str, right: &str) -> bool {
    match (left.parse::<ProviderId>(), right.parse::<ProviderId>()) {
        (Ok(left), Ok(right)) => left == right,
        _ => !left.is_empty() && left.eq_ignore_ascii_case(right),
    }
}
