//! The exit codes of `wait`. These numbers are a class of their own: they are not exit codes of the AKS
//! scripts, and the `kind` in the summary tells the two classes apart.

use bringup_contract::Cause;

macro_rules! exits {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $word:literal;)*) => {
        /// How a wait ended.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Exit {
            $($(#[$doc])* $name,)*
        }

        impl Exit {
            /// All exit codes.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// The number, which is the same on every system.
            pub(crate) fn number(self) -> u8 {
                match self { $(Self::$name => $number,)* }
            }

            /// The name, which the summary carries.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

exits! {
    /// The sentinel exists.
    Succeeded = 0, "SUCCEEDED";
    /// The node joined, but the bootstrap did not write the sentinel.
    JoinedWithoutSentinel = 3, "JOINED_WITHOUT_SENTINEL";
    /// The time limit is over, and the bootstrap still runs.
    StillRunning = 10, "STILL_RUNNING";
    /// The wait never saw a sign of a bootstrap.
    NeverStarted = 11, "NEVER_STARTED";
    /// The time limit is over, and the state of the bootstrap cannot be determined.
    StateUnknown = 12, "STATE_UNKNOWN";
    /// The machine came up without user data.
    NotDelivered = 13, "USER_DATA_NOT_DELIVERED";
    /// The bootstrap ended without a sentinel; the cause is unknown or has no number.
    EndedWithoutSentinel = 20, "ENDED_WITHOUT_SENTINEL";
    /// The user data could not be used.
    UserDataInvalid = 21, "USER_DATA_INVALID";
    /// A command before kubeadm failed.
    PreCommandFailed = 22, "PRE_COMMAND_FAILED";
    /// A program is missing.
    BinaryMissing = 23, "BINARY_MISSING";
    /// A download failed.
    DownloadFailed = 24, "DOWNLOAD_FAILED";
    /// A name does not resolve.
    DnsFailure = 25, "DNS_FAILURE";
    /// The API server cannot be reached or is not trusted.
    ApiServerUnreachable = 26, "API_SERVER_UNREACHABLE";
    /// The token or the authority of the cluster is not the right one.
    CredentialsRefused = 27, "CREDENTIALS_REFUSED";
    /// kubeadm's checks, the kernel or the container runtime refuse the node.
    PreflightFailed = 28, "PREFLIGHT_FAILED";
    /// kubelet does not start or gets no certificate.
    KubeletFailure = 29, "KUBELET_FAILURE";
    /// Versions are incompatible.
    VersionSkew = 30, "VERSION_SKEW";
    /// On a control-plane machine, the control plane does not start.
    ControlPlaneNotReady = 31, "CONTROL_PLANE_NOT_READY";
    /// Disk or memory is used up.
    ResourcesExhausted = 32, "RESOURCES_EXHAUSTED";
    /// A command after kubeadm failed.
    PostCommandFailed = 33, "POST_COMMAND_FAILED";
    /// Another node has this name.
    NodeIdentityConflict = 34, "NODE_IDENTITY_CONFLICT";
    /// A program wrote the failure sentinel.
    FailureSentinel = 35, "FAILURE_SENTINEL";
    /// The command line cannot be parsed.
    Usage = 64, "USAGE";
    /// A defect of this program.
    Internal = 70, "INTERNAL";
    /// The wait was interrupted.
    Interrupted = 75, "INTERRUPTED";
    /// The permission to read the sentinel is missing.
    NoPermission = 77, "NO_PERMISSION";
}

impl Exit {
    /// The exit code of a cause. Causes without an exit code of their own share
    /// [`Exit::EndedWithoutSentinel`]; the summary names the cause in any case.
    pub(crate) fn of(cause: Cause) -> Self {
        match cause {
            Cause::UserDataInvalid => Self::UserDataInvalid,
            Cause::BinaryMissing => Self::BinaryMissing,
            Cause::EgressBlocked | Cause::DownloadInterrupted | Cause::ArtifactMissing => {
                Self::DownloadFailed
            }
            Cause::DnsFailure => Self::DnsFailure,
            Cause::ApiServerUnreachable | Cause::TlsTrustFailure => Self::ApiServerUnreachable,
            Cause::BootstrapTokenInvalid | Cause::ClusterCaMismatch => Self::CredentialsRefused,
            Cause::KernelMismatch | Cause::ContainerRuntimeFailure => Self::PreflightFailed,
            Cause::KubeletFailure | Cause::TlsBootstrapPending => Self::KubeletFailure,
            Cause::VersionSkew => Self::VersionSkew,
            Cause::ControlPlaneNotReady => Self::ControlPlaneNotReady,
            Cause::DiskFull | Cause::OutOfMemory => Self::ResourcesExhausted,
            Cause::NodeIdentityConflict => Self::NodeIdentityConflict,
            Cause::ImageContractDrift
            | Cause::ScriptDefect
            | Cause::ApiServerDnsFailure
            | Cause::ProxyMisconfigured
            | Cause::ImdsUnreachable
            | Cause::WireServerUnreachable
            | Cause::IdentityNotAssigned
            | Cause::RegistryUnauthorized
            | Cause::RegistryUnreachable
            | Cause::PackageManagerLocked
            | Cause::PackageRepositoryFailure
            | Cause::ClockSkew
            | Cause::DiskUnsupported
            | Cause::VmTooSmall
            | Cause::PermissionDenied
            | Cause::GpuDriverFailure
            | Cause::GpuHardwareFault
            | Cause::CniFailure
            | Cause::KubeletConfigInvalid
            | Cause::ConfigRejected
            | Cause::ProvisionerNeverStarted
            | Cause::TimeBudgetExhausted
            | Cause::RebootInterrupted
            | Cause::OsProvisioningFailure
            | Cause::GuestAgentUnresponsive
            | Cause::ExtensionHandlerFault
            | Cause::ExtensionTimeout
            | Cause::QuotaExceeded
            | Cause::SkuUnavailable
            | Cause::AllocationFailed
            | Cause::SubnetExhausted
            | Cause::NicReserved
            | Cause::PolicyDenied
            | Cause::AuthorizationFailed
            | Cause::InvalidRequest
            | Cause::ArmThrottled
            | Cause::PlatformTransient
            | Cause::CredentialExpired
            | Cause::SubscriptionNotUsable
            | Cause::SpotEvicted
            | Cause::RegistryThrottled
            | Cause::WrongArchitecture
            | Cause::SecureBootRefused
            | Cause::MachineNotClean
            | Cause::GuestNetworkMissing
            | Cause::Unknown => Self::EndedWithoutSentinel,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_that_are_documented_and_each_stands_once() {
        let numbers: Vec<u8> = Exit::ALL.iter().map(|exit| exit.number()).collect();
        assert_eq!(
            numbers,
            [
                0, 3, 10, 11, 12, 13, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34,
                35, 64, 70, 75, 77
            ]
        );
        let page = include_str!("../../../../docs/node-wait.md");
        for exit in Exit::ALL {
            let row = format!("| {} | {} |", exit.number(), exit.name());
            assert!(page.contains(&row), "docs/node-wait.md has no row {row}");
        }
    }

    #[test]
    fn every_cause_has_a_number_and_only_those_of_the_table_have_their_own() {
        let own = [
            ("UserDataInvalid", 21),
            ("BinaryMissing", 23),
            ("EgressBlocked", 24),
            ("DownloadInterrupted", 24),
            ("ArtifactMissing", 24),
            ("DnsFailure", 25),
            ("ApiServerUnreachable", 26),
            ("TlsTrustFailure", 26),
            ("BootstrapTokenInvalid", 27),
            ("ClusterCaMismatch", 27),
            ("KernelMismatch", 28),
            ("ContainerRuntimeFailure", 28),
            ("KubeletFailure", 29),
            ("TlsBootstrapPending", 29),
            ("VersionSkew", 30),
            ("ControlPlaneNotReady", 31),
            ("DiskFull", 32),
            ("OutOfMemory", 32),
            ("NodeIdentityConflict", 34),
        ];
        for cause in Cause::ALL {
            let found = own.iter().find(|(name, _)| *name == cause.reason());
            let expected = found.map_or(20, |(_, number)| *number);
            assert_eq!(Exit::of(*cause).number(), expected, "{cause}");
        }
    }
}
