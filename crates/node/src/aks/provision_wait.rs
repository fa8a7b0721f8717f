//! `provision-wait`: waits for the result of an attempt and prints it.

mod decision;

use std::time::{Duration, Instant};

use jiff::Timestamp;

use self::decision::{Seen, Step, Work, next_step};
use crate::agent::Agent;
use crate::aks::exit_code::Own;
use crate::aks::postmortem::{examine, summarise};
use crate::aks::result_files::{BASE_PREPARED, Leftovers};
use crate::clock::Moment;
use crate::cse_output;
use crate::host::linux::lock;
use crate::host::linux::process;
use crate::host::linux::store;
use crate::host::linux::watch::Watch;
use crate::outcome::Outcome;
use crate::output;
use crate::run::{Identity, Run};
use crate::secrets::Secrets;
use crate::summary::Summary;

/// How often progress is logged.
const PROGRESS: Duration = Duration::from_mins(1);

/// The result of a wait.
#[derive(Debug)]
pub(crate) struct Ended {
    result: Outcome,
    summary: Summary,
    sentence: Option<String>,
}

/// Waits and prints; returns the exit code.
pub(crate) fn run(agent: &Agent) -> i32 {
    let ended = wait(agent);
    output::answer(&cse_output::document(&ended.result, &ended.summary));
    output::remark(&cse_output::standard_error(ended.sentence.as_deref(), &ended.summary));
    ended.result.exit
}

fn wait(agent: &Agent) -> Ended {
    let root = &agent.root;
    let (marks, spare) = (root.containers(), root.at("/run/bringup-node"));
    let directories = [marks.as_path(), spare.as_path()];
    let watch = Watch::on(&directories);
    let begun = Instant::now();
    let (mut complete_since, mut idle_since): (Option<Moment>, Option<Moment>) = (None, None);
    let mut told = Instant::now();
    loop {
        watch.arm(&directories);
        let left = Leftovers::observe(root);
        let run = Run::load(root);
        let identity = Identity::observe(root);
        let work = work(agent, run.as_ref().filter(|run| run.is_of(&identity)));
        let since = |mark: &mut Option<Moment>, holds: bool| {
            if holds {
                mark.get_or_insert_with(Moment::now).elapsed()
            } else {
                *mark = None;
                Duration::ZERO
            }
        };
        let seen = Seen {
            complete_for: since(&mut complete_since, left.complete.is_some()),
            idle_for: since(&mut idle_since, work == Work::None),
            left,
            run,
            identity,
            work,
            waited: begun.elapsed(),
            booted: booted(),
        };
        match next_step(&seen, agent.settings.timeout, agent.settings.start_timeout) {
            Step::Wait => {}
            step => return ended(agent, step, &seen),
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            let seconds = begun.elapsed().as_secs();
            agent.log.info(&format!("waiting for provision.complete since {seconds} s"));
        }
        let left = agent.settings.timeout.saturating_sub(begun.elapsed());
        let start = agent.settings.start_timeout.checked_sub(begun.elapsed());
        watch.wait(None, start.map_or(left, |start| start.min(left)));
    }
}

fn work(agent: &Agent, run: Option<&Run>) -> Work {
    let alive = |process: Option<process::Process>| process.is_some_and(process::Process::alive);
    if lock::held(&agent.root) || alive(run.and_then(Run::agent)) {
        Work::Agent
    } else if alive(run.and_then(Run::child)) {
        Work::Scripts
    } else if process::provisioner_in_sight(agent.root.directory()) {
        Work::Others
    } else {
        Work::None
    }
}

/// When the kernel booted, by the kernel's own count.
fn booted() -> Option<Timestamp> {
    let up = store::line(std::path::Path::new("/proc/uptime"))?;
    let seconds: f64 = up.split_whitespace().next()?.parse().ok()?;
    let up = jiff::SignedDuration::try_from_secs_f64(seconds).ok()?;
    Timestamp::now().checked_sub(up).ok()
}

fn ended(agent: &Agent, step: Step, seen: &Seen) -> Ended {
    let waited = seen.waited.as_secs();
    // The command or configuration may have been delivered after the waiter started.
    let agent = &agent.knowing(&Secrets::delivered(&agent.root));
    match step {
        Step::Judge => judged(agent, seen),
        Step::Wait | Step::BasePrepared => Ended {
            result: Outcome::own(0, "", ""),
            summary: Summary::new(0, BASE_PREPARED),
            sentence: Some("only the base of the image was to be prepared, and it is".to_owned()),
        },
        Step::NeverStarted => own(
            agent,
            seen,
            Own::NeverStarted,
            &format!(
                "no provisioner was seen in {waited} s: no configuration was delivered, or nothing started the agent"
            ),
        ),
        Step::Died => own(
            agent,
            seen,
            Own::ProvisionerDied,
            "the provisioner and its scripts are gone and left no result",
        ),
        Step::TimedOut => {
            own(agent, seen, Own::WaitTimedOut, &format!("there is no result after {waited} s"))
        }
    }
}

/// The waiter's own result: there is no result of an attempt, or none that can be read.
fn own(agent: &Agent, seen: &Seen, own: Own, sentence: &str) -> Ended {
    let since = seen.run.as_ref().map(|run| run.started);
    let found = examine(agent, None, since);
    let sentence = match &found.step {
        Some(step) => format!("{sentence}; the step that was begun last is {step}"),
        None => sentence.to_owned(),
    };
    let exit = own.number(agent.settings.base);
    let result = Outcome::own(exit, &format!("{}: {sentence}", own.name()), "");
    let mut summary = summarise(&result, Some(own.name()), Some(&found), &[]);
    summary.prove(&sentence);
    summary.took.get_or_insert(seen.waited.as_secs());
    agent.stamp(&mut summary, seen.run.as_ref(), &seen.identity);
    agent.log.warn(&sentence);
    Ended { result, summary, sentence: Some(sentence) }
}

fn judged(agent: &Agent, seen: &Seen) -> Ended {
    let result = match &seen.left.result {
        Some(Ok(result)) => agent.secrets.strike_outcome(result),
        Some(Err(why)) => return own(agent, seen, Own::ResultUnreadable, &why.to_string()),
        None => return own(agent, seen, Own::ResultUnreadable, "there is no result"),
    };
    // The agent saw more than the waiter can: the agent's mark counts if it belongs to this result.
    let mark = seen.left.mark.clone().filter(|mark| mark.exit == result.exit);
    let summary = if let Some(mut mark) = mark {
        mark.machine = None;
        mark
    } else {
        let since = seen.run.as_ref().map(|run| run.started);
        let found = (result.exit != 0).then(|| examine(agent, Some(&result), since));
        let mut summary = summarise(&result, None, found.as_ref(), &[]);
        agent.stamp(&mut summary, seen.run.as_ref(), &seen.identity);
        summary
    };
    let sentence = (result.exit != 0).then(|| cse_output::failure(&result));
    if let Some(sentence) = &sentence {
        agent.log.line(crate::log::Level::Error, sentence, &[]);
    }
    Ended { result, summary, sentence }
}
