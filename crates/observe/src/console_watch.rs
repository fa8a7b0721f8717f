//! Watches the consoles of VMs that need no extension to become nodes.
//!
//! Azure allows twelve reads of a VM a minute, for all clients together. The blob behind the VM's console has
//! no such limit. So the observer reads the blob every two seconds, and reads all other sources at once when
//! the console proves that a bootstrap has failed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bringup_azure::model::SasAddress;
use bringup_contract::bounds::TimeMath as _;
use jiff::{SignedDuration, Timestamp};

use crate::observation::{Cse, Observation};
use crate::subject::{Place, Subject};

/// The pause between two reads of a console.
const PAUSE: SignedDuration = SignedDuration::from_secs(2);
/// With many consoles, the pause between two reads of each is this share times their number: all together
/// cause twenty reads a second.
const SHARE: SignedDuration = SignedDuration::from_millis(50);
/// The pause after a failed read of a console.
const UNREADABLE_PAUSE: SignedDuration = SignedDuration::from_mins(1);
/// The most consoles to watch at a time: each needs an address, which costs a read of the VM every few
/// minutes. All other VMs are read by their schedule alone.
const MOST: usize = 200;

/// The result of the last read of a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The console proves no failure.
    NoFailure,
    /// The console cannot be read now, or its failure has led to no verdict.
    Unreadable,
    /// The console proves that the bootstrap failed; the VM has not been read since.
    Failure,
    /// The console proves that the bootstrap failed, and the VM has been read since.
    Inspected,
}

/// The state of one console, and how many consoles are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConsoleWatch {
    /// The time and the result of the last read; none before the first.
    pub last: Option<(Timestamp, Finding)>,
    /// How many consoles are watched.
    pub watched: usize,
}

impl ConsoleWatch {
    /// Whether the console proves a failure, and the VM has not been read since.
    pub fn shows_failure(self) -> bool {
        matches!(self.last, Some((_, Finding::Failure)))
    }

    /// Whether the VM was read because of the console, and the other sources were not read yet.
    pub fn is_inspected(self) -> bool {
        matches!(self.last, Some((_, Finding::Inspected)))
    }

    /// When to read the console of a pending subject next; none if the VM has no console, or if the result of
    /// the bootstrap is known.
    pub fn next(self, subject: &Subject, seen: Option<&Observation>) -> Option<Timestamp> {
        let launched = subject.launched()?;
        let is_over =
            matches!(seen.map(|seen| &seen.cse), Some(Cse::Succeeded { .. } | Cse::Failed { .. }));
        let has_none =
            seen.is_some_and(|seen| seen.console == Some(false) || subject.may_not_exist(seen));
        let is_known = matches!(subject.place, Place::Known(_));
        if !subject.has_console() || is_over || has_none || !is_known {
            return None;
        }
        let watched = i32::try_from(self.watched).unwrap_or(i32::MAX);
        match self.last {
            None => (self.watched < MOST).then_some(launched),
            Some((at, Finding::Unreadable)) => Some(at.plus(UNREADABLE_PAUSE)),
            Some((at, _)) => Some(at.plus(PAUSE.max(SHARE.saturating_mul(watched)))),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct WatchedConsole {
    /// The console's address, and the end of its validity.
    pub(crate) address: Option<(SasAddress, Timestamp)>,
    /// The blob's version (etag) at the last read.
    pub(crate) version: Option<String>,
    last: Option<(Timestamp, Finding)>,
}

/// All watched consoles, by the uid of their subject.
#[derive(Debug, Default)]
pub(crate) struct WatchedConsoles(Mutex<HashMap<String, WatchedConsole>>);

impl WatchedConsoles {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, WatchedConsole>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state_of(&self, uid: &str) -> ConsoleWatch {
        let consoles = self.lock();
        let last = consoles.get(uid).and_then(|console| console.last);
        ConsoleWatch { last, watched: consoles.len() }
    }

    /// A subject's console, which counts as watched from now on.
    pub(crate) fn start(&self, uid: &str) -> WatchedConsole {
        self.lock().entry(uid.to_owned()).or_default().clone()
    }

    pub(crate) fn store(&self, uid: &str, console: WatchedConsole, at: Timestamp, found: Finding) {
        let last = Some((at, found));
        self.lock().insert(uid.to_owned(), WatchedConsole { last, ..console });
    }

    pub(crate) fn stop(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Changes a finding after the observer has acted on it.
    pub(crate) fn advance(&self, uid: &str, from: Finding, to: Finding) {
        if let Some(WatchedConsole { last: Some((_, found)), .. }) = self.lock().get_mut(uid)
            && *found == from
        {
            *found = to;
        }
    }
}
