//! The course of a boot: what it achieved, and what that makes undone. A failure that a later step got past
//! explains nothing; a retry that came right is no failure; what follows a node that is ready is another
//! story.

use bringup_contract::Cause;

use crate::matcher::{Finding, Page};
use crate::role::{self, Role};
use crate::rule::{Sign, Strength};

/// What a boot can achieve, in the order in which it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Achieved {
    /// The bootstrap goes on: what was retried before came right.
    GoesOn,
    /// A node has registered so lately that it cannot be ready yet.
    Young,
    /// An endpoint answered.
    Answered,
    /// cloud-init ran to its end.
    UserData,
    /// The package manager installed something.
    Installed,
    /// The package manager did what it was asked.
    Packages,
    /// An image was pulled.
    Image,
    /// kubelet got its configuration.
    Configured,
    /// The API server answers kubelet.
    ApiServer,
    /// The container runtime runs.
    Runtime,
    /// The node has its certificate.
    Certificate,
    /// Azure did what it had refused before, if it was asked once more.
    Repeated,
    /// Azure did what it had refused before.
    Operation,
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
    of(Achieved::Registered, &["was previously registered", "node"]),
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
    of(Achieved::Scripts, &["kubelet is active"]),
    of(Achieved::Scripts, &["kubelet healthz ok"]),
    of(Achieved::Scripts, &["cseresult.log : 0"]),
    of(Achieved::Operation, &["/write ", " succeeded"]),
    of(Achieved::Operation, &["': 'succeeded'"]),
    of(Achieved::Repeated, &["'provisioningstate': 'succeeded'"]),
    of(Achieved::Certificate, &["rotated certificates"]),
    of(Achieved::Certificate, &["certificate signing request", "is approved"]),
    of(Achieved::Certificate, &["certificate signing request", "is issued"]),
    of(Achieved::Certificate, &["certificate request was signed and a response was received"]),
    of(Achieved::Configured, &["writing kubelet configuration to file"]),
    of(Achieved::Configured, &["[kubelet-start] starting the kubelet"]),
    of(Achieved::ApiServer, &["connected to the api server"]),
    of(Achieved::ApiServer, &["caches populated for"]),
    of(Achieved::ApiServer, &["reading configuration from the 'kubeadm-config'"]),
    of(Achieved::Runtime, &["containerd successfully booted"]),
    of(Achieved::Runtime, &["containerd is active"]),
    of(Achieved::Image, &["successfully pulled image"]),
    of(Achieved::Image, &["pulled image '"]),
    of(Achieved::Image, &["pulled [registry]"]),
    of(Achieved::Image, &["returns image reference"]),
    of(Achieved::Installed, &["setting up ", " ..."]),
    of(Achieved::Packages, &["processing triggers for"]),
    of(Achieved::Packages, &["reading package lists... done"]),
    of(Achieved::UserData, &["cloud-init v. ", " finished at "]),
    // Endpoints that answer after all
    of(Achieved::Answered, &["200 ok"]),
    of(Achieved::Answered, &["http/1.1 200"]),
    of(Achieved::Answered, &["http/2 200"]),
    of(Achieved::Answered, &[" 200 (attempt"]),
    of(Achieved::Answered, &["(200, "]),
    of(Achieved::Answered, &[" - saved"]),
    of(Achieved::Answered, &["login succeeded"]),
    of(Achieved::Answered, &["* connected to "]),
    of(Achieved::Answered, &["health check passed"]),
    of(Achieved::Answered, &["recovered from previous errors"]),
    of(Achieved::Answered, &["retrieved metadata from imds"]),
    of(Achieved::Answered, &["route to 168.63.129.16 exists"]),
    of(Achieved::Answered, &["fetch goal state completed"]),
    of(Achieved::Answered, &["wire server endpoint:168.63.129.16"]),
    of(Achieved::Answered, &["executed ", " times"]),
    of(Achieved::Answered, &["executed ", " seconds"]),
    // The bootstrap goes on
    of(Achieved::GoesOn, &["cloud-init v. ", " running 'init"]),
    of(Achieved::GoesOn, &["cloud-init v. ", " running 'modules:config"]),
    of(Achieved::Young, &[" notready "]),
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
    /// The endpoint that answered.
    pub(crate) role: Role,
}

/// How many milestones of one kind are kept of a text: the last ones. A text may repeat one without end.
const KEPT: usize = 16;

/// The milestones of one text, bounded in number.
pub(crate) fn keep_last(mut milestones: Vec<Milestone>) -> Vec<Milestone> {
    let mut kept: Vec<Milestone> = Vec::new();
    while let Some(milestone) = milestones.pop() {
        let same = kept.iter().filter(|other| other.achieved == milestone.achieved).count();
        if same < KEPT {
            kept.push(milestone);
        }
    }
    kept.reverse();
    kept
}

/// Whether a line claims what a wording stands for: not that it failed, nor that it is waited for.
pub(crate) fn is_claimed(progress: &Progress, line: &str) -> bool {
    match progress.achieved {
        Achieved::Ready | Achieved::Registered | Achieved::Scripts => !line.contains("not ready"),
        Achieved::Young => is_young(line),
        // Something that is tried for the tenth time does not go on.
        Achieved::GoesOn if line.contains(": attempt #") => {
            let count = line.split_once(": attempt #").map_or("", |(_, count)| count);
            count.bytes().take_while(u8::is_ascii_digit).count() < 2
        }
        // The answer to a question that was asked again, and no part of a larger answer.
        Achieved::Operation if line.contains('\'') => {
            line.starts_with('{') && !line.contains("'code'")
        }
        Achieved::GoesOn | Achieved::UserData | Achieved::Operation | Achieved::Repeated => true,
        Achieved::Answered if line.contains("recovered") => true,
        Achieved::Answered => {
            !NOT.iter().any(|word| line.contains(word)) && !line.contains("giving up")
        }
        _ => !NOT.iter().any(|word| line.contains(word)),
    }
}

/// Whether a row of `kubectl get nodes` is of a node of less than two minutes.
fn is_young(line: &str) -> bool {
    let ages = line.split_whitespace().filter_map(|word| word.strip_suffix('s'));
    ages.filter_map(|age| age.parse::<u16>().ok()).any(|age| age < 120)
}

/// Added to the rank of what decides only where nothing else is known.
const LAST: u16 = 500;

/// Removes the findings that a milestone of the same text makes undone.
pub(crate) fn leave_what_was_overcome(
    milestones: &[Milestone],
    pages: &[Page<'_>],
    api_server: Option<&str>,
    is_over: bool,
    findings: &mut Vec<Finding>,
) {
    // Where nothing else is known, a lock that was released for a while is still the best explanation.
    for finding in findings.iter_mut().filter(|it| it.rule.cause == Cause::PackageManagerLocked) {
        let is_past = |milestone: &&Milestone| {
            milestone.achieved == Achieved::Installed
                && (milestone.piece, true) == (finding.piece, milestone.line > finding.line)
        };
        if milestones.iter().any(|milestone| is_past(&milestone)) {
            finding.rank = finding.rank.saturating_add(LAST);
        }
    }
    let milestones: Vec<&Milestone> =
        milestones.iter().filter(|milestone| milestone.achieved != Achieved::Installed).collect();
    // Whether a text shows nodes that are not ready beside one that is: asked once a text, not once a line.
    let is_mixed = |(piece, page): (usize, &Page<'_>)| {
        let is_named = |it: &&Milestone| it.piece == piece && it.achieved >= Achieved::Registered;
        milestones.iter().copied().any(|it| is_named(&it)) && page.says(" notready ")
    };
    let mixed: Vec<bool> = pages.iter().enumerate().map(is_mixed).collect();
    findings.retain(|finding| {
        let page = &pages[finding.piece];
        let mut own = milestones.iter().filter(|milestone| {
            // A script that ended badly did not go on.
            milestone.piece == finding.piece
                && !(is_over && milestone.achieved == Achieved::GoesOn)
                && is_of_same(milestone, finding, page, mixed[finding.piece])
        });
        !own.any(|milestone| {
            if milestone.line > finding.line {
                is_undone(milestone, finding, page, api_server)
            } else {
                match milestone.achieved {
                    // A node that is ready is past its bootstrap.
                    Achieved::Ready => !is_refusal(finding.rule.cause),
                    Achieved::Young => finding.rule.cause == Cause::CniFailure,
                    _ => false,
                }
            }
        })
    });
}

/// Whether a milestone is one of the node that a finding is about, as far as both lines name it.
fn is_of_same(milestone: &Milestone, finding: &Finding, page: &Page<'_>, is_mixed: bool) -> bool {
    if milestone.achieved < Achieved::Registered {
        return true;
    }
    let (reached, failed) = (head(page, milestone.line), head(page, finding.line));
    let is_row = reached.contains(" ready  ");
    if is_row && is_mixed {
        return false;
    }
    match (name_in(reached), name_in(failed)) {
        (Some(reached), Some(failed)) => {
            reached == failed || reached.contains(failed) || failed.contains(reached)
        }
        (Some(_), None) if is_mixed => false,
        (Some(reached), None) if failed.contains(" node/") => failed.contains(reached),
        (Some(reached), None) if is_row => {
            let host = reached.split('.').next().unwrap_or(reached);
            failed.contains(host) || !is_of_host(failed)
        }
        _ => true,
    }
}

/// How many lines a message in JSON may have before what is said of it.
const LONG_MESSAGE: usize = 100;

/// The first line of the line of the input that a line is part of: a message of several lines in JSON.
fn head<'p>(page: &'p Page<'_>, line: usize) -> &'p str {
    let number = page.lines[line].number;
    let first = (0..=line)
        .rev()
        .take(LONG_MESSAGE)
        .take_while(|before| page.lines[*before].number == number)
        .last();
    page.bounded_line(first.unwrap_or(line))
}

/// The image that a line quotes.
fn image_in(line: &str) -> Option<&str> {
    line.split('\'').skip(1).step_by(2).find(|quoted| quoted.contains('/') && !quoted.contains(' '))
}

/// Whether a line begins with a date and a host, as those of a journal do.
fn is_of_host(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let month = words.next().unwrap_or_default();
    month.len() == 3 && words.next().is_some_and(|day| day.parse::<u8>().is_ok())
}

/// The node, NodeClaim or Machine that a line names as its subject.
fn name_in(line: &str) -> Option<&str> {
    for mark in [
        "'nodeclaim':{'name':'",
        "azuremachine='",
        "machine='",
        "node='",
        "'nodeclaim': {'name': '",
    ] {
        if let Some((_, rest)) = line.split_once(mark) {
            let name = rest.split('\'').next()?;
            return name.rsplit('/').next();
        }
    }
    // `Node NAME status is now: NodeReady`
    let before =
        line.split_once(" status is now").or_else(|| line.split_once(" event: registered node"));
    if let Some((before, _)) = before {
        return before.rsplit(' ').next();
    }
    // A row of a table begins with the name.
    line.contains(" ready  ").then(|| line.split_whitespace().next()).flatten()
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
        Achieved::ApiServer => {
            matches!(cause, Cause::ApiServerUnreachable | Cause::ApiServerDnsFailure)
        }
        Achieved::Image => {
            let is_other = image_in(page.bounded_line(milestone.line))
                .is_some_and(|image| !page.bounded_line(finding.line).contains(image));
            !is_other
                && matches!(
                    cause,
                    Cause::RegistryUnreachable
                        | Cause::RegistryUnauthorized
                        | Cause::RegistryThrottled
                        | Cause::DownloadInterrupted
                        | Cause::DiskFull
                )
        }
        Achieved::Installed | Achieved::Packages => {
            matches!(cause, Cause::PackageManagerLocked | Cause::PackageRepositoryFailure)
        }
        Achieved::Operation => is_refusal(cause) || is_transient(cause),
        Achieved::Repeated => {
            let between = finding.line..milestone.line;
            (is_refusal(cause) || is_transient(cause))
                && between.len() < LONG_MESSAGE
                && between.map(|line| page.bounded_line(line)).any(|line| line.starts_with("$ az "))
        }
        Achieved::Configured => {
            matches!(
                cause,
                Cause::KubeletConfigInvalid | Cause::KubeletFailure | Cause::TlsBootstrapPending
            )
        }
        // cloud-init says that it has finished whatever happened.
        Achieved::UserData => finding.strength < Strength::Strong && cause == Cause::ScriptDefect,
        Achieved::Answered => {
            is_transient(cause) && role::of(page, finding.line, api_server) == milestone.role
        }
        Achieved::GoesOn => is_transient(cause),
        Achieved::Young => cause == Cause::CniFailure,
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
            && !matches!(cause, Cause::ArtifactMissing | Cause::KernelMismatch)
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
