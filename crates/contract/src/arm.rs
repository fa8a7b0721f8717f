//! Error codes of Azure Resource Manager: finds them in a text, classifies them, and maps them to causes.

use std::sync::LazyLock;

use regex::Regex;

use crate::Cause;

/// The kind of error that a code reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Reports only that an inner error occurred.
    Wrapper,
    /// An error of an extension or of the guest agent.
    Extension,
    /// The operating system did not start.
    Os,
    /// A limit of the subscription is exceeded.
    Quota,
    /// Azure has no capacity at this place or time.
    Capacity,
    /// An identity lacks a permission.
    Access,
    /// The request itself is wrong.
    Request,
    /// Too many requests, or two conflicting requests at once.
    Throttle,
    /// Azure failed.
    Platform,
    /// A consequence of an earlier error.
    Echo,
}

/// A known error code.
#[derive(Debug, PartialEq, Eq)]
pub struct ArmCode {
    /// The code, as ARM writes it.
    pub code: &'static str,
    /// The class of the code.
    pub class: Class,
    /// The cause, if the code alone determines it.
    pub cause: Option<Cause>,
}

const fn code(code: &'static str, class: Class, cause: Option<Cause>) -> ArmCode {
    ArmCode { code, class, cause }
}

/// All known codes, in alphabetical order.
pub const CODES: &[ArmCode] = &[
    code("AKSCapacityError", Class::Capacity, Some(Cause::AllocationFailed)),
    code("AKSCapacityHeavyUsage", Class::Capacity, Some(Cause::AllocationFailed)),
    code("AllocationFailed", Class::Capacity, Some(Cause::AllocationFailed)),
    code("AnotherOperationInProgress", Class::Throttle, Some(Cause::ArmThrottled)),
    code("AttachDiskWhileBeingDetached", Class::Platform, Some(Cause::PlatformTransient)),
    code("AuthenticationFailed", Class::Access, Some(Cause::CredentialExpired)),
    code("AuthorizationFailed", Class::Access, Some(Cause::AuthorizationFailed)),
    code("AuthorizationPermissionMismatch", Class::Access, Some(Cause::AuthorizationFailed)),
    code("AuthorizationServiceUnavailable", Class::Platform, Some(Cause::PlatformTransient)),
    code("AvailabilityZoneNotSupported", Class::Capacity, Some(Cause::SkuUnavailable)),
    code("BadRequest", Class::Wrapper, None),
    code("CSEAgentPoolOutboundConnFail", Class::Extension, Some(Cause::EgressBlocked)),
    code("CanceledAndSupersededDueToAnotherOperation", Class::Throttle, Some(Cause::ArmThrottled)),
    code("CapacityReservationNotAvailable", Class::Capacity, Some(Cause::AllocationFailed)),
    code("ConcurrentRequestError", Class::Throttle, Some(Cause::ArmThrottled)),
    code("Conflict", Class::Wrapper, None),
    code("ConflictingConcurrentWriteNotAllowed", Class::Throttle, Some(Cause::ArmThrottled)),
    code("ConflictingUserInput", Class::Request, Some(Cause::InvalidRequest)),
    code("ControlPlaneAddOnsNotReady", Class::Platform, Some(Cause::ControlPlaneNotReady)),
    code("CoreQuotaExceeded", Class::Quota, Some(Cause::QuotaExceeded)),
    code("CreateVMSSAgentPoolFailed", Class::Wrapper, None),
    code(
        "CustomKubeletIdentityMissingPermissionError",
        Class::Access,
        Some(Cause::AuthorizationFailed),
    ),
    code("DedicatedHostAllocationFailed", Class::Capacity, Some(Cause::AllocationFailed)),
    code("DenyAssignmentAuthorizationFailed", Class::Access, Some(Cause::PolicyDenied)),
    code("DeploymentFailed", Class::Wrapper, None),
    code("DisabledSubscription", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("DiskCountLimitReached", Class::Quota, Some(Cause::QuotaExceeded)),
    code("DiskEncryptionSetNotFound", Class::Request, Some(Cause::InvalidRequest)),
    code("DiskSizeNotSupported", Class::Request, Some(Cause::DiskUnsupported)),
    code("DiskTypeNotSupported", Class::Request, Some(Cause::DiskUnsupported)),
    code("EphemeralOSDiskNotSupported", Class::Request, Some(Cause::DiskUnsupported)),
    code("EtagMismatch", Class::Throttle, Some(Cause::ArmThrottled)),
    code("ExpiredAuthenticationToken", Class::Access, Some(Cause::CredentialExpired)),
    code(
        "ExtensionNotFoundForCPUArchitecture",
        Class::Extension,
        Some(Cause::ExtensionHandlerFault),
    ),
    code("FailedIdentityOperation", Class::Access, Some(Cause::IdentityNotAssigned)),
    code("FailedToCreateOrUpdateVirtualMachineExtension", Class::Wrapper, None),
    code("FeatureNotRegistered", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("GalleryImageNotFound", Class::Request, Some(Cause::InvalidRequest)),
    code("GalleryImageVersionNotFound", Class::Request, Some(Cause::InvalidRequest)),
    code("GatewayTimeout", Class::Platform, Some(Cause::PlatformTransient)),
    code("HypervisorGenerationMismatch", Class::Request, Some(Cause::WrongArchitecture)),
    code("IPAddressInUse", Class::Capacity, Some(Cause::SubnetExhausted)),
    code("IdentityNotFound", Class::Access, Some(Cause::IdentityNotAssigned)),
    code("ImageNotFound", Class::Request, Some(Cause::InvalidRequest)),
    code("ImageVersionDeprecated", Class::Request, Some(Cause::InvalidRequest)),
    code("InUseNetworkSecurityGroupCannotBeDeleted", Class::Request, Some(Cause::InvalidRequest)),
    code("InUseSubnetCannotBeDeleted", Class::Request, Some(Cause::InvalidRequest)),
    code("InsufficientCapacity", Class::Capacity, Some(Cause::AllocationFailed)),
    code("InsufficientPermissions", Class::Access, Some(Cause::AuthorizationFailed)),
    code("InsufficientSubnetSize", Class::Capacity, Some(Cause::SubnetExhausted)),
    code("InsufficientVCPUQuota", Class::Quota, Some(Cause::QuotaExceeded)),
    code("InternalError", Class::Wrapper, None),
    code("InternalExecutionError", Class::Platform, Some(Cause::PlatformTransient)),
    code("InternalOperationError", Class::Wrapper, None),
    code("InternalServerError", Class::Platform, Some(Cause::PlatformTransient)),
    code("InvalidAuthenticationToken", Class::Access, Some(Cause::AuthorizationFailed)),
    code("InvalidImageArchitecture", Class::Request, Some(Cause::WrongArchitecture)),
    code("InvalidParameter", Class::Request, Some(Cause::InvalidRequest)),
    code("InvalidRequestContent", Class::Request, Some(Cause::InvalidRequest)),
    code("InvalidResourceReference", Class::Request, Some(Cause::InvalidRequest)),
    code("InvalidStorageProfile", Class::Request, Some(Cause::DiskUnsupported)),
    code("InvalidTemplate", Class::Request, Some(Cause::InvalidRequest)),
    code("InvalidTemplateDeployment", Class::Wrapper, None),
    code("InvalidVMSize", Class::Capacity, Some(Cause::SkuUnavailable)),
    code(
        "K8SAPIServerConnFailVMExtensionError",
        Class::Extension,
        Some(Cause::ApiServerUnreachable),
    ),
    code(
        "K8SAPIServerDNSLookupFailVMExtensionError",
        Class::Extension,
        Some(Cause::ApiServerDnsFailure),
    ),
    code("KeyVaultAccessForbidden", Class::Access, Some(Cause::AuthorizationFailed)),
    code("LinkedAccessCheckFailed", Class::Access, Some(Cause::AuthorizationFailed)),
    code("LinkedAuthorizationFailed", Class::Access, Some(Cause::AuthorizationFailed)),
    code("LinkedInvalidPropertyId", Class::Request, Some(Cause::InvalidRequest)),
    code("LoadBalancerCountLimitReached", Class::Quota, Some(Cause::QuotaExceeded)),
    code("LocationNotAvailableForResourceType", Class::Capacity, Some(Cause::SkuUnavailable)),
    code("LowPriorityQuotaExceeded", Class::Quota, Some(Cause::QuotaExceeded)),
    code("ManagedIdentityNotFound", Class::Access, Some(Cause::IdentityNotAssigned)),
    code("MarketplacePurchaseEligibilityFailed", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code(
        "MaxStorageAccountsCountPerSubscriptionExceeded",
        Class::Quota,
        Some(Cause::QuotaExceeded),
    ),
    code("MissingSubscriptionRegistration", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("MultipleErrorsOccurred", Class::Wrapper, None),
    code("NetworkInterfaceCountLimitReached", Class::Quota, Some(Cause::QuotaExceeded)),
    code("NetworkingInternalOperationError", Class::Platform, Some(Cause::PlatformTransient)),
    code("NicInUse", Class::Echo, Some(Cause::InvalidRequest)),
    code("NicReservedForAnotherVm", Class::Echo, Some(Cause::NicReserved)),
    code("NoFreeIPAddresses", Class::Capacity, Some(Cause::SubnetExhausted)),
    code("NoRegisteredProviderFound", Class::Request, Some(Cause::InvalidRequest)),
    code("NotAvailableForSubscription", Class::Capacity, Some(Cause::SkuUnavailable)),
    code("NotInSucceededState", Class::Platform, Some(Cause::PlatformTransient)),
    code("OSDiskTooSmall", Class::Request, Some(Cause::DiskUnsupported)),
    code("OSProvisioningClientError", Class::Os, Some(Cause::OsProvisioningFailure)),
    code("OSProvisioningInternalError", Class::Os, Some(Cause::OsProvisioningFailure)),
    code("OSProvisioningTimedOut", Class::Os, Some(Cause::OsProvisioningFailure)),
    code("OperationNotAllowed", Class::Request, None),
    code("OperationPreempted", Class::Throttle, Some(Cause::ArmThrottled)),
    code("OperationPreemptedByAnotherOperation", Class::Throttle, Some(Cause::ArmThrottled)),
    code("OrasPullNetworkTimeoutVMExtensionError", Class::Extension, None),
    code(
        "OrasPullUnauthorizedVMExtensionError",
        Class::Extension,
        Some(Cause::RegistryUnauthorized),
    ),
    code("OutboundConnFailVMExtensionError", Class::Extension, Some(Cause::EgressBlocked)),
    code("OverconstrainedAllocationRequest", Class::Capacity, Some(Cause::AllocationFailed)),
    code("OverconstrainedZonalAllocationRequest", Class::Capacity, Some(Cause::AllocationFailed)),
    code("PlatformImageNotFound", Class::Request, Some(Cause::InvalidRequest)),
    code("PolicyViolation", Class::Access, Some(Cause::PolicyDenied)),
    code("PreconditionFailed", Class::Throttle, Some(Cause::ArmThrottled)),
    code("PrivateIPAddressInUse", Class::Capacity, Some(Cause::SubnetExhausted)),
    code("PrivateIPAddressIsAllocated", Class::Capacity, Some(Cause::SubnetExhausted)),
    code("PropertyChangeNotAllowed", Class::Request, Some(Cause::InvalidRequest)),
    code("ProximityPlacementGroupAllocationFailed", Class::Capacity, Some(Cause::AllocationFailed)),
    code("PublicIPAddressCountLimitReached", Class::Quota, Some(Cause::QuotaExceeded)),
    code("PublicIPCountLimitReached", Class::Quota, Some(Cause::QuotaExceeded)),
    code("QuotaExceeded", Class::Quota, Some(Cause::QuotaExceeded)),
    code("ReadOnlyDisabledSubscription", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("ReconcileVMSSAgentPoolFailed", Class::Wrapper, None),
    code("ReferencedResourceNotProvisioned", Class::Platform, Some(Cause::PlatformTransient)),
    code("RegionalCapacityNotAvailable", Class::Capacity, Some(Cause::AllocationFailed)),
    code("RegionalQuotaExceeded", Class::Quota, Some(Cause::QuotaExceeded)),
    code("RequestDisallowedByAzure", Class::Access, Some(Cause::PolicyDenied)),
    code("RequestDisallowedByPolicy", Class::Access, Some(Cause::PolicyDenied)),
    code("RequestTimeout", Class::Platform, Some(Cause::PlatformTransient)),
    code("ResourceCountLimitExceeded", Class::Quota, Some(Cause::QuotaExceeded)),
    code("ResourceDeploymentFailure", Class::Wrapper, None),
    code("ResourceGroupBeingDeleted", Class::Request, Some(Cause::InvalidRequest)),
    code("ResourceGroupNotFound", Class::Request, Some(Cause::InvalidRequest)),
    code("ResourceNotReady", Class::Platform, Some(Cause::PlatformTransient)),
    code("ResourceOperationFailure", Class::Wrapper, None),
    code("ResourcePurchaseCanceled", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("ResourcePurchaseValidationFailed", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("ResourceQuotaExceeded", Class::Quota, Some(Cause::QuotaExceeded)),
    code("ResourceTypeNotSupportAvailabilityZones", Class::Capacity, Some(Cause::SkuUnavailable)),
    code("RetryableError", Class::Platform, Some(Cause::PlatformTransient)),
    code("ScopeLocked", Class::Access, Some(Cause::PolicyDenied)),
    code("ServerTimeout", Class::Platform, Some(Cause::PlatformTransient)),
    code(
        "ServicePrincipalProfileClientSecretExpired",
        Class::Access,
        Some(Cause::CredentialExpired),
    ),
    code("ServicePrincipalValidationClientError", Class::Access, Some(Cause::CredentialExpired)),
    code("ServiceUnavailable", Class::Platform, Some(Cause::PlatformTransient)),
    code("SharedGalleryImageNotFound", Class::Request, Some(Cause::InvalidRequest)),
    code("SkuNotAvailable", Class::Capacity, Some(Cause::SkuUnavailable)),
    code("SkuQuotaExceeded", Class::Quota, Some(Cause::QuotaExceeded)),
    code("SpendingLimitReached", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("SpotCapacityNotAvailable", Class::Capacity, Some(Cause::AllocationFailed)),
    code("SpotVMEvicted", Class::Capacity, Some(Cause::SpotEvicted)),
    code("SubnetDoesNotHaveEnoughIPs", Class::Capacity, Some(Cause::SubnetExhausted)),
    code("SubnetIsFull", Class::Capacity, Some(Cause::SubnetExhausted)),
    code("SubnetNotFound", Class::Request, Some(Cause::InvalidRequest)),
    code(
        "SubnetWithExternalResourcesCannotBeUsedByOtherResources",
        Class::Request,
        Some(Cause::InvalidRequest),
    ),
    code("SubscriptionDisabled", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("SubscriptionNotFound", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("SubscriptionNotRegistered", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("SubscriptionNotRegisteredForFeature", Class::Access, Some(Cause::SubscriptionNotUsable)),
    code("SubscriptionQuotaExceeded", Class::Quota, Some(Cause::QuotaExceeded)),
    code("SubscriptionRequestsThrottled", Class::Throttle, Some(Cause::ArmThrottled)),
    code("TooManyRequests", Class::Throttle, Some(Cause::ArmThrottled)),
    code("TrustedLaunchNotSupported", Class::Request, Some(Cause::InvalidRequest)),
    code("UltraSSDNotSupported", Class::Request, Some(Cause::DiskUnsupported)),
    code("UnavailableSkuInRegion", Class::Capacity, Some(Cause::SkuUnavailable)),
    code("UnsatisfiablePDB", Class::Request, None),
    code("UpgradeFailed", Class::Wrapper, None),
    code("UserAssignedIdentityNotFound", Class::Access, Some(Cause::IdentityNotAssigned)),
    code("VHDFileNotFoundVMExtensionError", Class::Extension, None),
    code("VMAgentStatusCommunicationError", Class::Extension, Some(Cause::GuestAgentUnresponsive)),
    code("VMArtifactRepositoryInternalError", Class::Platform, Some(Cause::PlatformTransient)),
    code("VMCannotFitEphemeralOSDisk", Class::Request, Some(Cause::DiskUnsupported)),
    code("VMEvicted", Class::Capacity, Some(Cause::SpotEvicted)),
    code(
        "VMExtensionError_K8SAPIServerConnFail",
        Class::Extension,
        Some(Cause::ApiServerUnreachable),
    ),
    code(
        "VMExtensionError_K8SAPIServerDNSLookupFail",
        Class::Extension,
        Some(Cause::ApiServerDnsFailure),
    ),
    code("VMExtensionError_OutboundConnFail", Class::Extension, Some(Cause::EgressBlocked)),
    code("VMExtensionError_VHDFileNotFound", Class::Extension, None),
    code(
        "VMExtensionHandlerNonTransientError",
        Class::Extension,
        Some(Cause::ExtensionHandlerFault),
    ),
    code("VMExtensionHandlerTransientError", Class::Extension, Some(Cause::ExtensionHandlerFault)),
    code(
        "VMExtensionManagementInternalError",
        Class::Extension,
        Some(Cause::ExtensionHandlerFault),
    ),
    code("VMExtensionProvisioningError", Class::Extension, None),
    code("VMExtensionProvisioningTimeout", Class::Extension, Some(Cause::ExtensionTimeout)),
    code("VMMarketplaceInvalidInput", Class::Request, Some(Cause::InvalidRequest)),
    code(
        "VMSizeIsNotPermittedToEnableAcceleratedNetworking",
        Class::Request,
        Some(Cause::InvalidRequest),
    ),
    code("VMSizeNotSupported", Class::Capacity, Some(Cause::SkuUnavailable)),
    code("VMStartTimedOut", Class::Os, Some(Cause::OsProvisioningFailure)),
    code("VirtualNetworkNotInSucceededState", Class::Platform, Some(Cause::PlatformTransient)),
    code("ZonalAllocationFailed", Class::Capacity, Some(Cause::AllocationFailed)),
];

impl ArmCode {
    /// Finds a code; ignores upper and lower case, as ARM does.
    pub fn find(name: &str) -> Option<&'static Self> {
        CODES.iter().find(|known| known.code.eq_ignore_ascii_case(name))
    }
}

/// The cause that the name of an unknown code suggests.
pub fn cause_by_name(code: &str) -> Option<Cause> {
    const NAMES: &[(&[&str], Cause)] = &[
        (&["Quota", "LimitReached", "LimitExceeded"], Cause::QuotaExceeded),
        (&["Ephemeral", "CacheSize", "DiskSize", "DiskType"], Cause::DiskUnsupported),
        (
            &["SkuNot", "ZoneNotSupported", "VMSizeNotSupported", "SizeNotAvailable"],
            Cause::SkuUnavailable,
        ),
        (&["Capacity", "Allocation"], Cause::AllocationFailed),
        (&["SubnetSize", "SubnetFull", "IPAddressesExhausted"], Cause::SubnetExhausted),
        (&["Policy", "Locked", "Lock", "DenyAssignment"], Cause::PolicyDenied),
        (
            &["NotRegistered", "Registration", "Subscription", "Marketplace", "Purchase", "Plan"],
            Cause::SubscriptionNotUsable,
        ),
        (&["Expired", "ClientSecret"], Cause::CredentialExpired),
        (&["Evicted", "Eviction"], Cause::SpotEvicted),
        (&["Architecture", "HyperVGeneration", "HypervisorGeneration"], Cause::WrongArchitecture),
        (&["NotInSucceededState", "NotProvisioned", "BeingDeleted"], Cause::PlatformTransient),
        (
            &["Authorization", "Unauthorized", "Forbidden", "Permission", "AccessDenied"],
            Cause::AuthorizationFailed,
        ),
        (&["Throttl", "TooMany", "InProgress", "Preempted"], Cause::ArmThrottled),
        (&["OSProvisioning"], Cause::OsProvisioningFailure),
        (
            &[
                "InternalServer",
                "InternalExecution",
                "InternalError",
                "Timeout",
                "Unavailable",
                "Retryable",
            ],
            Cause::PlatformTransient,
        ),
        (
            &["Invalid", "NotSupported", "NotAllowed", "NotFound", "Missing", "Unsupported"],
            Cause::InvalidRequest,
        ),
    ];
    // A missing deployment is no evidence about the resources in it.
    if code.starts_with("Deployment") {
        return None;
    }
    NAMES
        .iter()
        .find(|(parts, _)| parts.iter().any(|part| code.contains(part)))
        .map(|(_, cause)| *cause)
}

/// An occurrence of a code in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated<'a> {
    /// The code as it is written in the text.
    pub code: &'a str,
    /// The known code, if it is known.
    pub known: Option<&'static ArmCode>,
    /// The byte position of the code.
    pub at: usize,
}

/// The codes in a text, in order: known codes at any position, unknown codes only where a code is expected
/// (`"code": "X"`, `Code="X"`, `ERROR CODE: X`).
pub fn stated(text: &str) -> Vec<Stated<'_>> {
    static WORD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r#"(?:(?:(?i:\\*["'](?:error_?)?code\\*["'])[ \t\r\n]*(?::|=>)[ \t\r\n]*\\*["'])"#,
            r#"|(?:(?-u:\b)(?i:code)=\\*["'])|(?:(?-u:\b)ERROR CODE: )|(?:(?-u:\b)ErrorCode: )|(?:(?-u:\b)Code:[ \t\r\n]+`?"?)|(?:(?m:^)\())([A-Z][A-Za-z0-9_]{3,})"#,
            // After `Error:`, prose is as common as a code, but prose contains no CamelCase word of three
            // parts.
            r"|(?-u:\b)Error: ([A-Z][a-z]+(?:[A-Z][a-z0-9]+){2,})(?-u:\b)",
            r"|(?-u:\b)([A-Z][A-Za-z0-9]+(?:[A-Z_][A-Za-z0-9]+)+)(?-u:\b)"
        ))
        .expect("the pattern is valid")
    });
    parts(text)
        .into_iter()
        .flat_map(|(start, line)| WORD.captures_iter(line).map(move |found| (start, found)))
        .filter_map(|(start, found)| {
            let expected = found.get(1).or_else(|| found.get(2));
            let word = expected.or_else(|| found.get(3))?;
            let expected = expected.is_some();
            if NO_CODES.contains(&word.as_str()) {
                return None;
            }
            let known = ArmCode::find(word.as_str());
            (expected || known.is_some_and(|known| known.class != Class::Wrapper))
                .then_some(Stated { code: word.as_str(), known, at: start + word.start() })
        })
        .collect()
}

/// States of resources, and reasons of Kubernetes, which occur in the same positions as codes.
const NO_CODES: &[&str] = &[
    "ProvisioningState",
    "ComponentStatus",
    "PowerState",
    "Running",
    "Starting",
    "Stopped",
    "Stopping",
    "Deallocated",
    "Deallocating",
    "Succeeded",
    "Updating",
    "Creating",
    "Deleting",
    "ErrImagePull",
    "ImagePullBackOff",
    "CrashLoopBackOff",
    "CreateContainerError",
    "RunContainerError",
    "ErrImageNeverPull",
    "InvalidImageName",
];

/// From this many bytes on, only lines in which a code is expected are searched.
const LONG: usize = 64 * 1024;

/// The parts of a text that can contain a code, each with its byte position.
fn parts(text: &str) -> Vec<(usize, &str)> {
    if text.len() < LONG {
        return vec![(0, text)];
    }
    let mut marks: Vec<usize> = ["ode", "ODE", "Error: "]
        .iter()
        .flat_map(|mark| memchr::memmem::find_iter(text.as_bytes(), mark.as_bytes()))
        .collect();
    marks.sort_unstable();
    let mut parts = Vec::new();
    let mut done = 0;
    for mark in marks {
        if mark < done {
            continue;
        }
        let start = text[..mark].rfind('\n').map_or(0, |at| at + 1).max(done);
        // The code can be on the line after its key.
        let line = text[mark..].find('\n').map_or(text.len(), |at| mark + at + 1);
        let end = text[line..].find('\n').map_or(text.len(), |at| line + at);
        parts.push((start, &text[start..end]));
        done = end;
    }
    parts
}

/// The most specific code: the first that is neither a wrapper nor the consequence of an earlier error.
pub fn most_specific<'a, 'b>(stated: &'b [Stated<'a>]) -> Option<&'b Stated<'a>> {
    stated.iter().min_by_key(|found| vagueness(found))
}

/// Wrappers of several errors, each of which may be a wrapper.
const WRAPS_SEVERAL: &[&str] = &["MultipleErrorsOccurred", "DeploymentFailed"];

/// How vague a code is: 0 for a code that names the failure, more for unknown codes, consequences of an
/// earlier error and wrappers.
pub fn vagueness(found: &Stated<'_>) -> u8 {
    match found.known.map(|known| known.class) {
        Some(Class::Wrapper) if WRAPS_SEVERAL.contains(&found.code) => 4,
        Some(Class::Wrapper) => 3,
        Some(Class::Echo) => 2,
        None => 1,
        Some(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(text: &str) -> Option<String> {
        most_specific(&stated(text)).map(|found| found.code.to_owned())
    }

    #[test]
    fn the_code_inside_a_wrapper_is_the_one_that_counts() {
        let text = r#"{"error":{"code":"ResourceOperationFailure","details":[{"code":"VMExtensionProvisioningError"}]}}"#;
        assert_eq!(best(text).as_deref(), Some("VMExtensionProvisioningError"));
    }

    #[test]
    fn a_code_is_found_in_every_notation() {
        for text in [
            r#"Code="SkuNotAvailable" Message="..""#,
            r#"{\"code\": \"SkuNotAvailable\"}"#,
            r#""code"=>"SkuNotAvailable""#,
            "ERROR CODE: SkuNotAvailable",
            "with error: SkuNotAvailable: the size",
            "(SkuNotAvailable) the size",
        ] {
            assert_eq!(best(text).as_deref(), Some("SkuNotAvailable"), "{text}");
        }
    }

    #[test]
    fn an_echo_never_hides_the_first_error() {
        let text = r#"code: "OperationNotAllowed" .. then "code": "NicReservedForAnotherVm""#;
        assert_eq!(best(text).as_deref(), Some("OperationNotAllowed"));
        assert_eq!(
            best("error: NicReservedForAnotherVm: Nic(s)").as_deref(),
            Some("NicReservedForAnotherVm")
        );
    }

    #[test]
    fn prose_is_no_code() {
        assert_eq!(best("Deployment failed. CategoryInfo NotSpecified Exception"), None);
    }

    #[test]
    fn the_table_is_in_order() {
        let mut names: Vec<&str> = CODES.iter().map(|known| known.code).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CODES.len());
    }
}
