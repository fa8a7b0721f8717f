//! The course of a boot: what it achieved, and what that makes undone. A failure that a later step got past
//! explains nothing; a retry that came right is no failure; what follows a node that is ready is another
//! story.

use bringup_contract::Cause;

use crate::matcher::{Finding, Page};
use crate::role;
use crate::rule::{Sign, Strength};

/// What a boot can achieve, in the order in which it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Achieved {
    /// The bootstrap goes on: what was retried before came right.
    GoesOn,
    /// An endpoint answered.
    Answered,
    /// cloud-init ran to its end.
    UserData,
    /// The package manager did what it was asked.
    Packages,
    /// An image was pulled.
    Image,
    /// The container runtime runs.
    Runtime,
    /// The node has its certificate.
    Certificate,
    /// The bootstrap scripts ended well.
    Scripts,
    /// The node is an object of the cluster.
    Registered,
    /// The node is ready.
    Ready,
}

/// A wording in which a program reports that something was achieved.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) achieved: Achieved,
    pub(crate) sign: Sign,
}

const fn of(achieved: Achieved, all: &'static [&'static str]) -> Progress {
    Progress { achieved, sign: Sign::new(0, all) }
}

/// Words that turn a statement into its opposite, or into a wish.
const NOT: &[&str] = &[
    "failed",
    "not ",
    "unable",
    "waiting",
    "timed out",
    "error",
    "wait-for",
    "until",
    "cannot",
    "refused",
    "fail:",
];

/// Every wording.
pub(crate) static PROGRESS: &[Progress] = &[
    // kubelet, Karpenter, Cluster API, Talos, kubectl
    of(Achieved::Ready, &["is now: nodeready"]),
    of(Achieved::Ready, &["event='nodeready'"]),
    of(Achieved::Ready, &["node became ready"]),
    of(Achieved::Ready, &["just became ready"]),
    of(Achieved::Ready, &["kubelet is posting ready status"]),
    of(Achieved::Ready, &["machine is running and ready"]),
    of(Achieved::Ready, &["initialized nodeclaim"]),
    of(Achieved::Ready, &["newphase='running'"]),
    of(Achieved::Ready, &["condition met"]),
    of(Achieved::Ready, &[" ready    <none> "]),
    of(Achieved::Ready, &[" ready    control-plane"]),
    of(Achieved::Ready, &[" ready    agent "]),
    of(Achieved::Ready, &[" ready   <none> "]),
    of(Achieved::Ready, &["'type':'ready','status':'true'"]),
    of(Achieved::Ready, &["'type': 'ready', 'status': 'true'"]),
    // kubelet, kubeadm, RKE2, k3s
    of(Achieved::Registered, &["successfully registered node"]),
    of(Achieved::Registered, &["node", "was previously registered"]),
    of(Achieved::Registered, &["this node has joined the cluster"]),
    of(Achieved::Registered, &["control-plane has initialized successfully"]),
    of(Achieved::Registered, &["registered nodeclaim"]),
    of(Achieved::Registered, &["annotations and labels have been set successfully on node"]),
    of(Achieved::Registered, &["successfully joined the cluster"]),
    of(Achieved::Registered, &["agent is up and running"]),
    of(Achieved::Registered, &["server is up and running"]),
    of(Achieved::Registered, &["registerednode", "registered node"]),
    // The bootstrap scripts and their extension
    of(Achieved::Scripts, &["api server connection check code: 0"]),
    of(Achieved::Scripts, &["goal state have reached a terminal state", "success"]),
    of(Achieved::Scripts, &["bootstrap finished rc=0"]),
    of(Achieved::Scripts, &["provisioning state succeeded"]),
    of(Achieved::Scripts, &["event=enabled"]),
    of(Achieved::Certificate, &["rotated certificates"]),
    of(Achieved::Certificate, &["certificate signing request", "is approved"]),
    of(Achieved::Certificate, &["certificate signing request", "is issued"]),
    of(Achieved::Certificate, &["certificate request was signed and a response was received"]),
    of(Achieved::Runtime, &["containerd successfully booted"]),
    of(Achieved::Image, &["successfully pulled image"]),
    of(Achieved::Image, &["pulled image '"]),
    of(Achieved::Image, &["pulled [registry]"]),
    of(Achieved::Image, &["returns image reference"]),
    of(Achieved::Packages, &["processing triggers for"]),
    of(Achieved::Packages, &["setting up ", " ..."]),
    of(Achieved::Packages, &["reading package lists... done"]),
    of(Achieved::UserData, &["cloud-init v. ", " finished at "]),
    // Endpoints that answer after all
    of(Achieved::Answered, &["200 ok"]),
    of(Achieved::Answered, &["http/1.1 200"]),
    of(Achieved::Answered, &["http/2 200"]),
    of(Achieved::Answered, &[" 200 (attempt"]),
    of(Achieved::Answered, &[" - saved"]),
    of(Achieved::Answered, &["login succeeded"]),
    of(Achieved::Answered, &["* connected to "]),
    of(Achieved::Answered, &["health check passed"]),
    of(Achieved::Answered, &["recovered from previous errors"]),
    of(Achieved::Answered, &["route to 168.63.129.16 exists"]),
    of(Achieved::Answered, &["fetch goal state completed"]),
    of(Achieved::Answered, &["wire server endpoint:168.63.129.16"]),
    of(Achieved::Answered, &["executed ", " times"]),
    of(Achieved::Answered, &["executed ", " seconds"]),
    // The bootstrap goes on
    of(Achieved::GoesOn, &["cloud-init v. ", " running 'init"]),
    of(Achieved::GoesOn, &["cloud-init v. ", " running 'modules:config"]),
    of(Achieved::GoesOn, &["enable extension:"]),
    of(Achieved::GoesOn, &["unpacking "]),
    of(Achieved::GoesOn, &["extracting file "]),
    of(Achieved::GoesOn, &["creating directory /var/lib/rancher"]),
    of(Achieved::GoesOn, &["(waiting): waiting for"]),
    of(Achieved::GoesOn, &["response so far"]),
    of(Achieved::GoesOn, &["will retry in", "retries left"]),
    of(Achieved::GoesOn, &[": attempt #"]),
];

/// Something that was achieved, and where it says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Milestone {
    pub(crate) achieved: Achieved,
    pub(crate) piece: usize,
    pub(crate) line: usize,
}

/// Whether a line claims what a wording stands for: not that it failed, nor that it is waited for.
pub(crate) fn is_claimed(progress: &Progress, line: &str) -> bool {
    match progress.achieved {
        Achieved::Ready | Achieved::Registered | Achieved::Scripts => !line.contains("not ready"),
        Achieved::GoesOn | Achieved::UserData => true,
        Achieved::Answered => {
            !NOT.iter().any(|word| line.contains(word)) && !line.contains("giving up")
        }
        _ => !NOT.iter().any(|word| line.contains(word)),
    }
}

/// Removes the findings that a milestone of the same text makes undone.
pub(crate) fn leave_what_was_overcome(
    milestones: &[Milestone],
    pages: &[Page<'_>],
    api_server: Option<&str>,
    findings: &mut Vec<Finding>,
) {
    findings.retain(|finding| {
        let page = &pages[finding.piece];
        let mut own = milestones.iter().filter(|milestone| milestone.piece == finding.piece);
        !own.any(|milestone| {
            if milestone.line > finding.line {
                is_undone(milestone, finding, page, api_server)
            } else {
                // A node that is ready is past its bootstrap.
                milestone.achieved == Achieved::Ready && !is_refusal(finding.rule.cause)
            }
        })
    });
}

fn is_undone(
    milestone: &Milestone,
    finding: &Finding,
    page: &Page<'_>,
    api_server: Option<&str>,
) -> bool {
    let cause = finding.rule.cause;
    match milestone.achieved {
        Achieved::Ready => true,
        // Azure's refusals are about a VM, not about what a node went through.
        Achieved::Registered | Achieved::Scripts => !is_refusal(cause),
        Achieved::Certificate => matches!(
            cause,
            Cause::BootstrapTokenInvalid
                | Cause::TlsBootstrapPending
                | Cause::ClusterCaMismatch
                | Cause::ApiServerDnsFailure
                | Cause::ApiServerUnreachable
                | Cause::ClockSkew
        ),
        Achieved::Runtime => {
            cause == Cause::ContainerRuntimeFailure
                || cause == Cause::CniFailure
                    && page.bounded_line(finding.line).contains("containerd")
        }
        Achieved::Image => {
            matches!(
                cause,
                Cause::RegistryUnreachable
                    | Cause::RegistryUnauthorized
                    | Cause::RegistryThrottled
                    | Cause::DownloadInterrupted
                    | Cause::DiskFull
            )
        }
        Achieved::Packages => {
            matches!(cause, Cause::PackageManagerLocked | Cause::PackageRepositoryFailure)
        }
        Achieved::UserData => finding.strength < Strength::Strong && cause == Cause::ScriptDefect,
        Achieved::Answered => {
            is_transient(cause)
                && role::of(page, finding.line, api_server)
                    == role::of(page, milestone.line, api_server)
        }
        Achieved::GoesOn => is_transient(cause),
    }
}

/// What a retry may put right.
pub(crate) fn is_transient(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::DnsFailure
            | Cause::ApiServerDnsFailure
            | Cause::ApiServerUnreachable
            | Cause::ImdsUnreachable
            | Cause::WireServerUnreachable
            | Cause::RegistryUnreachable
            | Cause::RegistryThrottled
            | Cause::EgressBlocked
            | Cause::ProxyMisconfigured
            | Cause::TlsTrustFailure
            | Cause::DownloadInterrupted
            | Cause::PackageManagerLocked
            | Cause::PackageRepositoryFailure
            | Cause::ArmThrottled
            | Cause::PlatformTransient
            | Cause::ControlPlaneNotReady
            | Cause::TimeBudgetExhausted
    )
}

/// Whether a finding counts although the scripts ended with 0: scripts get past much that they try again
/// or do not need, and do not look at whether a service stays up.
pub(crate) fn outlasts_success(finding: &Finding) -> bool {
    let cause = finding.rule.cause;
    let is_of_service = matches!(
        cause,
        Cause::KubeletFailure
            | Cause::ContainerRuntimeFailure
            | Cause::ScriptDefect
            | Cause::ImageContractDrift
            | Cause::ConfigRejected
            | Cause::ProvisionerNeverStarted
    );
    is_of_service
        || finding.strength == Strength::Strong
            && !is_transient(cause)
            && cause != Cause::ArtifactMissing
}

/// What Azure refuses before there is a machine.
fn is_refusal(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::QuotaExceeded
            | Cause::SkuUnavailable
            | Cause::AllocationFailed
            | Cause::SubnetExhausted
            | Cause::NicReserved
            | Cause::PolicyDenied
            | Cause::AuthorizationFailed
            | Cause::InvalidRequest
            | Cause::SubscriptionNotUsable
    )
}
