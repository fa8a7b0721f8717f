//! The cause of a fault, by the role of its endpoint. This table is what carries over to texts that were
//! never seen: a new wording needs a line in the vocabulary, a new endpoint a line in the roles.

use bringup_contract::Cause;

use crate::fault::Fault;
use crate::role::Role;
use crate::rule::Strength;

/// The cause of a fault, and how much it proves it. `None`: the fault alone says nothing about a
/// bootstrap.
pub(crate) fn decide(fault: Fault, role: Role, code: Option<i32>) -> Option<(Cause, Strength)> {
    use Strength::{Fair, Strong, Weak};
    let role = by_step(role, code);
    Some(match (fault, role) {
        (Fault::NameNotFound | Fault::NameServerSilent, Role::ApiServer) => {
            (Cause::ApiServerDnsFailure, Strong)
        }
        (Fault::NameNotFound | Fault::NameServerSilent, Role::Proxy) => {
            (Cause::ProxyMisconfigured, Strong)
        }
        (Fault::NameNotFound, Role::Unnamed) => (Cause::DnsFailure, Fair),
        (Fault::NameNotFound, _) => (Cause::DnsFailure, Strong),
        (Fault::NameServerSilent, _) => (Cause::DnsFailure, Fair),

        (
            Fault::Refused
            | Fault::TimedOut
            | Fault::NoRoute
            | Fault::Reset
            | Fault::ServerError
            | Fault::Throttled,
            Role::Imds,
        ) => (Cause::ImdsUnreachable, Fair),
        (
            Fault::Refused | Fault::TimedOut | Fault::NoRoute | Fault::Reset | Fault::ServerError,
            Role::WireServer,
        ) => (Cause::WireServerUnreachable, Fair),
        (Fault::Refused | Fault::TimedOut | Fault::NoRoute, Role::ApiServer) => {
            (Cause::ApiServerUnreachable, Strong)
        }
        (
            Fault::Reset | Fault::ServerError | Fault::Throttled | Fault::Handshake,
            Role::ApiServer,
        ) => (Cause::ApiServerUnreachable, Fair),
        (
            Fault::Refused | Fault::TimedOut | Fault::ServerError,
            Role::OwnApiServer | Role::Etcd,
        ) => (Cause::ControlPlaneNotReady, Fair),
        (Fault::Refused | Fault::TimedOut, Role::Kubelet) => (Cause::KubeletFailure, Fair),
        (Fault::Refused | Fault::TimedOut | Fault::Reset | Fault::Denied, Role::Runtime) => {
            (Cause::ContainerRuntimeFailure, Fair)
        }
        (Fault::Refused | Fault::TimedOut | Fault::NoRoute, Role::Registry) => {
            (Cause::RegistryUnreachable, Strong)
        }
        (Fault::ServerError, Role::Registry) => (Cause::RegistryUnreachable, Fair),
        (Fault::Refused | Fault::TimedOut | Fault::NoRoute, Role::Dns) => (Cause::DnsFailure, Fair),
        (
            Fault::Refused
            | Fault::TimedOut
            | Fault::NoRoute
            | Fault::Reset
            | Fault::ServerError
            | Fault::Forbidden,
            Role::Proxy,
        )
        | (Fault::ProxyUnauthorized, _) => (Cause::ProxyMisconfigured, Fair),
        (
            Fault::Refused | Fault::TimedOut | Fault::NoRoute,
            Role::Packages | Role::Download | Role::Identity | Role::Arm,
        ) => (Cause::EgressBlocked, Strong),
        (Fault::Refused | Fault::TimedOut | Fault::NoRoute, Role::Outside) => {
            (Cause::EgressBlocked, Fair)
        }
        (Fault::Reset, Role::Registry | Role::Packages | Role::Download | Role::Outside) => {
            (Cause::DownloadInterrupted, Fair)
        }

        (Fault::Untrusted, Role::ApiServer | Role::OwnApiServer) => {
            (Cause::ClusterCaMismatch, Fair)
        }
        (Fault::Untrusted, _) => (Cause::TlsTrustFailure, Strong),
        (Fault::Handshake, Role::Runtime | Role::Kubelet | Role::Etcd | Role::Local) => {
            return None;
        }
        (Fault::Handshake, _) => (Cause::TlsTrustFailure, Fair),
        (Fault::NotInTime, _) => (Cause::ClockSkew, Fair),

        (Fault::BadRequest, Role::WireServer) => (Cause::GuestAgentUnresponsive, Fair),
        (Fault::BadRequest, Role::Arm) => (Cause::InvalidRequest, Weak),
        (Fault::Unauthorized, Role::ApiServer) => (Cause::BootstrapTokenInvalid, Fair),
        (Fault::Unauthorized | Fault::Forbidden, Role::Registry) => {
            (Cause::RegistryUnauthorized, Fair)
        }
        (Fault::Unauthorized, Role::Identity) => (Cause::CredentialExpired, Fair),
        (Fault::Unauthorized | Fault::Forbidden, Role::Arm) => (Cause::AuthorizationFailed, Fair),
        (Fault::Forbidden, Role::Packages | Role::Outside | Role::Download) => {
            (Cause::EgressBlocked, Fair)
        }
        (Fault::NotFound, Role::Registry | Role::Packages | Role::Download) => {
            (Cause::ArtifactMissing, Fair)
        }
        (Fault::NotFound, Role::Outside | Role::Unnamed) => (Cause::ArtifactMissing, Weak),
        (Fault::Throttled, Role::Registry) => (Cause::RegistryThrottled, Strong),
        (Fault::Throttled, Role::Arm) => (Cause::ArmThrottled, Strong),
        (Fault::ServerError, Role::Packages) => (Cause::PackageRepositoryFailure, Fair),
        (Fault::ServerError, Role::Arm) => (Cause::PlatformTransient, Fair),
        (Fault::ServerError, Role::Download) => (Cause::DownloadInterrupted, Fair),

        (Fault::NoSpace, _) => (Cause::DiskFull, Strong),
        (Fault::KernelLimit, _) => (Cause::KernelMismatch, Fair),
        (Fault::ReadOnly | Fault::Denied, Role::Unnamed | Role::Local) => {
            (Cause::PermissionDenied, Fair)
        }
        (Fault::ReadOnly, _) => (Cause::PermissionDenied, Fair),
        (Fault::ProgramMissing, _) => (Cause::BinaryMissing, Fair),
        (Fault::WrongArchitecture, _) => (Cause::WrongArchitecture, Strong),
        (Fault::OutOfMemory, _) => (Cause::OutOfMemory, Fair),
        (Fault::LockHeld | Fault::PackagesBroken, _) => (Cause::PackageManagerLocked, Fair),
        (Fault::RepositoryBroken, _) => (Cause::PackageRepositoryFailure, Fair),
        (Fault::DownloadFailed, Role::Download | Role::Packages | Role::Outside) => {
            (Cause::EgressBlocked, Fair)
        }
        (Fault::Corrupt, _) => (Cause::DownloadInterrupted, Fair),
        (Fault::ScriptBroken, _) => (Cause::ScriptDefect, Fair),
        (Fault::DiskBroken, _) => (Cause::OsProvisioningFailure, Weak),
        (Fault::KernelPart, _) => (Cause::KernelMismatch, Fair),
        (Fault::OutOfTime, _) => (Cause::TimeBudgetExhausted, Weak),
        _ => return None,
    })
}

/// The exit code names the step, and the step its endpoint: 50 is the check that the internet can be reached,
/// whatever address it tries; 51 to 53 are about the API server.
fn by_step(role: Role, code: Option<i32>) -> Role {
    match (code, role) {
        (Some(50), Role::Registry | Role::Unnamed) => Role::Outside,
        (Some(51..=53), Role::Outside | Role::Unnamed) => Role::ApiServer,
        _ => role,
    }
}
