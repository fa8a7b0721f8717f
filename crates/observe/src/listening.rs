//! Listening to the consoles of VMs that are to become nodes and need no extension for that.
//!
//! Azure allows twelve reads of a VM a minute, for all clients together; the blob behind its
//! console can be read at any time. So the blob is read every other second, and when it shows that
//! a bootstrap has failed, the observer looks at everything at once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bringup_azure::Priority;
use bringup_azure::model::SasAddress;
use bringup_contract::bounds::TimeMath as _;
use jiff::{SignedDuration, Timestamp};

use crate::observation::{Cse, Observation};
use crate::observer::{Next, Observer};
use crate::plan::Step;
use crate::subject::{Place, Subject};

/// How soon after each other a console is listened to.
const PAUSE: SignedDuration = SignedDuration::from_secs(2);
/// With many, each waits so long for every one of them: twenty are asked a second.
const SHARE: SignedDuration = SignedDuration::from_millis(50);
/// How soon it is tried again where it could not be listened to.
const DEAF: SignedDuration = SignedDuration::from_mins(1);
/// So many are listened to at a time: each needs an address, which costs a read every few minutes.
/// The others are looked at by their schedule alone.
const MOST: usize = 200;

/// What was heard last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Nothing that tells of a failure.
    Nothing,
    /// That it cannot be listened to now, or has said what it had to say.
    Deaf,
    /// That the bootstrap has failed: the VM has not been looked at since.
    Failure,
    /// The same, and the VM has been looked at since.
    Followed,
}

/// What was heard of one console, and of how many there is something to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ear {
    /// When it was listened to, and what was heard; absent: not yet.
    pub last: Option<(Timestamp, Heard)>,
    /// How many are listened to.
    pub listeners: usize,
}

impl Ear {
    /// Whether a failure was heard, and the VM has not been looked at since.
    pub fn is_alarmed(self) -> bool {
        matches!(self.last, Some((_, Heard::Failure)))
    }

    /// Whether a failure was heard, and the VM was looked at, but not everything else.
    pub fn is_followed(self) -> bool {
        matches!(self.last, Some((_, Heard::Followed)))
    }

    /// When the console of a pending subject is to be listened to next; never, if there is none, or its
    /// result is known.
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
        let listeners = i32::try_from(self.listeners).unwrap_or(i32::MAX);
        match self.last {
            None => (self.listeners < MOST).then_some(launched),
            Some((at, Heard::Deaf)) => Some(at.plus(DEAF)),
            Some((at, _)) => Some(at.plus(PAUSE.max(SHARE.saturating_mul(listeners)))),
        }
    }
}

/// A console that is listened to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    /// Where it is, and until when that address is good.
    pub(crate) address: Option<(SasAddress, Timestamp)>,
    /// What was read of it last.
    pub(crate) version: Option<String>,
    last: Option<(Timestamp, Heard)>,
}

/// All consoles that are listened to, by the uid of their subject.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<HashMap<String, Line>>);

impl Lines {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ear(&self, uid: &str) -> Ear {
        let lines = self.lock();
        Ear { last: lines.get(uid).and_then(|line| line.last), listeners: lines.len() }
    }

    /// Stops listening to a console.
    pub(crate) fn hang_up(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Notes that what was heard has led to something.
    pub(crate) fn follow(&self, uid: &str, from: Heard, to: Heard) {
        if let Some(Line { last: Some((_, heard)), .. }) = self.lock().get_mut(uid)
            && *heard == from
        {
            *heard = to;
        }
    }
}

impl Observer {
    /// Listens to a console, unless something else is to be done first by now.
    pub(crate) async fn listen(&self, subject: &Subject) -> Next {
        let uid = &subject.uid;
        let line = self.lines.lock().entry(uid.clone()).or_default().clone();
        let listen = self.collect.listen(subject, line, Priority::Schedule);
        let goes_on = |step: &Step| matches!(step, Step::Listen);
        if let Some((line, heard)) = self.as_long_as(uid, goes_on, listen).await {
            let last = Some((self.clock.now(), heard));
            self.lines.lock().insert(uid.clone(), Line { last, ..line });
        }
        Next::Now
    }
}
