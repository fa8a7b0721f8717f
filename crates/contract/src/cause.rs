//! The causes that a verdict can name. This table is the only source for reason, family, owner, whether the
//! same attempt may work later, and meaning.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::open::Word;
use crate::words;

words! {
    /// The area that a cause belongs to.
    #[derive(Default)]
    pub enum Family {
        /// Quota, capacity, sizes, addresses.
        Capacity = "capacity",
        /// The configuration that the node was given.
        Config = "config",
        /// Identities, roles, tokens and certificates.
        Identity = "identity",
        /// The content of the image.
        Image = "image",
        /// Services and addresses that the node must reach.
        Network = "network",
        /// Programs and resources of the machine.
        Node = "node",
        /// Azure itself.
        Platform = "platform",
        /// The evidence does not show the area.
        #[default]
        Unknown = "unknown",
    }
}

words! {
    /// Whether the same attempt may work later, without any change.
    #[derive(Default)]
    pub enum Retryable {
        /// The same attempt usually works later.
        Yes = "yes",
        /// The same attempt may work later.
        #[default]
        Maybe = "maybe",
        /// The same attempt fails again.
        No = "no",
    }
}

/// The error for a name that is not a known cause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a cause that bringup knows")]
pub struct UnknownCause(String);

macro_rules! causes {
    ($($name:ident: $family:ident, $owner:literal, $retryable:ident, $meaning:literal;)*) => {
        /// The reason why a node did not come up.
        #[allow(clippy::doc_markdown, reason = "the meanings are also printed, without markup")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {
            $(#[doc = $meaning] $name,)*
        }

        impl Cause {
            /// Every cause, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name that conditions, metrics and JSON carry.
            pub const fn reason(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The area that the cause belongs to.
            pub const fn family(self) -> Family {
                match self { $(Self::$name => Family::$family,)* }
            }

            /// The people or the system that can fix it, such as `image owner`.
            pub const fn owner(self) -> &'static str {
                match self { $(Self::$name => $owner,)* }
            }

            /// Whether the same attempt may work later.
            pub const fn retryable(self) -> Retryable {
                match self { $(Self::$name => Retryable::$retryable,)* }
            }

            /// The meaning, as a sentence for users.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }
        }
    };
}

causes! {
    BinaryMissing: Image, "image owner", No,
        "A program the bootstrap calls is absent from the image, not executable, or not in PATH.";
    ImageContractDrift: Image, "image owner", No,
        "Image, scripts and provisioner disagree: a removed kubelet flag, a variable no longer set, an older script on a newer image, an image that is not a node image.";
    ScriptDefect: Image, "image owner", No,
        "The bootstrap script itself is wrong: undefined variable, syntax error, bad query, swallowed error.";
    EgressBlocked: Network, "network team", No,
        "Outbound packets to the internet or to a required endpoint are dropped, refused or answered 403 by a firewall, NSG, route or NAT problem.";
    DnsFailure: Network, "network team", No,
        "A name other than the API server's does not resolve, or the DNS server does not answer.";
    ApiServerDnsFailure: Network, "network team", No,
        "The API server's name does not resolve: private zone not linked, custom DNS without a forwarder.";
    ApiServerUnreachable: Network, "network team", Maybe,
        "The API server's name resolves, but it cannot be reached or does not answer: authorized ranges, firewall, private link, control plane down or overloaded.";
    TlsTrustFailure: Network, "network team", No,
        "A certificate is not trusted: TLS inspection, missing proxy CA, wrong cluster CA, connection reset during the handshake.";
    ProxyMisconfigured: Network, "network team", No,
        "The HTTP proxy refuses, is not resolvable, wants credentials, or is not applied.";
    ImdsUnreachable: Network, "network team", Maybe,
        "The instance metadata service 169.254.169.254 is refused, black-holed or throttled.";
    WireServerUnreachable: Network, "network team", Maybe,
        "168.63.129.16 is not reachable from the guest.";
    IdentityNotAssigned: Identity, "cluster owner", No,
        "The managed identity that the node wants to use is not bound to the VM.";
    RegistryUnauthorized: Identity, "cluster owner", No,
        "The registry was reached, and refused: no AcrPull, token without the action, anonymous pull denied.";
    RegistryUnreachable: Network, "network team", Maybe,
        "The container registry cannot be reached: private link, firewall, registry network rules.";
    ArtifactMissing: Image, "image owner", No,
        "A package version, blob, image tag or URL does not exist (404, manifest unknown, version not found).";
    DownloadInterrupted: Network, "network team", Yes,
        "A download started and broke off or was corrupt.";
    PackageManagerLocked: Node, "image owner", Yes,
        "apt/dpkg/rpm lock held, or the package database was left half-configured.";
    PackageRepositoryFailure: Node, "image owner", Maybe,
        "The package repository is unsigned, has an unknown key, is broken, or slow.";
    BootstrapTokenInvalid: Identity, "cluster owner", No,
        "The join token is expired, unknown, of the wrong kind, or the node is Unauthorized with it.";
    TlsBootstrapPending: Identity, "cluster owner", Maybe,
        "The node's certificate signing request was not approved or signed, or RBAC refuses it.";
    ClusterCaMismatch: Identity, "cluster owner", No,
        "The cluster CA the node was given does not match the API server's.";
    ClockSkew: Node, "platform", Maybe,
        "The node's clock is off, so certificates or signatures are not yet valid or expired.";
    NodeIdentityConflict: Identity, "cluster owner", No,
        "Node name or provider id does not match, or a node of that name exists.";
    DiskFull: Node, "node pool owner", No,
        "No space (or inodes) left.";
    DiskUnsupported: Capacity, "node pool owner", No,
        "The disk choice does not fit the VM size: ephemeral OS disk, cache size, disk type, mount failure.";
    VmTooSmall: Capacity, "node pool owner", No,
        "The VM size has too few cores or too little memory for what the bootstrap demands (kubeadm preflight NumCPU, Mem).";
    OutOfMemory: Node, "node pool owner", No,
        "The OOM killer or a memory limit ended a bootstrap process.";
    PermissionDenied: Node, "image owner", No,
        "A file or mount refuses: noexec, SELinux, sudo, read-only file system.";
    KernelMismatch: Node, "image owner", No,
        "A kernel module, sysctl, cgroup version or kernel limit is missing or wrong.";
    GpuDriverFailure: Node, "image owner", Maybe,
        "GPU or other accelerator driver could not be downloaded, installed, loaded or matched.";
    GpuHardwareFault: Node, "platform", Yes,
        "The device itself is bad: corrupted info ROM, Xid, not found on the bus.";
    ContainerRuntimeFailure: Node, "image owner", Maybe,
        "containerd or docker does not start, is not ready, or its configuration is of the wrong schema.";
    CniFailure: Node, "cluster owner", Maybe,
        "The network plugin is not there or not initialised.";
    KubeletFailure: Node, "cluster owner", Maybe,
        "kubelet does not start or does not get healthy, and no better cause is visible.";
    KubeletConfigInvalid: Node, "cluster owner", No,
        "kubelet refuses a flag, a label, or its configuration file. Where the flag was removed in this kubelet and the scripts still pass it, ImageContractDrift is the better cause.";
    VersionSkew: Image, "cluster owner", No,
        "kubelet and control plane versions do not go together.";
    ControlPlaneNotReady: Node, "cluster owner", Maybe,
        "On a control-plane machine: static pods, etcd or kubeadm's control-plane phases did not come up.";
    ConfigRejected: Config, "provisioner", No,
        "The node configuration (AKSNodeConfig, template parameter, secret reference) is missing, malformed or of an unsupported version.";
    UserDataInvalid: Config, "provisioner", No,
        "cloud-init, Ignition or cloudbase-init could not use the user data, or a user command in it failed.";
    ProvisionerNeverStarted: Config, "provisioner", Maybe,
        "Nothing ran the bootstrap: unit disabled, launcher exited without a config, script file never placed.";
    TimeBudgetExhausted: Node, "see the slow step", Maybe,
        "The bootstrap ran out of time in a step named by the evidence; no better cause is visible.";
    RebootInterrupted: Node, "platform", Yes,
        "A reboot or shutdown interrupted the bootstrap.";
    OsProvisioningFailure: Platform, "image owner", Maybe,
        "The OS did not report ready to Azure: OSProvisioningTimedOut, OSProvisioningClientError, OSProvisioningInternalError, an image that is not generalised, a crash at boot.";
    GuestAgentUnresponsive: Platform, "image owner", Maybe,
        "The VM agent does not report status.";
    ExtensionHandlerFault: Platform, "platform", Maybe,
        "The extension's own handler failed (install, enable, status file, wrong OS or architecture), before or besides the user's script.";
    ExtensionTimeout: Platform, "see the evidence", Maybe,
        "The extension did not finish in time and nothing says why.";
    QuotaExceeded: Capacity, "subscription owner", No,
        "A core, family, spot, or resource quota is used up.";
    SkuUnavailable: Capacity, "node pool owner", No,
        "The size is not offered to this subscription in this region or zone.";
    AllocationFailed: Capacity, "node pool owner", Yes,
        "Azure has no physical capacity now, or the request is overconstrained.";
    SubnetExhausted: Capacity, "network team", No,
        "No free address in the subnet, or a private address is already taken.";
    NicReserved: Capacity, "provisioner", Yes,
        "The NIC is held for another VM for 180 s; usually the echo of an earlier failure, which is then the cause.";
    PolicyDenied: Platform, "subscription owner", No,
        "Azure Policy or a lock refuses the request.";
    AuthorizationFailed: Identity, "subscription owner", No,
        "The caller lacks an Azure role for the request or a linked scope.";
    InvalidRequest: Config, "provisioner", No,
        "ARM rejects the request itself: parameter, property change, not supported, image not found.";
    ArmThrottled: Platform, "provisioner", Yes,
        "ARM or a resource provider answers 429 / too many requests, or an operation was preempted by another.";
    PlatformTransient: Platform, "platform", Yes,
        "An internal or transient error of Azure; the same request later works.";
    CredentialExpired: Identity, "cluster owner", No,
        "A secret, certificate, signed URL or token that is used to sign in has expired or is wrong: a client secret, a SAS, a client certificate of kubelet. A join token is BootstrapTokenInvalid, a missing role AuthorizationFailed.";
    SubscriptionNotUsable: Platform, "subscription owner", No,
        "The subscription cannot be used for this: disabled or past due, a resource provider or feature that is not registered, marketplace terms that are not accepted.";
    SpotEvicted: Capacity, "node pool owner", Yes,
        "Azure evicted the spot VM before or while it bootstrapped.";
    RegistryThrottled: Network, "cluster owner", Yes,
        "The container registry answers that there were too many requests.";
    WrongArchitecture: Image, "node pool owner", No,
        "Image, program or extension is for another processor architecture or VM generation than the VM.";
    SecureBootRefused: Image, "image owner", No,
        "Secure Boot refuses a boot loader, kernel or kernel module that is not signed by a trusted key.";
    MachineNotClean: Image, "image owner", No,
        "The machine carries leftovers of an earlier bootstrap: files of an earlier join, ports in use, a node that has already joined.";
    GuestNetworkMissing: Platform, "platform", Maybe,
        "The guest has no working network interface: no NIC found, no DHCP answer.";
    Unknown: Unknown, "on-call", Maybe,
        "The evidence does not tell.";
}

impl Word for Cause {
    const ALL: &'static [Self] = Self::ALL;

    fn word(self) -> &'static str {
        self.reason()
    }
}

#[allow(clippy::derivable_impls, reason = "the macro that declares the causes marks none of them")]
impl Default for Cause {
    fn default() -> Self {
        Self::Unknown
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.reason())
    }
}

impl FromStr for Cause {
    type Err = UnknownCause;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|cause| cause.reason().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownCause(text.to_owned()))
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reason())
    }
}

impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_read_as_it_is_written() {
        for cause in Cause::ALL {
            assert_eq!(cause.reason().parse::<Cause>().unwrap(), *cause);
            assert!(!cause.meaning().is_empty());
        }
        assert!("NoSuchThing".parse::<Cause>().is_err());
    }
}
