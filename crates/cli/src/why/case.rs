//! What is known of one subject, and what follows from it.

use bringup_contract::{Cause, Open};
use bringup_diagnosis::Verdict;
use bringup_objects::cluster_api::REPLACEMENT_USEFUL;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, Condition};
use bringup_objects::report::{Collector, Moment, Phase};
use bringup_objects::{BootstrapReport, Node};
use kube::ResourceExt as _;
use serde::Serialize;

use super::living::Living;
use super::names::{Subject, starts};
use crate::failure::Exit;
use crate::images::{self, Fared, Image};

/// What is known of a subject.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) subject: Subject,
    /// The object, while it exists.
    pub(crate) living: Option<Living>,
    pub(crate) node: Option<Node>,
    /// The report that decides, or that tells what was before.
    pub(crate) report: Option<BootstrapReport>,
    /// Other reports of the same name, newest first.
    pub(crate) others: Vec<BootstrapReport>,
    pub(crate) verdict: Verdict,
    pub(crate) images: Vec<Fared>,
    /// What we saw ourselves, where the controller has no verdict yet.
    pub(crate) look: Option<Look>,
    /// The provider has not begun to create its VM.
    pub(crate) is_early: bool,
    /// What an answer has to be taken with.
    pub(crate) notes: Vec<String>,
}

/// The sources that were asked just now, and what happened when. A verdict that follows is in a
/// report that is not stored in the cluster.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Look {
    pub(crate) asked: Vec<Collector>,
    pub(crate) timeline: Vec<Moment>,
}

impl Case {
    /// Decides. The reports are those of the subject; what was typed may choose one of them.
    pub(crate) fn new(
        subject: Subject,
        living: Option<Living>,
        node: Option<Node>,
        mut reports: Vec<BootstrapReport>,
        typed: &str,
    ) -> Self {
        newest_first(&mut reports);
        let chosen = chosen(&subject, living.as_ref(), &reports, typed);
        let report = chosen.map(|at| reports.remove(at));
        // A report that was typed may be of a namesake.
        let living =
            living.filter(|living| report.as_ref().is_none_or(|report| is_about(report, living)));
        let verdict = match (&living, &report) {
            (Some(living), report) => of_living(living, report.as_ref()),
            (None, Some(report)) => of_report(report),
            (None, None) if node.is_some() => Verdict::Succeeded,
            (None, None) => Verdict::Unknown,
        };
        let (others, images, notes) = (reports, Vec::new(), Vec::new());
        let (look, is_early) = (None, false);
        Self { subject, living, node, report, others, verdict, images, look, is_early, notes }
    }

    /// How the command ends.
    pub(crate) fn exit(&self) -> Exit {
        exit(self.verdict, self.cause())
    }

    /// The cause, if it failed.
    pub(crate) fn cause(&self) -> Option<&str> {
        let from_object = || Some(self.condition(BOOTSTRAP_SUCCEEDED)?.reason.as_str());
        match self.verdict {
            Verdict::Failed => {
                self.report.as_ref().and_then(BootstrapReport::cause).or_else(from_object)
            }
            Verdict::Succeeded | Verdict::Running | Verdict::Unknown => None,
        }
    }

    /// A condition of the object.
    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.living.as_ref()?.condition(kind)
    }

    /// What the extension said, on the NodeClaim.
    pub(crate) fn cse(&self) -> Option<&Condition> {
        self.condition(CSE_PROVISIONED)
    }

    /// Whether another machine would help, on the Machine or in what is known of it.
    pub(crate) fn replacement(&self) -> Option<&Condition> {
        let reported = self.report.as_ref().and_then(bringup_explain::replacement);
        reported.or_else(|| self.condition(REPLACEMENT_USEFUL))
    }

    /// Whether bringup has looked at the object.
    pub(crate) fn is_watched(&self) -> bool {
        self.living.as_ref().is_some_and(Living::is_watched)
    }

    /// The pool of a NodeClaim.
    pub(crate) fn pool(&self) -> Option<&str> {
        let living = self.living.as_ref().and_then(Living::pool);
        living.or_else(|| images::pool(self.report.as_ref()?))
    }

    /// The cluster of a Machine.
    pub(crate) fn cluster(&self) -> Option<&str> {
        let living = self.living.as_ref().and_then(Living::cluster);
        living.or_else(|| bringup_explain::cluster(self.report.as_ref()?))
    }

    /// The image.
    pub(crate) fn image(&self) -> Option<Image> {
        let living = self.living.as_ref().and_then(Living::image);
        living.or_else(|| Image::of_report(self.report.as_ref()?))
    }

    /// The Node's name, as far as it is known.
    pub(crate) fn node_name(&self) -> Option<&str> {
        let node = self.node.as_ref().and_then(|node| node.metadata.name.as_deref());
        node.or_else(|| self.living.as_ref()?.node_name())
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

fn is_about(report: &BootstrapReport, living: &Living) -> bool {
    living.uid().is_some_and(|uid| uid == report.spec.target_ref.uid)
}

/// The report that was typed; else that of the living object; else, without one, the newest.
fn chosen(
    subject: &Subject,
    living: Option<&Living>,
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
    match living {
        Some(living) => reports.iter().position(|report| is_about(report, living)),
        None => (!reports.is_empty()).then_some(0),
    }
}

fn of_report(report: &BootstrapReport) -> Verdict {
    match report.phase() {
        Open::Known(Phase::Superseded) => Verdict::Succeeded,
        Open::Known(Phase::Final | Phase::Lost) | Open::Other(_) if report.cause().is_some() => {
            Verdict::Failed
        }
        Open::Known(Phase::Final | Phase::Lost) | Open::Other(_) => Verdict::Unknown,
    }
}

fn of_living(living: &Living, report: Option<&BootstrapReport>) -> Verdict {
    let told = living.condition(BOOTSTRAP_SUCCEEDED).map(|held| held.status.as_str());
    if living.has_joined() || told == Some("True") {
        return Verdict::Succeeded;
    }
    // Azure refused it, and has accepted it since.
    let is_over = |report: &&BootstrapReport| told == Some("Unknown") && report.is_of_refusal();
    match report.filter(|report| !is_over(report)).map(of_report) {
        Some(Verdict::Failed) => Verdict::Failed,
        _ if told == Some("False") => Verdict::Failed,
        _ => Verdict::Running,
    }
}
