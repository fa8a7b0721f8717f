//! Decides when the wait is over and how it ends: pure functions of one observation.

use std::time::{Duration, SystemTime};

use bringup_contract::Cause;

use super::exit::Exit;

/// The state of a sentinel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The sentinel does not exist.
    Absent,
    /// A file exists but does not count, for this reason.
    Ignored(String),
    /// The permission to read the sentinel is missing.
    Denied,
    /// The sentinel exists since this time.
    There(SystemTime),
}

/// The state of the bootstrap, apart from its sentinel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bootstrap {
    /// There is no sign of a bootstrap.
    NotSeen,
    /// The bootstrap has begun, and there is no sign of its end.
    Running,
    /// The state cannot be read, for this reason.
    Unknown(String),
    /// The bootstrap has ended, in this way.
    Ended(End),
    /// The bootstrap has ended and reports success itself; no sentinel is needed.
    Succeeded,
}

/// How a bootstrap ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// A short description.
    pub(crate) how: String,
    /// Whether the program that ran the bootstrap's commands reports that they failed.
    pub(crate) commands_failed: bool,
}

impl End {
    /// An end without a result; the logs must show whether the bootstrap succeeded.
    pub(crate) fn plain(how: &str) -> Self {
        Self { how: how.to_owned(), commands_failed: false }
    }
}

/// One observation of everything that the verdict needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Observations {
    /// The best of the success sentinels.
    pub(crate) success: Mark,
    /// The failure sentinel.
    pub(crate) failure: Mark,
    /// Whether the failure sentinel is completely written.
    pub(crate) failure_whole: bool,
    pub(crate) bootstrap: Bootstrap,
    /// Whether a sign of the bootstrap was ever seen.
    pub(crate) started: bool,
    /// Whether this process was interrupted.
    pub(crate) interrupted: bool,
}

/// How long the wait and each state have lasted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// The duration of the wait, including reboots.
    pub(crate) waited: Duration,
    /// The time that counts against the limit; `None` before the limit begins to count.
    pub(crate) used: Option<Duration>,
    /// How long the bootstrap has been seen as ended.
    pub(crate) ended_for: Duration,
    /// How long the failure sentinel has existed.
    pub(crate) failed_for: Duration,
}

/// The time limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The limit of the whole wait.
    pub(crate) timeout: Duration,
    /// The limit until the first sign of the bootstrap.
    pub(crate) start_timeout: Duration,
    /// The limit between the end of the bootstrap and its sentinel.
    pub(crate) settle: Duration,
    /// Whether the wait also waits for the commands after kubeadm.
    pub(crate) post_commands: bool,
}

/// The decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Wait for a change, and at most this long.
    Wait(Duration),
    /// The wait is over.
    Over(Ending),
}

/// How a wait ends, before its cause is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The sentinel exists, or the bootstrap itself reports success.
    Succeeded,
    /// The failure sentinel exists.
    Failed,
    /// The sentinel exists, and the commands after kubeadm have ended too.
    PostCommandsEnded,
    /// The bootstrap ended without a sentinel.
    EndedWithoutSentinel,
    /// The time limit is over, and the bootstrap still runs.
    StillRunning,
    /// The time limit is over, and the state cannot be determined.
    StateUnknown,
    /// The bootstrap never began.
    NeverStarted,
    /// This process was interrupted.
    Interrupted,
    /// The permission to read the sentinel is missing.
    NoPermission,
}

pub(crate) fn verdict(seen: &Observations, clock: &Clock, limits: &Limits) -> Verdict {
    let late = clock.used.is_some_and(|used| used >= limits.timeout);
    if let Some(over) = by_sentinel(seen, clock, limits, late) {
        return over;
    }
    if seen.interrupted {
        return Verdict::Over(Ending::Interrupted);
    }
    if seen.success == Mark::Denied {
        return Verdict::Over(Ending::NoPermission);
    }
    let left = clock.used.map(|used| limits.timeout.saturating_sub(used));
    let until = |limit: Duration| Verdict::Wait(left.map_or(limit, |left| left.min(limit)));
    match &seen.bootstrap {
        Bootstrap::Succeeded => Verdict::Over(Ending::Succeeded),
        Bootstrap::Ended(_) if late || clock.ended_for >= limits.settle => {
            Verdict::Over(Ending::EndedWithoutSentinel)
        }
        Bootstrap::Ended(_) => until(limits.settle.saturating_sub(clock.ended_for)),
        Bootstrap::Running if late => Verdict::Over(Ending::StillRunning),
        Bootstrap::Unknown(_) if late => Verdict::Over(Ending::StateUnknown),
        // The beginning of the bootstrap cannot be observed, so its time limit would never begin.
        Bootstrap::Unknown(_) if left.is_none() => {
            let most = limits.start_timeout.saturating_add(limits.timeout);
            match most.saturating_sub(clock.waited) {
                Duration::ZERO => Verdict::Over(Ending::StateUnknown),
                rest => Verdict::Wait(rest),
            }
        }
        Bootstrap::NotSeen if late && seen.started => Verdict::Over(Ending::StateUnknown),
        Bootstrap::NotSeen if !seen.started && (late || clock.waited >= limits.start_timeout) => {
            Verdict::Over(Ending::NeverStarted)
        }
        Bootstrap::NotSeen if !seen.started => {
            until(limits.start_timeout.saturating_sub(clock.waited))
        }
        Bootstrap::Running | Bootstrap::Unknown(_) | Bootstrap::NotSeen => until(Duration::MAX),
    }
}

/// The decision from the sentinels alone. If both exist, the newer one counts.
fn by_sentinel(seen: &Observations, clock: &Clock, limits: &Limits, late: bool) -> Option<Verdict> {
    let failed = match (&seen.success, &seen.failure) {
        (Mark::There(success), Mark::There(failure)) => failure >= success,
        (_, failure) => matches!(failure, Mark::There(_)),
    };
    if failed {
        let settled = seen.failure_whole || late || clock.failed_for >= limits.settle;
        let left = limits.settle.saturating_sub(clock.failed_for);
        return Some(if settled { Verdict::Over(Ending::Failed) } else { Verdict::Wait(left) });
    }
    if !matches!(seen.success, Mark::There(_)) {
        return None;
    }
    match &seen.bootstrap {
        Bootstrap::Running if limits.post_commands && !late && !seen.interrupted => {
            let left = clock.used.map(|used| limits.timeout.saturating_sub(used));
            Some(Verdict::Wait(left.unwrap_or(Duration::MAX)))
        }
        Bootstrap::Running if limits.post_commands => None,
        Bootstrap::Ended(_) if limits.post_commands => {
            Some(Verdict::Over(Ending::PostCommandsEnded))
        }
        Bootstrap::Running
        | Bootstrap::Ended(_)
        | Bootstrap::NotSeen
        | Bootstrap::Unknown(_)
        | Bootstrap::Succeeded => Some(Verdict::Over(Ending::Succeeded)),
    }
}

/// What to do when the node joined and the bootstrap did not write the sentinel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinedPolicy {
    /// Report it, but not as a failure.
    Warn,
    /// Treat it as a failure.
    Fail,
}

/// The progress of kubeadm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reached {
    /// There is no sign that kubeadm ran.
    #[default]
    Nothing,
    /// kubeadm ran.
    Kubeadm,
    /// kubeadm ran, and one of its own checks failed.
    Check,
    /// The node joined the cluster.
    Joined,
}

/// The facts that the logs add when the wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The cause of the failure.
    pub(crate) cause: Cause,
    pub(crate) reached: Reached,
    /// Whether the machine received user data, if known.
    pub(crate) delivered: Option<bool>,
    /// Whether the commands of the user data failed as a whole.
    pub(crate) commands_failed: bool,
}

/// The exit code of an ending. `there`: the sentinel exists.
pub(crate) fn exit_for(ending: Ending, facts: Facts, there: bool, policy: JoinedPolicy) -> Exit {
    let joined = facts.reached == Reached::Joined && !there && policy == JoinedPolicy::Warn;
    let delivered = facts.delivered != Some(false);
    match ending {
        Ending::PostCommandsEnded if facts.commands_failed => Exit::PostCommandFailed,
        Ending::Succeeded | Ending::PostCommandsEnded => Exit::Succeeded,
        Ending::Failed => Exit::FailureSentinel,
        Ending::Interrupted => Exit::Interrupted,
        Ending::NoPermission => Exit::NoPermission,
        Ending::EndedWithoutSentinel | Ending::StillRunning | Ending::StateUnknown if joined => {
            Exit::JoinedWithoutSentinel
        }
        Ending::EndedWithoutSentinel | Ending::NeverStarted if !delivered => Exit::NotDelivered,
        Ending::EndedWithoutSentinel => exit_for_cause(facts),
        Ending::StillRunning => Exit::StillRunning,
        Ending::StateUnknown => Exit::StateUnknown,
        Ending::NeverStarted => Exit::NeverStarted,
    }
}

/// The exit code of a cause, or of the last phase when the cause is not more precise.
fn exit_for_cause(facts: Facts) -> Exit {
    let vague = facts.cause == Cause::UserDataInvalid && facts.commands_failed;
    let own = Exit::of(facts.cause);
    if own != Exit::EndedWithoutSentinel && !vague {
        return own;
    }
    match facts.reached {
        Reached::Check => Exit::PreflightFailed,
        Reached::Nothing if facts.commands_failed => Exit::PreCommandFailed,
        Reached::Nothing | Reached::Kubeadm | Reached::Joined => Exit::EndedWithoutSentinel,
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
