//! Whether a machine failed because of its class. Only then the class is not ready: one machine with a size
//! or zone that Azure refuses must not block all others.

use bringup_contract::Cause;
use bringup_contract::flex::FailureCause;
use bringup_flex::engine::Bootstrap;
use bringup_flex::trouble::{Class as TroubleClass, Trouble};
use bringup_objects::flex::machine::{AzureFlexMachine, Failure};
use jiff::Timestamp;
use tracing::warn;

use super::flex::{Flex, Key};
use super::memory::ClassFailure;

/// Error codes about fields that only the class contains (image, subnet, resource group, region), and about
/// bringup's permissions for them.
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

/// Decides from the refusal, the machine's size, and whether the VM had been requested: a NIC depends only on
/// fields of the class, a VM also on fields of the machine.
fn is_fault_of_class(failure: &Failure, size: &str, is_of_vm: bool) -> bool {
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

/// The failure of a machine, if the class at this generation caused it.
fn class_failure(machine: &AzureFlexMachine, generation: Option<i64>) -> Option<ClassFailure> {
    let status = machine.status.as_ref().filter(|status| status.phase.is_cleaning())?;
    let failure = status.failure.as_ref()?;
    let Some(FailureCause::Node(cause)) = failure.cause.known() else { return None };
    let is_access = matches!(cause, Cause::AuthorizationFailed | Cause::PolicyDenied);
    let is_of_vm = status.vm_attempt_at.is_some();
    if !(is_access || cause == Cause::InvalidRequest)
        || !is_fault_of_class(failure, &machine.spec.vm_size, is_of_vm)
    {
        return None;
    }
    let at = status.vm_attempt_at.as_ref().or(status.created_at.as_ref());
    let code = failure.arm_code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
    Some(ClassFailure {
        generation,
        is_access,
        what: format!("{}{code}: {}", failure.cause, failure.message),
        at: at.map_or(Timestamp::MIN, |time| time.0),
    })
}

impl<B: Bootstrap> Flex<B> {
    /// Records the failure of a machine that the class caused. For a while, no other machine is created from
    /// the class.
    pub(super) fn note_class_failure_of(&self, machine: &AzureFlexMachine) {
        let class = &machine.spec.node_class;
        let known = self.index().classes.get(class).and_then(|class| class.metadata.generation);
        if let Some(failure) = class_failure(machine, known) {
            self.keep_class_failure(class, failure);
        }
    }

    /// Records that the image of a class cannot be resolved, if the class is the cause.
    pub(super) fn note_image_failure(
        &self,
        class: &str,
        generation: Option<i64>,
        trouble: &Trouble,
    ) {
        let is_access = trouble.class == TroubleClass::Access;
        if !is_access && trouble.class != TroubleClass::Request {
            warn!(class, error = trouble.message, "cannot resolve the latest version of the image");
            return;
        }
        let what = format!("{}: {}", trouble.cause.reason(), trouble.message);
        let at = self.clock.now();
        self.keep_class_failure(class, ClassFailure { generation, is_access, what, at });
    }

    fn keep_class_failure(&self, class: &str, failure: ClassFailure) {
        if self.memory().keep_class_failure(class, failure) {
            self.agenda.plan_now(Key::Class(class.to_owned()));
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
            assert!(!is_fault_of_class(&failure, "Standard_X1", true), "{failure:?}");
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
            assert!(is_fault_of_class(&failure, "Standard_X1", true), "{failure:?}");
        }
        let nic = refused(Cause::PolicyDenied, "RequestDisallowedByPolicy", "Tags are missing.");
        assert!(is_fault_of_class(&nic, "Standard_X1", false), "a NIC is the class's alone");
    }
}
