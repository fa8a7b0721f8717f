//! API version and deletion parameters of each kind of resource.

use bringup_azure::arm::Condition;
use serde_json::Value;

use crate::sweep::Kind;

pub(super) const COMPUTE: &str = "2024-11-01";
/// The API version of the network provider.
pub const NETWORK: &str = "2024-05-01";
pub(super) const DISKS: &str = "2024-03-02";

/// The API version of a kind.
pub(super) fn api_version(kind: Kind) -> &'static str {
    match kind {
        Kind::Vm => COMPUTE,
        Kind::Nic => NETWORK,
        Kind::Disk => DISKS,
    }
}

/// The parameters and the precondition with which a resource that was just read is deleted. Azure supports no
/// precondition for deletions of VMs and disks.
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
