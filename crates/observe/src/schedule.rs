//! When to read Azure: reads are scarce, so a healthy node costs at most six.
//!
//! Karpenter's Events and watched consoles reveal most failures at once. This schedule finds the others.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bringup_contract::bounds::TimeMath as _;
use jiff::{SignedDuration, Timestamp};

use crate::observation::{Agent, Cse, Mode, Observation, Vm};
use crate::profile::Pauses;
use crate::subject::Subject;

/// The pauses between looks with [`Pauses::Growing`], in seconds; the last one repeats.
const GROWING: [i64; 5] = [15, 15, 30, 30, 60];
/// The pauses between looks with [`Pauses::Steady`], in seconds: until [`A_WHILE`] after the launch, and from
/// then on.
const STEADY: [i64; 2] = [10, 30];
const A_WHILE: SignedDuration = SignedDuration::from_mins(4);
/// The pause between looks while the VM may not exist yet.
const UNTIL_MADE: SignedDuration = SignedDuration::from_mins(1);
/// When to look at a VM without an extension, in seconds after the launch. The second look finds VMs that
/// were created just before the first one and got their extension a moment later.
const WITHOUT_EXTENSION: [i64; 5] = [60, 90, 240, 300, 600];
/// When to look at a VM that bringup created, in seconds after the launch: the console shows the result from
/// the start.
const OURS: [i64; 8] = [45, 75, 105, 150, 210, 300, 420, 600];
/// The time from a claim's creation to the verdict: all sources are read now, because Karpenter deletes the
/// claim later.
pub const FORCED: SignedDuration = SignedDuration::from_mins(12);
/// How long a node may take to join after its script succeeded.
pub const SILENCE: SignedDuration = SignedDuration::from_mins(3);
/// When to read the extension's result after the Node registered, in seconds.
const AFTER_JOIN: [i64; 4] = [3, 15, 60, 120];

/// The longest pause after a write's first conflict.
const FIRST_CONFLICT: SignedDuration = SignedDuration::from_millis(20);

/// When to look at a pending subject next, from the number of earlier looks and the last observation.
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
        // The VM is still being created, and gets its extension later.
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

/// When to read the extension's result of a subject whose Node exists; none once the result is known, or if
/// no extension exists.
pub fn next_look_after_join(
    registered: Timestamp,
    looks_since: usize,
    last: Option<&Observation>,
) -> Option<Timestamp> {
    let settled = match last.map(|last| &last.cse) {
        Some(Cse::Succeeded { .. } | Cse::Failed { .. }) => true,
        // Before it joined, the VM may have had no extension yet. After that, Azure adds none.
        Some(Cse::Absent) => looks_since > 0,
        Some(Cse::Running { .. }) | None => false,
    };
    let seconds = *AFTER_JOIN.get(looks_since)?;
    (!settled).then(|| registered.plus(SignedDuration::from_secs(seconds)))
}

/// The first of these moments after the launch that is later than `last`.
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

/// The pause after a conflict with another writer, so that the two do not conflict again and again: anything
/// up to a limit that doubles with each attempt. The pause is a hash of the conflict, so that every process
/// computes the same one.
pub fn after_conflict(attempt: u32, uid: &str, version: &str) -> SignedDuration {
    let limit = FIRST_CONFLICT.saturating_mul(1_i32 << attempt.min(6));
    let limit = u64::try_from(limit.as_millis()).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (attempt, uid, version).hash(&mut hasher);
    let chosen = hasher.finish() % (limit + 1);
    SignedDuration::from_millis(i64::try_from(chosen).unwrap_or_default())
}

/// A duration prolonged by up to a fifth, always the same for one subject, so that a thousand claims that
/// were created together are not read at the same moment.
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
