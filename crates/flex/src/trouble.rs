//! Errors of Azure: their kind, their cause, which VMs they make unavailable, and for how long.

use bringup_azure::error::ArmFailure;
use bringup_azure::{ArmError, ErrorKind};
use bringup_contract::Cause;
use bringup_contract::arm::{self, ArmCode};
use bringup_contract::flex::FailureCause;
pub use bringup_contract::flex::FailureClass as Class;
use bringup_objects::flex::machine::Failure;
use jiff::SignedDuration;

/// The VMs that an error makes unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Spot VMs in the region.
    RegionSpot,
    /// A quota family in the region.
    RegionFamily,
    /// All VMs in the region.
    Region,
    /// One size in the region, or in the zone if one was requested.
    Size,
    /// All machines of the class.
    Class,
}

/// An error of Azure, classified for decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The kind of the error.
    pub class: Class,
    /// The cause of the error.
    pub cause: Cause,
    /// ARM's error code.
    pub code: Option<String>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// How long to wait, if Azure sent `Retry-After`.
    pub retry_after: Option<SignedDuration>,
    /// The VMs that are unavailable, and for how long.
    pub back_off: Option<(Scope, SignedDuration)>,
    /// ARM's message.
    pub message: String,
}

/// The most characters of ARM's message that are stored.
const WORDS: usize = 1024;

impl Trouble {
    /// Classifies the error of a request.
    pub fn of_error(error: &ArmError, spot: bool) -> Self {
        let retry_after = crate::time::pause(error.retry_after());
        let words = error.to_string();
        let mut trouble = match error.kind() {
            ErrorKind::Throttled { .. } => {
                Self::plain(Class::Throttle, Cause::ArmThrottled, &words)
            }
            // Without a token, Azure did not read the request, so it refused nothing.
            ErrorKind::Unavailable { .. }
            | ErrorKind::Network
            | ErrorKind::Malformed { .. }
            | ErrorKind::Unauthenticated => Self::transient(&words),
            _ => Self::known(error.failure(), spot)
                .unwrap_or_else(|| Self::refused(error.status(), error.failure())),
        };
        if trouble.message.is_empty() {
            trouble.message = error.to_string();
        }
        Self { status: error.status(), retry_after, ..trouble }
    }

    /// Classifies the failure of an operation or of a VM. Azure had accepted the request, so an unknown code
    /// does not prove that the request is wrong.
    pub fn of_failure(failure: &ArmFailure, spot: bool) -> Self {
        let message = failure.message.as_deref().filter(|message| !message.is_empty());
        let unknown = || Self {
            code: failure.code.clone(),
            ..Self::transient(message.unwrap_or("it failed, and Azure reports no reason"))
        };
        Self::known(failure, spot).unwrap_or_else(unknown)
    }

    /// Classifies the outermost known code; none if no code is known.
    fn known(failure: &ArmFailure, spot: bool) -> Option<Self> {
        failure.chain().into_iter().find_map(|one| {
            let message = one.message.as_deref().or(failure.message.as_deref()).unwrap_or_default();
            let code = one.code.as_deref().unwrap_or_default();
            let (class, cause, back_off) = table(code, message, spot)?;
            let trouble = Self::plain(class, cause, message);
            Some(Self { back_off, code: one.code.clone(), ..trouble })
        })
    }

    /// Classifies a refusal with an unknown code by its HTTP status.
    fn refused(status: Option<u16>, failure: &ArmFailure) -> Self {
        let (class, cause) = match status {
            Some(400 | 422) => (Class::Request, Cause::InvalidRequest),
            // A response without a code comes from a proxy, not from Azure.
            Some(403) if failure.code.is_some() => (Class::Access, Cause::AuthorizationFailed),
            _ => (Class::Transient, Cause::PlatformTransient),
        };
        let trouble = Self::plain(class, cause, failure.message.as_deref().unwrap_or_default());
        Self { code: failure.code.clone(), ..trouble }
    }

    fn plain(class: Class, cause: Cause, message: &str) -> Self {
        let (code, status, retry_after, back_off) = (None, None, None, None);
        let message = message.chars().take(WORDS).collect();
        Self { class, cause, code, status, retry_after, back_off, message }
    }

    /// The error of a request that is known to be wrong without sending it.
    pub fn request(what: &str) -> Self {
        Self::plain(Class::Request, Cause::InvalidRequest, what)
    }

    /// A transient error: a dependency is not available now.
    pub fn transient(what: &str) -> Self {
        Self::plain(Class::Transient, Cause::PlatformTransient, what)
    }

    /// The failure as the status of a machine stores it.
    pub fn stored(&self) -> Failure {
        Failure {
            class: self.class.into(),
            cause: FailureCause::from(self.cause).into(),
            arm_code: self.code.clone(),
            message: self.message.clone(),
        }
    }
}

/// The meaning of a code: kind, cause, which VMs are unavailable, and for how long.
type Meaning = (Class, Cause, Option<(Scope, SignedDuration)>);

/// The table of ARM's codes. If one code has several meanings, fixed words in the message decide. None if the
/// code is not known.
fn table(code: &str, text: &str, spot: bool) -> Option<Meaning> {
    let (minutes, hours) = (SignedDuration::from_mins, SignedDuration::from_hours);
    let capacity = |cause, scope, time| (Class::Capacity, cause, Some((scope, time)));
    let meaning = match code {
        "OperationNotAllowed" if text.contains("LowPriorityCores") => {
            capacity(Cause::QuotaExceeded, Scope::RegionSpot, hours(1))
        }
        "OperationNotAllowed" if text.contains("Total Regional Cores") => {
            capacity(Cause::QuotaExceeded, Scope::Region, minutes(10))
        }
        "OperationNotAllowed" if text.contains("Cores quota") => {
            let none = text.contains("Current Limit: 0,");
            let time = if none { hours(1) } else { minutes(10) };
            capacity(Cause::QuotaExceeded, Scope::RegionFamily, time)
        }
        "QuotaExceeded" => capacity(Cause::QuotaExceeded, Scope::RegionFamily, minutes(10)),
        "SkuNotAvailable" => {
            capacity(Cause::SkuUnavailable, Scope::Size, if spot { hours(1) } else { hours(23) })
        }
        "AllocationFailed"
        | "ZonalAllocationFailed"
        | "OverconstrainedAllocationRequest"
        | "OverconstrainedZonalAllocationRequest" => {
            capacity(Cause::AllocationFailed, Scope::Size, hours(1))
        }
        "SubnetIsFull" | "PrivateIPAddressInUse" => {
            (Class::Network, Cause::SubnetExhausted, Some((Scope::Class, minutes(5))))
        }
        "NicReservedForAnotherVm" | "NicInUse" => (Class::Wait, Cause::NicReserved, None),
        "TooManyRequests" | "SubscriptionRequestsThrottled" => {
            (Class::Throttle, Cause::ArmThrottled, None)
        }
        "OperationPreempted" | "AnotherOperationInProgress" | "Conflict" | "RetryableError" => {
            (Class::Conflict, Cause::ArmThrottled, None)
        }
        "PropertyChangeNotAllowed" => (Class::Conflict, Cause::InvalidRequest, None),
        "AuthorizationFailed" | "LinkedAuthorizationFailed" => {
            (Class::Access, Cause::AuthorizationFailed, None)
        }
        "RequestDisallowedByPolicy" | "ScopeLocked" => (Class::Access, Cause::PolicyDenied, None),
        "InternalServerError"
        | "InternalExecutionError"
        | "ServiceUnavailable"
        | "GatewayTimeout"
        | "InternalOperationError" => (Class::Transient, Cause::PlatformTransient, None),
        "OSProvisioningTimedOut" | "OSProvisioningClientError" | "OSProvisioningInternalError" => {
            (Class::Request, Cause::OsProvisioningFailure, None)
        }
        _ => {
            let known = ArmCode::find(code)?;
            match known.class {
                arm::Class::Request => (Class::Request, Cause::InvalidRequest, None),
                arm::Class::Access => {
                    (Class::Access, known.cause.unwrap_or(Cause::AuthorizationFailed), None)
                }
                arm::Class::Wrapper
                | arm::Class::Extension
                | arm::Class::Os
                | arm::Class::Quota
                | arm::Class::Capacity
                | arm::Class::Throttle
                | arm::Class::Platform
                | arm::Class::Echo => return None,
            }
        }
    };
    Some(meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &str, message: &str) -> Trouble {
        let failure = ArmFailure {
            code: Some(code.to_owned()),
            message: Some(message.to_owned()),
            ..ArmFailure::default()
        };
        Trouble::of_failure(&failure, false)
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn case_41_the_whole_table() {
        let (minutes, hours) = (SignedDuration::from_mins, SignedDuration::from_hours);
        let quota = |name: &str, limit: u32| {
            format!(
                "Operation could not be completed as it results in exceeding approved {name} quota. Additional details - Deployment Model: Resource Manager, Location: eastus, Current Limit: {limit}, Current Usage: 0"
            )
        };
        let rows = [
            (
                "OperationNotAllowed",
                quota("LowPriorityCores", 3),
                Class::Capacity,
                Cause::QuotaExceeded,
                Some((Scope::RegionSpot, hours(1))),
            ),
            (
                "OperationNotAllowed",
                quota("standardDSv5Family Cores", 10),
                Class::Capacity,
                Cause::QuotaExceeded,
                Some((Scope::RegionFamily, minutes(10))),
            ),
            (
                "OperationNotAllowed",
                quota("standardNDSH200v5Family Cores", 0),
                Class::Capacity,
                Cause::QuotaExceeded,
                Some((Scope::RegionFamily, hours(1))),
            ),
            (
                "OperationNotAllowed",
                quota("Total Regional Cores", 10),
                Class::Capacity,
                Cause::QuotaExceeded,
                Some((Scope::Region, minutes(10))),
            ),
            (
                "OperationNotAllowed",
                "The VM is being deallocated.".to_owned(),
                Class::Request,
                Cause::InvalidRequest,
                None,
            ),
            (
                "QuotaExceeded",
                String::new(),
                Class::Capacity,
                Cause::QuotaExceeded,
                Some((Scope::RegionFamily, minutes(10))),
            ),
            (
                "SkuNotAvailable",
                String::new(),
                Class::Capacity,
                Cause::SkuUnavailable,
                Some((Scope::Size, hours(23))),
            ),
            (
                "AllocationFailed",
                String::new(),
                Class::Capacity,
                Cause::AllocationFailed,
                Some((Scope::Size, hours(1))),
            ),
            (
                "OverconstrainedZonalAllocationRequest",
                String::new(),
                Class::Capacity,
                Cause::AllocationFailed,
                Some((Scope::Size, hours(1))),
            ),
            (
                "SubnetIsFull",
                String::new(),
                Class::Network,
                Cause::SubnetExhausted,
                Some((Scope::Class, minutes(5))),
            ),
            ("NicReservedForAnotherVm", String::new(), Class::Wait, Cause::NicReserved, None),
            ("TooManyRequests", String::new(), Class::Throttle, Cause::ArmThrottled, None),
            ("OperationPreempted", String::new(), Class::Conflict, Cause::ArmThrottled, None),
            (
                "PropertyChangeNotAllowed",
                String::new(),
                Class::Conflict,
                Cause::InvalidRequest,
                None,
            ),
            (
                "LinkedAuthorizationFailed",
                String::new(),
                Class::Access,
                Cause::AuthorizationFailed,
                None,
            ),
            ("ScopeLocked", String::new(), Class::Access, Cause::PolicyDenied, None),
            ("PlatformImageNotFound", String::new(), Class::Request, Cause::InvalidRequest, None),
            ("ResourceGroupNotFound", String::new(), Class::Request, Cause::InvalidRequest, None),
        ];
        for (code, text, class, cause, back_off) in rows {
            let trouble = of(code, &text);
            assert_eq!(
                (trouble.class, trouble.cause, trouble.back_off),
                (class, cause, back_off),
                "{code}: {text}"
            );
        }
    }

    #[test]
    fn a_scarce_size_is_requested_again_sooner_as_spot() {
        let failure =
            ArmFailure { code: Some("SkuNotAvailable".to_owned()), ..ArmFailure::default() };
        let spot = Trouble::of_failure(&failure, true);
        assert_eq!(spot.back_off, Some((Scope::Size, SignedDuration::from_hours(1))));
    }
}
