//! An answer as a person reads it.

use std::fmt::Write as _;

use bringup_diagnosis::Verdict;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition};
use bringup_objects::report::Phase;
use jiff::Timestamp;

use super::case::{Case, made};
use super::names::MACHINE;
use crate::kept::{self, place};
use crate::program::Program;
use crate::report::sentence;
use crate::wrap::{COLUMNS, hang, wrap};
use crate::{images, table};

/// The whole answer.
pub(crate) fn text(case: &Case, program: Program, now: Timestamp) -> String {
    let mut text = match (case.verdict, &case.report) {
        (Verdict::Failed, Some(report)) => kept::story(report, &who(case, now)),
        (Verdict::Failed, None) => told_by_conditions(case, now),
        (Verdict::Succeeded, _) => came_up(case, now),
        (Verdict::Running | Verdict::Unknown, _) => underway(case, program, now),
    };
    if !case.images.is_empty() {
        text.push_str("\nHow images fared:\n");
        text.push_str(&packed(&images::in_words(&case.images)));
    }
    if let (Verdict::Failed, Some(report)) = (case.verdict, &case.report) {
        text.push('\n');
        text.push_str(&kept::facts(report));
        if case.look.is_none() {
            text.push_str(&kept::whereabouts(report));
        }
    }
    for (index, other) in case.others.iter().enumerate() {
        text.push_str(if index == 0 { "\nOther failures under this name:\n" } else { "" });
        let reason = other.cause().unwrap_or("no verdict");
        let line = format!("{}: {reason}, {}", place(other), table::ago(made(other), now));
        text.push_str(&hang(&line, "  ", "    "));
    }
    for (index, note) in case.notes.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { "" });
        text.push_str(&hang(note, "Note: ", "      "));
    }
    text
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

/// The conditions alone: there is no report, or it may not be read.
fn told_by_conditions(case: &Case, now: Timestamp) -> String {
    let mut text = wrap(&format!("FAILED: {}", case.cause().unwrap_or("Unknown")), "");
    text.push_str(&wrap(&who(case, now), ""));
    let told = [case.condition(BOOTSTRAP_SUCCEEDED), case.cse(), case.replacement()];
    for held in told.into_iter().flatten() {
        let _ = write!(text, "\n{}:\n{}", held.type_, wrap(&held.message, "  "));
    }
    text
}

fn came_up(case: &Case, now: Timestamp) -> String {
    let mut text = "SUCCEEDED: the node has joined\n".to_owned();
    text.push_str(&wrap(&who(case, now), ""));
    if let Some(node) = &case.node {
        let called = node.metadata.name.as_deref().unwrap_or_default();
        let ready = node.ready().filter(|_| !node.is_ready());
        let ready = match ready {
            None if node.is_ready() => format!("Node {called} is ready."),
            None => format!("Node {called} has not said whether it is ready."),
            Some(held) => {
                let why = held.message.as_deref().or(held.reason.as_deref()).unwrap_or("no reason");
                format!("Node {called} is not ready now: {}", sentence(why))
            }
        };
        text.push_str(&wrap(&ready, ""));
    }
    if let Some(image) = case.image() {
        text.push_str(&wrap(&format!("Image {}.", image.version), ""));
    }
    // The Node of a Machine is in another cluster: what is known of it is what was said.
    let told = case.condition(BOOTSTRAP_SUCCEEDED).filter(|_| case.subject.kind == MACHINE);
    if let Some(told) = told {
        text.push_str(&wrap(&told.message, ""));
    }
    let superseded = case.report.as_ref().filter(|report| report.phase() == Phase::Superseded);
    if let Some(report) = superseded {
        let judged = report.cause().unwrap_or("no cause");
        let before = format!("It was judged {judged} before it joined: report {}.", place(report));
        text.push_str(&wrap(&before, ""));
    }
    text
}

fn underway(case: &Case, program: Program, now: Timestamp) -> String {
    let mut text = match case.verdict {
        Verdict::Running => "RUNNING: no verdict yet\n".to_owned(),
        Verdict::Failed | Verdict::Succeeded | Verdict::Unknown => "UNKNOWN\n".to_owned(),
    };
    text.push_str(&wrap(&who(case, now), ""));
    let Some(living) = &case.living else {
        let report = case.report.as_ref().map(place).unwrap_or_default();
        text.push_str(&wrap(&format!("Its report {report} holds no verdict yet."), ""));
        return text;
    };
    let since = table::ago(living.created(), now);
    text.push_str(&wrap(&format!("Created {since}; its node has not joined yet."), ""));
    text.push('\n');
    let ours = [case.cse(), case.condition(BOOTSTRAP_SUCCEEDED)];
    for held in living.steps().chain(ours.into_iter().flatten()) {
        text.push_str(&hang(&in_a_line(held), "  ", "    "));
    }
    if let Some(look) = &case.look {
        text.push_str(&kept::timeline(&look.timeline));
        text.push_str(&kept::collectors(&look.asked));
    }
    let _ = write!(text, "\nWhat to do:\n{}", wrap(&todo(case, program), "  "));
    text
}

/// How long to wait, and for which component.
fn todo(case: &Case, program: Program) -> String {
    let is_machine = case.subject.kind == MACHINE;
    let typed = program.typed();
    match (case.is_watched(), is_machine) {
        (true, false) => format!(
            "Wait, and ask again. bringup decides 13 minutes after the creation at the latest; \
             Karpenter deletes a claim whose node has not joined after 15. What failed then is in \
             `{typed} reports`."
        ),
        (true, true) => format!(
            "Wait, and ask again. bringup decides 10 minutes after the VM is there at the latest, \
             unless its controller was told otherwise. What failed then is in `{typed} reports \
             --kind machine`."
        ),
        (false, true) if case.is_early => {
            "Nobody makes its VM yet, so there is none to look at. Its conditions say what it waits \
             for, most often its bootstrap config or the control plane of its cluster; bringup says \
             nothing before there is a VM."
                .to_owned()
        }
        (false, is_machine) => {
            let option = if is_machine { ", with --machines" } else { "" };
            format!(
                "bringup has not said anything about it yet. If that stays so, look whether its \
                 controller runs{option}: `kubectl get pods --all-namespaces -l \
                 app.kubernetes.io/name=bringup`."
            )
        }
    }
}

/// `Registered=Unknown, NodeNotFound: Node not registered with cluster`.
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

/// Entries in as few lines as they fit in; none is broken.
fn packed(entries: &[String]) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for (index, entry) in entries.iter().enumerate() {
        let end = if index + 1 < entries.len() { ";" } else { "" };
        if !line.is_empty() && 2 + line.len() + 1 + entry.len() + end.len() > COLUMNS {
            let _ = writeln!(text, "  {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let _ = write!(line, "{entry}{end}");
    }
    let _ = writeln!(text, "  {line}");
    text
}
