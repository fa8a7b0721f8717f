//! When a claim's VM is read, and how often.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod claim;

use bringup_observe::observation::{Agent, Cse, Mode, Observation, Vm};
use bringup_observe::outputs::conditions;
use bringup_observe::plan::Step;
use bringup_observe::schedule;
use bringup_observe::subject::{AGENT_LIMIT, Place, Subject};
use jiff::SignedDuration;

use crate::claim::{VM, at, bear, snapshot, subject};

#[test]
fn a_healthy_node_is_read_at_most_six_times() {
    let subject = subject();
    // A node whose script runs for two and a half minutes.
    let joins = at(150);
    let (mut looks, mut last): (usize, Option<Observation>) = (0, None);
    while let Some(due) = schedule::next_look(&subject, looks, last.as_ref()) {
        if due >= joins {
            break;
        }
        looks += 1;
        let cse = if looks == 1 { Cse::Absent } else { Cse::Running { since: Some(at(60)) } };
        last = Some(Observation { at: due, agent: Agent::Ready, cse, ..Observation::default() });
    }
    let mut after = 0;
    while schedule::next_look_after_join(joins, after, last.as_ref()).is_some() {
        after += 1;
        let cse = Cse::Succeeded { at: Some(joins) };
        last = Some(Observation { at: joins, agent: Agent::Ready, cse, ..Observation::default() });
    }
    assert!(looks + after <= 6, "{looks} before, {after} after");
}

#[test]
fn a_vm_that_is_still_being_created_is_looked_at_again_soon_and_one_without_extension_is_not() {
    let subject = subject();
    let creating = Observation { at: at(100), vm: Vm::Present, ..Observation::default() };
    let due = schedule::next_look(&subject, 3, Some(&creating)).unwrap();
    assert!(due <= at(136), "its extension may come any moment: {due}");
    let scriptless = Observation { mode: Mode::Scriptless, ..creating };
    assert_eq!(schedule::next_look(&subject, 3, Some(&scriptless)), Some(at(242)));
}

#[test]
fn the_console_of_a_vm_that_joins_by_itself_is_read_at_each_look_and_decides() {
    let seen = Observation {
        at: at(62),
        vm: Vm::Present,
        agent: Agent::Ready,
        mode: Mode::Scriptless,
        ..Observation::default()
    };
    let step = |subject: &Subject, seen: &Observation| {
        let told = conditions::desired(subject, Some(seen), None, false, seen.at);
        let subject = bear(subject.clone(), &told);
        snapshot(&subject, Some(seen), None, seen.at).next_step()
    };
    let aks = subject();
    assert!(matches!(step(&aks, &seen), Step::Wait(_)), "an extension may come yet");
    let place = Place::Known(VM.replace("azure://", "azure-flex://").parse().unwrap());
    let flex = Subject { place, ..subject() };
    assert_eq!(format!("{:?}", step(&flex, &seen)), "Deepen(Forced)");
    let summary = "\nBRINGUP-NODE/1 {\"v\":1,\"kind\":\"join\",\"exit\":192,\"name\":\"JOIN_BASE_OS_FAILED\",\"cause\":\"KernelMismatch\",\"conf\":\"high\",\"step\":\"base-os\",\"ev\":[\"Key was rejected by service\"],\"end\":1}\n";
    let read = seen.clone().with_console(summary, false);
    assert_eq!(read.cse, Cse::Failed { at: Some(at(62)) });
    let Step::Publish(report) = step(&flex, &read) else { panic!("no report") };
    assert_eq!(report.cause(), Some("KernelMismatch"));
    let joined = summary.replace("192", "0").replace("JOIN_BASE_OS_FAILED", "JOINED");
    assert_eq!(seen.with_console(&joined, false).cse, Cse::Succeeded { at: Some(at(62)) });
}

#[test]
fn an_agent_is_silent_only_if_that_was_read_after_its_time_was_over() {
    let subject = subject();
    let read = Observation {
        at: at(0) + AGENT_LIMIT + SignedDuration::from_secs(5),
        vm: Vm::Present,
        agent: Agent::Silent,
        is_full: true,
        ..Observation::default()
    };
    let cause = |seen: &Observation| match snapshot(&subject, Some(seen), None, seen.at).next_step()
    {
        Step::Publish(report) => report.cause().map(str::to_owned),
        _ => None,
    };
    assert_eq!(cause(&read).as_deref(), Some("GuestAgentUnresponsive"));
    let unread = Observation { agent: read.agent.unread(), ..read };
    assert_eq!(cause(&unread), None, "it may have reported since");
    let at_last = Observation { at: at(0) + schedule::FORCED, ..unread };
    assert_eq!(cause(&at_last).as_deref(), Some("Unknown"), "no Node came in time");
}

#[test]
fn whose_agent_has_spoken_does_not_go_before_those_who_were_never_read() {
    let limit = at(2) + AGENT_LIMIT;
    let priority = |agent: Agent| {
        let cse = Cse::Running { since: Some(at(60)) };
        let read = at(560);
        let seen = Observation { at: read, vm: Vm::Present, agent, cse, ..Observation::default() };
        let told = conditions::desired(&subject(), Some(&seen), None, false, read);
        let subject = bear(subject(), &told);
        let step = snapshot(&subject, Some(&seen), None, limit + SignedDuration::from_secs(30));
        format!("{:?}", step.next_step())
    };
    assert_eq!(priority(Agent::Ready), "Look(Schedule)");
    assert_eq!(priority(Agent::Silent), "Look(Forced)");
}

#[test]
fn everything_is_asked_for_before_karpenters_limit() {
    let subject = subject();
    let mut last: Option<Observation> = None;
    let mut looks = 0;
    while let Some(due) = schedule::next_look(&subject, looks, last.as_ref()) {
        looks += 1;
        assert!(due <= at(0) + schedule::FORCED, "look {looks} at {due}");
        last = Some(Observation { at: due, agent: Agent::Ready, ..Observation::default() });
    }
    assert_eq!(last.map(|last| last.at), Some(at(0) + schedule::FORCED));
}
