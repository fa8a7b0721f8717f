//! Whether what a machine was refused for speaks of its class. Only then the class is not ready: one
//! machine with a size or a zone that Azure refuses must not stop all the others.

use bringup_contract::Cause;
use bringup_contract::flex::FailureCause;
use bringup_flex::engine::Bootstrap;
use bringup_flex::trouble::Trouble;
use bringup_objects::flex::machine::Failure;
use jiff::Timestamp;
use tracing::warn;

use super::classes::Refusal;
use super::{Flex, Key};

/// Codes about what only the class names: image, subnet, resource group, region, and our rights there.
const OF_CLASS: [&str; 13] = [
    "AuthorizationFailed",
    "LinkedAuthorizationFailed",
    "ScopeLocked",
    "ReadOnlyDisabledSubscription",
    "SubscriptionNotFound",
    "ResourceGroupNotFound",
    "ResourceGroupBeingDeleted",
    "LocationNotAvailableForResourceType",
    "PlatformImageNotFound",
    "ImageNotFound",
    "GalleryImageNotFound",
    "MarketplacePurchaseEligibilityFailed",
    "ResourcePurchaseValidationFailed",
];

/// Decides it from the refusal, the size that the machine asked for, and whether the VM had been asked
/// for: a NIC is made from fields of the class alone, a VM also from fields of the machine.
pub(super) fn speaks_of_class(failure: &Failure, size: &str, is_of_vm: bool) -> bool {
    let message = failure.message.to_ascii_lowercase();
    if !size.is_empty() && message.contains(&size.to_ascii_lowercase()) {
        return false;
    }
    let code = failure.arm_code.as_deref().unwrap_or_default();
    !is_of_vm
        || OF_CLASS.iter().any(|known| known.eq_ignore_ascii_case(code))
        || failure.cause == FailureCause::Node(Cause::AuthorizationFailed)
        || ["imagereference", "galleryimage", "/subnets/"].iter().any(|it| message.contains(it))
}

impl<B: Bootstrap> Flex<B> {
    /// What a machine was refused for may be its class's fault: then no other is tried for a while.
    pub(super) async fn blame(&self, name: &str) {
        let Some(machine) = self.store.machine(name).await else { return };
        let status = machine.status.unwrap_or_default();
        let Some(failure) = status.failure.filter(|_| status.phase.is_cleaning()) else { return };
        let Some(FailureCause::Node(cause)) = failure.cause.known() else { return };
        let is_access = matches!(cause, Cause::AuthorizationFailed | Cause::PolicyDenied);
        if !is_access && cause != Cause::InvalidRequest {
            return;
        }
        let is_of_vm = status.vm_attempt_at.is_some();
        if !speaks_of_class(&failure, &machine.spec.vm_size, is_of_vm) {
            return;
        }
        let class = machine.spec.node_class;
        let generation =
            self.index().classes.get(&class).and_then(|class| class.metadata.generation);
        let at = status.vm_attempt_at.or(status.created_at).map_or(Timestamp::MIN, |time| time.0);
        let code = failure.arm_code.map(|code| format!(" ({code})")).unwrap_or_default();
        let what = format!("{}{code}: {}", failure.cause, failure.message);
        self.note_refusal(class, Refusal { generation, is_access, what, at });
    }

    pub(super) fn refused(&self, class: &str, generation: Option<i64>, trouble: &Trouble) {
        let is_access = trouble.class == bringup_flex::trouble::Class::Access;
        let is_fault = is_access || trouble.class == bringup_flex::trouble::Class::Request;
        if !is_fault {
            warn!(class, why = trouble.message, "Azure does not say which image is the latest");
            return;
        }
        let what = format!("{}: {}", trouble.cause.reason(), trouble.message);
        let refusal = Refusal { generation, is_access, what, at: self.clock.now() };
        self.note_refusal(class.to_owned(), refusal);
    }

    fn note_refusal(&self, class: String, refusal: Refusal) {
        let mut refusals = self.refusals();
        let known = refusals.get(&class);
        // The same machine is looked at again and again.
        if known.is_none_or(|known| known.at < refusal.at) {
            refusals.insert(class.clone(), refusal);
            drop(refusals);
            self.agenda.plan_now(Key::Class(class));
        }
    }
}

#[cfg(test)]
mod tests {
    use bringup_contract::flex::FailureClass;

    use super::*;

    fn refused(cause: Cause, code: &str, message: &str) -> Failure {
        Failure {
            class: FailureClass::Request.into(),
            cause: FailureCause::from(cause).into(),
            arm_code: Some(code.to_owned()),
            message: message.to_owned(),
        }
    }

    #[test]
    fn a_machine_that_is_refused_for_its_own_fields_leaves_its_class_ready() {
        let own = [
            refused(
                Cause::InvalidRequest,
                "InvalidParameter",
                "The value Standard_X1 provided for the VM size is not valid.",
            ),
            refused(
                Cause::InvalidRequest,
                "InvalidParameter",
                "Availability zone 9 is not supported.",
            ),
            refused(
                Cause::InvalidRequest,
                "BadRequest",
                "VM size standard_x1 cannot boot imageReference of this generation.",
            ),
            refused(
                Cause::PolicyDenied,
                "RequestDisallowedByPolicy",
                "Allowed virtual machine size SKUs",
            ),
            refused(
                Cause::InvalidRequest,
                "PropertyChangeNotAllowed",
                "Changing property is not allowed.",
            ),
        ];
        for failure in own {
            assert!(!speaks_of_class(&failure, "Standard_X1", true), "{failure:?}");
        }
    }

    #[test]
    fn what_only_the_class_names_makes_the_class_not_ready() {
        let of_class = [
            refused(Cause::InvalidRequest, "PlatformImageNotFound", "No such image."),
            refused(
                Cause::AuthorizationFailed,
                "LinkedAuthorizationFailed",
                "The client may not join the subnet.",
            ),
            refused(Cause::AuthorizationFailed, "SomethingNew", "No."),
            refused(Cause::InvalidRequest, "InvalidParameter", "imageReference is wrong"),
        ];
        for failure in of_class {
            assert!(speaks_of_class(&failure, "Standard_X1", true), "{failure:?}");
        }
        let nic = refused(Cause::PolicyDenied, "RequestDisallowedByPolicy", "Tags are missing.");
        assert!(speaks_of_class(&nic, "Standard_X1", false), "a NIC is the class's alone");
    }
}
