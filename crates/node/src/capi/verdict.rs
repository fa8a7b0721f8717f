//! When the wait is over, and with what: pure decisions on what is seen at one moment.

use std::time::{Duration, SystemTime};

use bringup_contract::Cause;

use super::exit::Exit;

/// A sentinel, as it is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It is not there.
    Absent,
    /// Something is there that does not count.
    Ignored(String),
    /// It may not be looked at.
    Denied,
    /// It is there since this time.
    There(SystemTime),
}

/// What can be said of the bootstrap, apart from its sentinel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bootstrap {
    /// There is no sign of it.
    NotSeen,
    /// It has begun, and nothing says that it has ended.
    Running,
    /// What should tell cannot be read, because of this.
    Unknown(String),
    /// It has ended, in this way.
    Ended(End),
    /// It has ended and says itself that all is well; no sentinel is needed.
    Succeeded,
}

/// How a bootstrap ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// In words.
    pub(crate) how: String,
    /// The program that ran its commands reports that they failed.
    pub(crate) commands_failed: bool,
}

impl End {
    /// It ended; whether well, the logs must tell.
    pub(crate) fn plain(how: &str) -> Self {
        Self { how: how.to_owned(), commands_failed: false }
    }
}

/// Everything that is seen at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Observations {
    /// The success sentinel, the best of several.
    pub(crate) success: Mark,
    /// The failure sentinel.
    pub(crate) failure: Mark,
    /// The failure sentinel is written to its end.
    pub(crate) failure_whole: bool,
    /// The bootstrap.
    pub(crate) bootstrap: Bootstrap,
    /// A sign of the bootstrap was seen, now or before.
    pub(crate) started: bool,
    /// This process was asked to end.
    pub(crate) interrupted: bool,
}

/// How long what lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// The wait, over reboots.
    pub(crate) waited: Duration,
    /// The time that counts against the limit; nothing while its beginning is awaited.
    pub(crate) used: Option<Duration>,
    /// The bootstrap has been seen ended.
    pub(crate) ended_for: Duration,
    /// The failure sentinel has been there.
    pub(crate) failed_for: Duration,
}

/// How long what may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The whole wait.
    pub(crate) timeout: Duration,
    /// Until the first sign of the bootstrap.
    pub(crate) start_timeout: Duration,
    /// Between the end of the bootstrap and its sentinel.
    pub(crate) settle: Duration,
    /// The commands after kubeadm are waited for as well.
    pub(crate) post_commands: bool,
}

/// What follows from what is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Look again when something changes, and after this time at the latest.
    Wait(Duration),
    /// The wait is over.
    Over(Ending),
}

/// How a wait ends, before its cause is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The sentinel is there, or the bootstrap itself says that all is well.
    Succeeded,
    /// The failure sentinel is there.
    Failed,
    /// The sentinel is there, and the commands after it have ended too.
    PostCommandsEnded,
    /// The bootstrap ended without a sentinel.
    EndedWithoutSentinel,
    /// Time is up, and it runs.
    StillRunning,
    /// Time is up, and the state cannot be determined.
    StateUnknown,
    /// It never began.
    NeverStarted,
    /// This process was asked to end.
    Interrupted,
    /// The sentinel may not be looked at.
    NoPermission,
}

/// Decides.
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
        // Its beginning cannot be seen, so that its time would never be over.
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

/// What the sentinels alone decide. Of two, the newer one counts.
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
    /// It is told, and is no failure.
    Warn,
    /// It is a failure.
    Fail,
}

/// How far kubeadm came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reached {
    /// It did not run, as far as can be seen.
    #[default]
    Nothing,
    /// It ran.
    Kubeadm,
    /// It ran, and one of its own checks refused.
    Check,
    /// The node joined the cluster.
    Joined,
}

/// What the logs add when the wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Why it failed.
    pub(crate) cause: Cause,
    /// How far kubeadm came.
    pub(crate) reached: Reached,
    /// User data came with the machine, where that is known.
    pub(crate) delivered: Option<bool>,
    /// The commands of the user data failed as a whole.
    pub(crate) commands_failed: bool,
}

/// The number of an ending. `there`: the sentinel is.
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

/// The number of a cause, or of the place where it happened when the cause says no more than that.
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
