//! Formats an answer for human readers.

use std::fmt::Write as _;

use bringup_diagnosis::Verdict;
use bringup_explain::words::sentence;
use bringup_explain::{Block, Explanation, place};
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition};
use bringup_objects::report::Phase;
use jiff::Timestamp;

use super::case::{Case, made};
use super::names::MACHINE;
use crate::program::Program;
use crate::{images, table};

/// The complete answer.
pub(crate) fn explanation(case: &Case, program: Program, now: Timestamp) -> Explanation {
    let mut told = match (case.verdict, &case.report) {
        (Verdict::Failed, Some(report)) => Explanation::of_report(report, &who(case, now)),
        (Verdict::Failed, None) => from_conditions(case, now),
        (Verdict::Succeeded, _) => came_up(case, now),
        (Verdict::Running | Verdict::Unknown, _) => underway(case, program, now),
    };
    if !case.images.is_empty() {
        let entries = images::in_words(&case.images);
        told.push(Block::Packed { title: "How images fared".to_owned(), entries });
    }
    if let (Verdict::Failed, Some(report)) = (case.verdict, &case.report) {
        told.facts(report, case.look.is_none());
    }
    if !case.others.is_empty() {
        let entry = |other| {
            let reason = bringup_objects::BootstrapReport::cause(other).unwrap_or("no verdict");
            format!("{}: {reason}, {}", place(other), table::ago(made(other), now))
        };
        let title = Some("Other failures under this name".to_owned());
        told.push(Block::List { title, entries: case.others.iter().map(entry).collect() });
    }
    if !case.notes.is_empty() {
        told.push(Block::Notes(case.notes.clone()));
    }
    told
}

/// The name of the subject, its pool, cluster and Node, and whether it still exists.
fn who(case: &Case, now: Timestamp) -> String {
    let mut who = case.subject.words();
    if let Some(pool) = case.pool() {
        let _ = write!(who, " of pool {pool}");
    }
    if let Some(cluster) = case.cluster() {
        let _ = write!(who, " of cluster {cluster}");
    }
    if let Some(node) = case.node_name().filter(|_| case.subject.kind != "Node") {
        let _ = write!(who, ", node {node}");
    }
    let fate = match &case.living {
        Some(living) if living.is_leaving() => ", is being deleted",
        Some(_) => "",
        None if case.subject.kind == "Node" => "",
        None => ", is gone",
    };
    who.push_str(fate);
    if let (Verdict::Failed, Some(report)) = (case.verdict, &case.report) {
        let _ = write!(who, "; failed {}", table::ago(made(report), now));
    }
    who + "."
}

/// The answer from conditions alone, if there is no report or the user may not read it.
fn from_conditions(case: &Case, now: Timestamp) -> Explanation {
    let mut told = Explanation::default();
    let headline = format!("FAILED: {}", case.cause().unwrap_or("Unknown"));
    told.push(Block::Headline(Verdict::Failed, headline));
    told.paragraph(who(case, now));
    let held = [case.condition(BOOTSTRAP_SUCCEEDED), case.cse(), case.replacement()];
    for held in held.into_iter().flatten() {
        let paragraphs = vec![held.message.clone()];
        told.push(Block::Section { title: held.type_.clone(), paragraphs });
    }
    told
}

fn came_up(case: &Case, now: Timestamp) -> Explanation {
    let mut told = Explanation::default();
    let headline = "SUCCEEDED: the node has joined".to_owned();
    told.push(Block::Headline(Verdict::Succeeded, headline));
    told.paragraph(who(case, now));
    if let Some(node) = &case.node {
        let called = node.metadata.name.as_deref().unwrap_or_default();
        let ready = node.ready().filter(|_| !node.is_ready());
        told.paragraph(match ready {
            None if node.is_ready() => format!("Node {called} is ready."),
            None => format!("Node {called} has no Ready condition."),
            Some(held) => {
                let why =
                    held.message.as_deref().or(held.reason.as_deref()).unwrap_or("no reason given");
                format!("Node {called} is not ready now: {}", sentence(why))
            }
        });
    }
    if let Some(image) = case.image() {
        told.paragraph(format!("Image {}.", image.version));
    }
    // The Node of a Machine is in another cluster: only the condition has information about it.
    let held = case.condition(BOOTSTRAP_SUCCEEDED).filter(|_| case.subject.kind == MACHINE);
    if let Some(held) = held {
        told.paragraph(held.message.clone());
    }
    let superseded = case.report.as_ref().filter(|report| report.phase() == Phase::Superseded);
    if let Some(report) = superseded {
        let judged = report.cause().unwrap_or("no cause");
        let before =
            format!("It was diagnosed as {judged} before it joined: report {}.", place(report));
        told.paragraph(before);
    }
    told
}

fn underway(case: &Case, program: Program, now: Timestamp) -> Explanation {
    let mut told = Explanation::default();
    let headline = match case.verdict {
        Verdict::Running => "RUNNING: no verdict yet",
        Verdict::Failed | Verdict::Succeeded | Verdict::Unknown => "UNKNOWN",
    };
    told.push(Block::Headline(case.verdict, headline.to_owned()));
    told.paragraph(who(case, now));
    let Some(living) = &case.living else {
        let report = case.report.as_ref().map(place).unwrap_or_default();
        told.paragraph(format!("Report {report} has no verdict yet."));
        return told;
    };
    let since = table::ago(living.created(), now);
    told.paragraph(format!("Created {since}; its node has not joined yet."));
    let ours = [case.cse(), case.condition(BOOTSTRAP_SUCCEEDED)];
    let entries = living.steps().chain(ours.into_iter().flatten()).map(in_a_line).collect();
    told.push(Block::List { title: None, entries });
    if let Some(look) = &case.look {
        told.timeline(&look.timeline, false);
        told.collectors(&look.asked);
    }
    let paragraphs = vec![todo(case, program)];
    told.push(Block::Section { title: "What to do".to_owned(), paragraphs });
    told
}

/// The remedy: how long to wait, and for which component.
fn todo(case: &Case, program: Program) -> String {
    let is_machine = case.subject.kind == MACHINE;
    let typed = program.typed();
    match (case.is_watched(), is_machine) {
        (true, false) => format!(
            "Wait, and run this command again. The controller decides within 13 minutes after the \
             NodeClaim is created; Karpenter deletes a NodeClaim whose node has not joined after 15 \
             minutes. `{typed} reports` lists the failures."
        ),
        (true, true) => format!(
            "Wait, and run this command again. The controller decides within 10 minutes after the VM \
             is created, or within its --machine-deadline. `{typed} reports --kind machine` lists \
             the failures."
        ),
        (false, true) if case.is_early => {
            "Its VM has not been requested yet. Its conditions show what it waits for, most often its \
             bootstrap config or the control plane of its cluster. bringup diagnoses a Machine only \
             after its VM is created."
                .to_owned()
        }
        (false, is_machine) => {
            let option = if is_machine { " with --machines" } else { "" };
            format!(
                "The controller has not written a condition on it yet. If this does not change, check \
                 that the controller runs{option}: `kubectl get pods --all-namespaces -l \
                 app.kubernetes.io/name=bringup`."
            )
        }
    }
}

/// A condition in one line, such as `Registered=Unknown, NodeNotFound: Node not registered with cluster`.
fn in_a_line(held: &Condition) -> String {
    let mut line = format!("{}={}", held.type_, held.status);
    if held.reason != held.type_ {
        let _ = write!(line, ", {}", held.reason);
    }
    if !held.message.is_empty() {
        let _ = write!(line, ": {}", held.message);
    }
    line
}
