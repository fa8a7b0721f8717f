//! The cause of a fault, by the role of its endpoint. This table is what carries over to texts that were
//! never seen: a new wording needs a line in the vocabulary, a new endpoint a line in the roles.

#![allow(clippy::enum_glob_use, reason = "a table of names that all come from these three")]

use bringup_contract::Cause::{self, *};

use crate::fault::Fault::{self, *};
use crate::role::Role::{self, *};
use crate::rule::Strength::{self, Fair, Strong, Weak};

/// Faults, the roles of endpoints (none: any), the cause, and how much it is proven.
type Row = (&'static [Fault], &'static [Role], Cause, Strength);

/// No connection comes about.
const UNREACHED: &[Fault] = &[Refused, TimedOut, NoRoute];
/// A service does not do its part.
const FAILING: &[Fault] = &[Refused, TimedOut, NoRoute, Reset, ServerError];

/// The first row that fits decides. What fits none says nothing about a bootstrap.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    (&[NameNotFound, NameServerSilent], &[ApiServer], ApiServerDnsFailure, Strong),
    (&[NameNotFound, NameServerSilent], &[Proxy], ProxyMisconfigured, Strong),
    (&[NameNotFound], &[Unnamed], DnsFailure, Fair),
    (&[NameNotFound], &[], DnsFailure, Strong),
    (&[NameServerSilent], &[], DnsFailure, Fair),

    (&[ProxyUnauthorized], &[], ProxyMisconfigured, Fair),
    (FAILING, &[Proxy], ProxyMisconfigured, Fair),
    (&[Forbidden], &[Proxy], ProxyMisconfigured, Fair),
    (FAILING, &[Imds], ImdsUnreachable, Fair),
    (&[Throttled], &[Imds], ImdsUnreachable, Fair),
    (FAILING, &[WireServer], WireServerUnreachable, Fair),
    (&[BadRequest], &[WireServer], GuestAgentUnresponsive, Fair),
    (UNREACHED, &[ApiServer], ApiServerUnreachable, Strong),
    (&[Reset, ServerError, Throttled, Handshake], &[ApiServer], ApiServerUnreachable, Fair),
    (&[Refused, TimedOut, ServerError], &[OwnApiServer, Etcd], ControlPlaneNotReady, Fair),
    (&[Refused, TimedOut], &[Kubelet], KubeletFailure, Fair),
    (&[Refused, TimedOut, Reset, Denied], &[Runtime], ContainerRuntimeFailure, Fair),
    (UNREACHED, &[Registry], RegistryUnreachable, Strong),
    (&[ServerError], &[Registry], RegistryUnreachable, Fair),
    (UNREACHED, &[Dns], DnsFailure, Fair),
    (UNREACHED, &[Packages, Download, Identity, Arm], EgressBlocked, Strong),
    (UNREACHED, &[Outside], EgressBlocked, Fair),
    (&[DownloadFailed], &[Download, Packages, Outside], EgressBlocked, Fair),
    (&[Reset], &[Registry, Packages, Download, Outside], DownloadInterrupted, Fair),
    (&[ServerError], &[Download], DownloadInterrupted, Fair),
    (&[ServerError], &[Packages], PackageRepositoryFailure, Fair),
    (&[ServerError], &[Arm], PlatformTransient, Fair),

    (&[Untrusted], &[ApiServer, OwnApiServer], ClusterCaMismatch, Fair),
    (&[Untrusted], &[], TlsTrustFailure, Strong),
    (&[Handshake], &[Proxy, Imds, WireServer, Registry, Packages, Download, Identity, Arm, Dns, Outside, Unnamed], TlsTrustFailure, Fair),
    (&[NotInTime], &[], ClockSkew, Fair),

    (&[Unauthorized], &[ApiServer], BootstrapTokenInvalid, Fair),
    (&[Unauthorized, Forbidden], &[Registry], RegistryUnauthorized, Fair),
    (&[Unauthorized], &[Identity], CredentialExpired, Fair),
    (&[Unauthorized, Forbidden], &[Arm], AuthorizationFailed, Fair),
    (&[Forbidden], &[Packages, Outside, Download], EgressBlocked, Fair),
    (&[NotFound], &[Registry, Packages, Download], ArtifactMissing, Fair),
    (&[NotFound], &[Outside, Unnamed], ArtifactMissing, Weak),
    (&[Throttled], &[Registry], RegistryThrottled, Strong),
    (&[Throttled], &[Arm], ArmThrottled, Strong),

    (&[NoSpace], &[], DiskFull, Strong),
    (&[KernelLimit, KernelPart], &[], KernelMismatch, Fair),
    (&[ReadOnly], &[], PermissionDenied, Fair),
    (&[Denied], &[Unnamed, Local], PermissionDenied, Fair),
    (&[ProgramMissing], &[], BinaryMissing, Fair),
    (&[Fault::WrongArchitecture], &[], Cause::WrongArchitecture, Strong),
    (&[Fault::OutOfMemory], &[], Cause::OutOfMemory, Fair),
    (&[LockHeld, PackagesBroken], &[], PackageManagerLocked, Fair),
    (&[RepositoryBroken], &[], PackageRepositoryFailure, Fair),
    (&[Corrupt], &[], DownloadInterrupted, Fair),
    (&[ScriptBroken], &[], ScriptDefect, Fair),
    (&[DiskBroken], &[], OsProvisioningFailure, Weak),
    (&[OutOfTime], &[], TimeBudgetExhausted, Weak),
];

/// The cause of a fault, and how much it is proven. `None`: the fault alone says nothing.
pub(crate) fn decide(fault: Fault, role: Role, code: Option<i32>) -> Option<(Cause, Strength)> {
    let role = by_step(role, code);
    TABLE
        .iter()
        .find(|(faults, roles, _, _)| {
            faults.contains(&fault) && (roles.is_empty() || roles.contains(&role))
        })
        .map(|(_, _, cause, strength)| (*cause, *strength))
}

/// Whether the cause of a fault depends on the endpoint. Where it does not, no endpoint has to be found.
pub(crate) fn depends_on_role(fault: Fault) -> bool {
    TABLE
        .iter()
        .find(|(faults, ..)| faults.contains(&fault))
        .is_some_and(|(_, roles, ..)| !roles.is_empty())
}

/// The exit code names the step, and the step its endpoint: 50 is the check that the internet can be reached,
/// whatever address it tries; 51 to 53 are about the API server.
fn by_step(role: Role, code: Option<i32>) -> Role {
    match (code, role) {
        (Some(50), Registry | Unnamed) => Outside,
        (Some(51..=53), Outside | Unnamed) => ApiServer,
        _ => role,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_fault_has_another_cause_for_another_endpoint() {
        let refused = |role| decide(Refused, role, None).map(|(cause, _)| cause);
        assert_eq!(refused(ApiServer), Some(ApiServerUnreachable));
        assert_eq!(refused(Registry), Some(RegistryUnreachable));
        assert_eq!(refused(Runtime), Some(ContainerRuntimeFailure));
        assert_eq!(refused(Local), None);
        assert_eq!(refused(Unnamed), None);
    }

    #[test]
    fn the_code_of_a_step_names_its_endpoint() {
        let unnamed = |code| decide(TimedOut, Unnamed, code).map(|(cause, _)| cause);
        assert_eq!(unnamed(Some(50)), Some(EgressBlocked));
        assert_eq!(unnamed(Some(51)), Some(ApiServerUnreachable));
        assert_eq!(unnamed(Some(34)), None);
    }

    #[test]
    fn every_row_is_reached() {
        for (index, (faults, roles, _, _)) in TABLE.iter().enumerate() {
            let is_covered = |fault: &Fault, role: &Role| {
                TABLE[..index].iter().any(|(others, of, _, _)| {
                    others.contains(fault) && (of.is_empty() || of.contains(role))
                })
            };
            let all = if roles.is_empty() { Role::ALL } else { roles };
            let is_reached =
                faults.iter().any(|fault| all.iter().any(|role| !is_covered(fault, role)));
            assert!(is_reached, "{faults:?} {roles:?}");
        }
    }
}
