//! Only one attempt runs at a time: the lock decides which agent may begin.

use std::fs::File;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::aks::exit_code::Own;
use crate::host::linux::lock;
use crate::host::linux::process::Process;
use crate::host::linux::watch::Watch;
use crate::run::Run;

/// How often to check whether the other agent has ended: no file changes when a process ends.
const LOOK: Duration = Duration::from_millis(100);

/// Which agent may run an attempt.
#[derive(Debug)]
pub(super) enum Turn {
    /// This agent, as long as the lock file is open; `None` if there is no place for locks.
    Ours(Option<File>),
    /// Another agent did, and its attempt ended with this exit code.
    Ended(i32),
}

/// Waits until this agent may begin, or until another agent's attempt has ended. If the other agent is
/// killed, this agent may begin.
pub(super) fn take(agent: &Agent) -> Turn {
    let root = &agent.root;
    let before = Run::load(root);
    match lock::take(root) {
        Ok(Some(held)) => return Turn::Ours(Some(held)),
        Ok(None) => {}
        Err(error) => {
            // Without a place for locks, the agent still has to bring up the node.
            agent.log.warn(&format!("no lock: {error}"));
            return Turn::Ours(None);
        }
    }
    agent.log.info("another provision is running; its result is waited for");
    let begun = Instant::now();
    let state = root.at("/var/lib/bringup-node");
    let watch = Watch::on(&[&state]);
    loop {
        // First the lock, then the record: the holder writes the record before it releases the lock.
        let taken = lock::take(root).ok().flatten();
        let now = Run::load(root);
        let lives = now.as_ref().and_then(Run::agent).is_some_and(Process::alive);
        if let Some(exit) = ended_since(before.as_ref(), now.as_ref(), lives) {
            return Turn::Ended(exit);
        }
        if taken.is_some() {
            return Turn::Ours(taken);
        }
        if begun.elapsed() >= agent.settings.timeout {
            agent.log.warn("the other provision did not end in time");
            return Turn::Ended(Own::WaitTimedOut.number(agent.settings.base));
        }
        watch.arm(&[&state]);
        watch.wait(None, LOOK);
    }
}

/// The exit code of an attempt that was not over before, or whose agent still runs.
fn ended_since(before: Option<&Run>, now: Option<&Run>, lives: bool) -> Option<i32> {
    let now = now?;
    let known = before.is_some_and(|before| before.id == now.id && before.exit.is_some());
    now.exit.filter(|_| lives || !known)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::run::Identity;

    #[test]
    fn an_attempt_that_was_over_before_is_not_the_one_that_is_waited_for() {
        let run = || Run::begin(&Identity::default(), Timestamp::UNIX_EPOCH, None);
        let ended = |mut run: Run| {
            run.ended(7, "", Timestamp::UNIX_EPOCH);
            run
        };
        let open = run();
        let over = ended(open.clone());
        assert_eq!(ended_since(Some(&open), Some(&open), false), None);
        assert_eq!(ended_since(Some(&open), Some(&over), false), Some(7));
        assert_eq!(ended_since(None, Some(&over), false), Some(7));
        assert_eq!(ended_since(Some(&over), Some(&over), false), None);
        assert_eq!(ended_since(Some(&over), Some(&over), true), Some(7));
        assert_eq!(ended_since(Some(&over), Some(&ended(run())), false), Some(7));
    }
}
