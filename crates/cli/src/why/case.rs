//! The known facts about one subject, and the conclusions from them.

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

/// The known facts about a subject.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) subject: Subject,
    /// The object, while it exists.
    pub(crate) living: Option<Living>,
    pub(crate) node: Option<Node>,
    /// The report that decides, or that describes the time before.
    pub(crate) report: Option<BootstrapReport>,
    /// Other reports about objects with the same name, newest first.
    pub(crate) others: Vec<BootstrapReport>,
    pub(crate) verdict: Verdict,
    pub(crate) images: Vec<Fared>,
    /// The command's own observation, if the controller has no verdict yet.
    pub(crate) look: Option<Look>,
    /// Whether the provider has not begun to create the VM.
    pub(crate) is_early: bool,
    /// Limitations of the answer.
    pub(crate) notes: Vec<String>,
}

/// The sources that were queried just now, and the times of events. If there is a verdict, it is in a report
/// that is not stored in the cluster.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Look {
    pub(crate) asked: Vec<Collector>,
    pub(crate) timeline: Vec<Moment>,
}

impl Case {
    /// Chooses the report that decides. `reports` are about the subject; the name that was typed may select
    /// one of them.
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
        // A report that was typed may be about an earlier object with the same name.
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

    /// The exit code of the command.
    pub(crate) fn exit(&self) -> Exit {
        exit(self.verdict, self.cause())
    }

    /// The cause of a failure.
    pub(crate) fn cause(&self) -> Option<&str> {
        let from_object = || Some(self.condition(BOOTSTRAP_SUCCEEDED)?.reason.as_str());
        match self.verdict {
            Verdict::Failed => {
                self.report.as_ref().and_then(BootstrapReport::cause).or_else(from_object)
            }
            Verdict::Succeeded | Verdict::Running | Verdict::Unknown => None,
        }
    }

    /// The condition of this type.
    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.living.as_ref()?.condition(kind)
    }

    /// The condition with the output of the extension, on a NodeClaim.
    pub(crate) fn cse(&self) -> Option<&Condition> {
        self.condition(CSE_PROVISIONED)
    }

    /// Whether another machine would help: a condition in the report, or on the Machine.
    pub(crate) fn replacement(&self) -> Option<&Condition> {
        let reported = self.report.as_ref().and_then(bringup_explain::replacement);
        reported.or_else(|| self.condition(REPLACEMENT_USEFUL))
    }

    /// Whether bringup has written a condition to the object.
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

    pub(crate) fn image(&self) -> Option<Image> {
        let living = self.living.as_ref().and_then(Living::image);
        living.or_else(|| Image::of_report(self.report.as_ref()?))
    }

    /// The name of the Node, if known.
    pub(crate) fn node_name(&self) -> Option<&str> {
        let node = self.node.as_ref().and_then(|node| node.metadata.name.as_deref());
        node.or_else(|| self.living.as_ref()?.node_name())
            .or_else(|| self.report.as_ref()?.spec.node_name.as_deref())
            .filter(|name| !name.is_empty())
    }
}

/// The exit code of a command that shows one report.
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

/// Sorts the newest first.
pub(crate) fn newest_first(reports: &mut [BootstrapReport]) {
    reports.sort_by_cached_key(|report| (std::cmp::Reverse(made(report)), report.name_any()));
}

/// When the verdict of a report was reached, else when the report was created.
pub(crate) fn made(report: &BootstrapReport) -> Option<jiff::Timestamp> {
    let created = report.metadata.creation_timestamp.as_ref().map(|time| time.0);
    report.finished_at().or(created)
}

fn is_about(report: &BootstrapReport, living: &Living) -> bool {
    living.uid().is_some_and(|uid| uid == report.spec.target_ref.uid)
}

/// The report that was typed; else the report of the existing object; without an object, the newest.
fn chosen(
    subject: &Subject,
    living: Option<&Living>,
    reports: &[BootstrapReport],
    typed: &str,
) -> Option<usize> {
    let by_name = || reports.iter().position(|report| starts(&report.name_any(), typed));
    // The name of a report begins with the name of the object that it describes.
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
    // Azure refused the VM at first, and has accepted it since.
    let is_over = |report: &&BootstrapReport| told == Some("Unknown") && report.is_of_refusal();
    match report.filter(|report| !is_over(report)).map(of_report) {
        Some(Verdict::Failed) => Verdict::Failed,
        _ if told == Some("False") => Verdict::Failed,
        _ => Verdict::Running,
    }
}
