//! What is known of one subject, and what follows from it.

use bringup_contract::Cause;
use bringup_diagnosis::Verdict;
use bringup_objects::condition::{
    BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, Condition, OURS, find, karpenter,
};
use bringup_objects::karpenter::POOL_LABEL;
use bringup_objects::report::Phase;
use bringup_objects::{BootstrapReport, Node, NodeClaim};
use kube::ResourceExt as _;

use super::names::{Subject, starts};
use crate::failure::Exit;
use crate::images::{self, Fared, Image};

/// What is known of a subject.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) subject: Subject,
    /// The object, while it exists.
    pub(crate) claim: Option<NodeClaim>,
    pub(crate) node: Option<Node>,
    /// The report that decides, or that tells what was before.
    pub(crate) report: Option<BootstrapReport>,
    /// Other reports of the same name, newest first.
    pub(crate) others: Vec<BootstrapReport>,
    pub(crate) verdict: Verdict,
    pub(crate) images: Vec<Fared>,
    /// What an answer has to be taken with.
    pub(crate) notes: Vec<String>,
}

impl Case {
    /// Decides. The reports are those of the subject; what was typed may choose one of them.
    pub(crate) fn new(
        subject: Subject,
        claim: Option<NodeClaim>,
        node: Option<Node>,
        mut reports: Vec<BootstrapReport>,
        typed: &str,
    ) -> Self {
        newest_first(&mut reports);
        let report = chosen(&subject, claim.as_ref(), &reports, typed).map(|at| reports.remove(at));
        let of_claim = claim
            .as_ref()
            .filter(|claim| report.as_ref().is_none_or(|report| is_about(report, claim)));
        let verdict = match (of_claim, &report) {
            (Some(claim), report) => of_living(claim, report.as_ref()),
            (None, Some(report)) => of_report(report),
            (None, None) if node.is_some() => Verdict::Succeeded,
            (None, None) => Verdict::Unknown,
        };
        let claim = of_claim.is_some().then_some(claim).flatten();
        let (images, notes) = (Vec::new(), Vec::new());
        Self { subject, claim, node, report, others: reports, verdict, images, notes }
    }

    /// How the command ends.
    pub(crate) fn exit(&self) -> Exit {
        exit(self.verdict, self.cause())
    }

    /// The cause, if it failed.
    pub(crate) fn cause(&self) -> Option<&str> {
        let from_claim = || Some(self.condition(BOOTSTRAP_SUCCEEDED)?.reason.as_str());
        match self.verdict {
            Verdict::Failed => {
                self.report.as_ref().and_then(BootstrapReport::cause).or_else(from_claim)
            }
            Verdict::Succeeded | Verdict::Running | Verdict::Unknown => None,
        }
    }

    /// A condition of the NodeClaim.
    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        find(conditions(self.claim.as_ref()?), kind)
    }

    /// What the extension said, on the NodeClaim.
    pub(crate) fn cse(&self) -> Option<&Condition> {
        self.condition(CSE_PROVISIONED)
    }

    /// Whether bringup has looked at the NodeClaim.
    pub(crate) fn is_watched(&self) -> bool {
        self.claim.as_ref().is_some_and(is_watched)
    }

    /// The pool.
    pub(crate) fn pool(&self) -> Option<&str> {
        let claim = self.claim.as_ref().and_then(|claim| claim.labels().get(POOL_LABEL));
        claim.map(String::as_str).or_else(|| images::pool(self.report.as_ref()?))
    }

    /// The image.
    pub(crate) fn image(&self) -> Option<Image> {
        let claim = self.claim.as_ref().and_then(|claim| claim.status.as_ref());
        let image = claim.and_then(|status| Image::of_id(status.image_id.as_deref()?));
        image.or_else(|| Image::of_report(self.report.as_ref()?))
    }

    /// The Node's name, as far as it is known.
    pub(crate) fn node_name(&self) -> Option<&str> {
        let status = self.claim.as_ref().and_then(|claim| claim.status.as_ref());
        let node = self.node.as_ref().and_then(|node| node.metadata.name.as_deref());
        node.or_else(|| status?.node_name.as_deref())
            .or_else(|| self.report.as_ref()?.spec.node_name.as_deref())
            .filter(|name| !name.is_empty())
    }
}

/// How a command ends that shows one report.
pub(crate) fn exit_of(report: &BootstrapReport) -> Exit {
    exit(of_report(report), report.cause())
}

fn exit(verdict: Verdict, cause: Option<&str>) -> Exit {
    match verdict {
        Verdict::Succeeded => Exit::Fine,
        Verdict::Failed if cause != Some(Cause::Unknown.reason()) => Exit::Cause,
        Verdict::Failed | Verdict::Running | Verdict::Unknown => Exit::NoCause,
    }
}

/// Newest first.
pub(crate) fn newest_first(reports: &mut [BootstrapReport]) {
    reports.sort_by_cached_key(|report| (std::cmp::Reverse(made(report)), report.name_any()));
}

/// When a report's verdict was reached, or else when it was made.
pub(crate) fn made(report: &BootstrapReport) -> Option<jiff::Timestamp> {
    let created = report.metadata.creation_timestamp.as_ref().map(|time| time.0);
    report.finished_at().or(created)
}

/// Whether bringup has put a condition on a claim.
pub(crate) fn is_watched(claim: &NodeClaim) -> bool {
    OURS.iter().any(|kind| find(conditions(claim), kind).is_some())
}

fn conditions(claim: &NodeClaim) -> &[Condition] {
    claim.status.as_ref().map_or(&[], |status| &status.conditions)
}

fn is_about(report: &BootstrapReport, claim: &NodeClaim) -> bool {
    claim.uid().is_some_and(|uid| uid == report.spec.target_ref.uid)
}

/// The report that was typed; else that of the living claim; else, without one, the newest.
fn chosen(
    subject: &Subject,
    claim: Option<&NodeClaim>,
    reports: &[BootstrapReport],
    typed: &str,
) -> Option<usize> {
    let by_name = || reports.iter().position(|report| starts(&report.name_any(), typed));
    // The name of a report begins with that of what it is about.
    if !starts(&subject.name, typed)
        && let Some(typed) = by_name()
    {
        return Some(typed);
    }
    match claim {
        Some(claim) => reports.iter().position(|report| is_about(report, claim)),
        None => (!reports.is_empty()).then_some(0),
    }
}

fn of_report(report: &BootstrapReport) -> Verdict {
    match report.phase() {
        Phase::Superseded => Verdict::Succeeded,
        Phase::Collecting | Phase::Final | Phase::Lost if report.cause().is_some() => {
            Verdict::Failed
        }
        Phase::Collecting | Phase::Final | Phase::Lost => Verdict::Unknown,
    }
}

fn of_living(claim: &NodeClaim, report: Option<&BootstrapReport>) -> Verdict {
    let status = |kind| find(conditions(claim), kind).map(|held| held.status.as_str());
    if [karpenter::REGISTERED, BOOTSTRAP_SUCCEEDED].iter().any(|kind| status(kind) == Some("True"))
    {
        return Verdict::Succeeded;
    }
    match report.map(of_report) {
        Some(Verdict::Failed) => Verdict::Failed,
        _ if status(BOOTSTRAP_SUCCEEDED) == Some("False") => Verdict::Failed,
        _ => Verdict::Running,
    }
}
