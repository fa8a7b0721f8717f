//! When to look at Azure: reads are scarce, so a healthy node costs at most six.
//!
//! Events of Karpenter bring most failures to light at once, and so does listening to
//! consoles; this is the net below them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bringup_contract::bounds::TimeMath as _;
use jiff::{SignedDuration, Timestamp};

use crate::observation::{Agent, Cse, Mode, Observation, Vm};
use crate::profile::Pauses;
use crate::subject::Subject;

/// How long after a look the next one follows with [`Pauses::Growing`]; the last is repeated.
const GROWING: [i64; 5] = [15, 15, 30, 30, 60];
/// The same with [`Pauses::Steady`]: until [`A_WHILE`] after the launch, and from then on.
const STEADY: [i64; 2] = [10, 30];
const A_WHILE: SignedDuration = SignedDuration::from_mins(4);
/// The same as long as a VM may not have been made yet.
const UNTIL_MADE: SignedDuration = SignedDuration::from_mins(1);
/// When a VM without an extension is looked at, after it was accepted. The second time is for
/// those that were created just before the first, and get their extension a moment later.
const WITHOUT_EXTENSION: [i64; 5] = [60, 90, 240, 300, 600];
/// The same for a VM that we made: its result is on the console, which is there from the start.
const OURS: [i64; 8] = [45, 75, 105, 150, 210, 300, 420, 600];
/// The verdict has to stand before the claim is deleted: all that can be had is read here.
pub const FORCED: SignedDuration = SignedDuration::from_mins(12);
/// How long a node may take to join after its script succeeded.
pub const SILENCE: SignedDuration = SignedDuration::from_mins(3);
/// How soon after the registration the extension's result is read.
const AFTER_JOIN: [i64; 4] = [3, 15, 60, 120];

/// The longest pause after the first conflict of a write.
const FIRST_CONFLICT: SignedDuration = SignedDuration::from_millis(20);

/// When a pending subject is to be looked at next, given how often it was looked at and what was
/// seen last.
pub fn next_look(subject: &Subject, looks: usize, last: Option<&Observation>) -> Option<Timestamp> {
    let launched = subject.launched()?;
    let forced = subject.deadline(last);
    let Some(last) = last else {
        let first = jittered(subject.profile.first_look, &subject.uid);
        return Some(launched.plus(first).min(forced));
    };
    let growing = || growing_pause_after(last.at, looks, &subject.uid);
    let while_running = || match subject.profile.pauses {
        Pauses::Growing => growing(),
        Pauses::Steady => steady_pause_after(last.at, launched, &subject.uid),
    };
    let has_no_console = last.console == Some(false);
    let regular = match &last.cse {
        _ if subject.may_not_exist(last) => last.at.plus(jittered(UNTIL_MADE, &subject.uid)),
        Cse::Absent if subject.profile.console_decides && has_no_console => while_running(),
        Cse::Absent if subject.has_console() => after(&OURS, launched, last.at).unwrap_or(forced),
        // It is still being created: its extension comes afterwards.
        Cse::Absent if last.vm == Vm::Present && last.mode == Mode::Unknown => growing(),
        Cse::Absent => after(&WITHOUT_EXTENSION, launched, last.at).unwrap_or(forced),
        Cse::Succeeded { at } => {
            let silent = at.unwrap_or(last.at).plus(SILENCE);
            if silent > last.at && !subject.is_control_plane { silent } else { growing() }
        }
        Cse::Running { .. } | Cse::Failed { .. } => while_running(),
    };
    let agent = (last.agent != Agent::Ready).then(|| subject.agent_deadline(Some(last)));
    let dues = [Some(regular), agent, Some(forced)];
    dues.into_iter().flatten().filter(|due| *due > last.at).min()
}

/// When the extension's result is to be read of a subject whose Node is there; never, once it is
/// known or there is no extension.
pub fn next_look_after_join(
    registered: Timestamp,
    looks_since: usize,
    last: Option<&Observation>,
) -> Option<Timestamp> {
    let settled = match last.map(|last| &last.cse) {
        Some(Cse::Succeeded { .. } | Cse::Failed { .. }) => true,
        // Before it joined a VM may have had no extension yet; after that it gets none.
        Some(Cse::Absent) => looks_since > 0,
        Some(Cse::Running { .. }) | None => false,
    };
    let seconds = *AFTER_JOIN.get(looks_since)?;
    (!settled).then(|| registered.plus(SignedDuration::from_secs(seconds)))
}

/// The first of some moments after the launch that is still to come.
fn after(seconds: &[i64], launched: Timestamp, last: Timestamp) -> Option<Timestamp> {
    let mut moments =
        seconds.iter().map(|seconds| launched.plus(SignedDuration::from_secs(*seconds)));
    moments.find(|at| *at > last)
}

fn growing_pause_after(last: Timestamp, looks: usize, uid: &str) -> Timestamp {
    let seconds = GROWING[looks.saturating_sub(1).min(GROWING.len() - 1)];
    last.plus(jittered(SignedDuration::from_secs(seconds), uid))
}

fn steady_pause_after(last: Timestamp, launched: Timestamp, uid: &str) -> Timestamp {
    let [soon, late] = STEADY;
    let seconds = if last < launched.plus(A_WHILE) { soon } else { late };
    last.plus(jittered(SignedDuration::from_secs(seconds), uid))
}

/// How long to pause after another writer has changed an object first, so that two writers do not
/// conflict again and again: anything up to a limit that doubles each time. It follows from the
/// conflict itself, so that every process computes the same pause.
pub fn after_conflict(attempt: u32, uid: &str, version: &str) -> SignedDuration {
    let limit = FIRST_CONFLICT.saturating_mul(1_i32 << attempt.min(6));
    let limit = u64::try_from(limit.as_millis()).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (attempt, uid, version).hash(&mut hasher);
    let chosen = hasher.finish() % (limit + 1);
    SignedDuration::from_millis(i64::try_from(chosen).unwrap_or_default())
}

/// A duration up to a fifth longer, always the same for the same subject: a thousand claims made
/// at once are not read at once.
fn jittered(duration: SignedDuration, uid: &str) -> SignedDuration {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    let share = i64::try_from(hasher.finish() % 200).unwrap_or_default();
    let added = duration.as_millis().saturating_mul(i128::from(share)) / 1000;
    duration.saturating_add(SignedDuration::from_millis(i64::try_from(added).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_after_conflicts_differ_and_their_limit_doubles() {
        let pauses = |attempt| -> Vec<SignedDuration> {
            (0..200).map(|version| after_conflict(attempt, "u", &version.to_string())).collect()
        };
        for (attempt, limit) in [(0, 20), (1, 40), (4, 320), (99, 1280)] {
            let (all, limit) = (pauses(attempt), SignedDuration::from_millis(limit));
            assert!(all.iter().all(|pause| *pause <= limit && !pause.is_negative()));
            assert!(all.iter().any(|pause| *pause > limit / 2), "attempt {attempt}: up to {limit}");
            assert!(all.iter().any(|pause| *pause < limit / 4), "attempt {attempt}: from nothing");
        }
        assert_eq!(pauses(2), pauses(2));
        assert_ne!(after_conflict(3, "u", "1"), after_conflict(3, "v", "1"));
    }
}
