//! The next step for a subject: exactly one, decided from the snapshot alone. A controller that is killed
//! after any step continues with the next one.

use bringup_azure::Priority;
use bringup_contract::bounds::TimeMath as _;
use bringup_contract::{Cause, Open};
use bringup_diagnosis::Confidence;
use bringup_objects::cluster_api::AnyCondition;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, Condition, find};
use bringup_objects::report::{BootstrapReport, Phase};
use jiff::{SignedDuration, Timestamp};

use crate::judge::{Failure, Judgement};
use crate::observation::{Agent, Cse, Observation, Vm};
use crate::outputs::{conditions, report};
use crate::schedule::{self, SILENCE};
use crate::snapshot::{Looks, Snapshot};
use crate::subject::{Launch, Place};

/// The next step for a subject.
#[derive(Debug)]
pub enum Step {
    /// Do nothing until something changes.
    Rest,
    /// Do nothing until this time.
    Wait(Timestamp),
    /// Read the VM.
    Look(Priority),
    /// Read all other sources too: console, run commands, Kubernetes.
    Deepen(Priority),
    /// Read only the console.
    WatchConsole,
    /// Create the report.
    Publish(Box<BootstrapReport>),
    /// Replace the report.
    Revise(Box<BootstrapReport>),
    /// Write our conditions to the subject.
    Apply(Vec<Condition>),
    /// Create the Event that the subject has no room for our conditions.
    Warn,
    /// Write the same condition to the provider's object.
    Mirror(AnyCondition),
    /// Create the Events, and record that in the report.
    Announce,
}

/// The pause between looks when Karpenter reported a failure that ARM does not show yet.
const SIGNAL_PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// A Node that joined less than this ago may have been pending while no controller was running.
const LATELY: SignedDuration = SignedDuration::from_mins(10);
/// The console of a claim without an extension is read once the claim is this old.
const CONSOLE: SignedDuration = SignedDuration::from_mins(5);
/// The pause between further looks at a machine for which Azure did not answer before the verdict, and how
/// long after the verdict these looks continue.
const UNANSWERED_PAUSE: SignedDuration = SignedDuration::from_mins(2);
const GIVEN_UP: SignedDuration = SignedDuration::from_mins(30);
/// How many looks one Event from Karpenter causes.
const SIGNAL_LOOKS: usize = 15;

impl Snapshot {
    /// The report of the present attempt. A report that Azure refused an earlier attempt does not apply to
    /// the next attempt, which Azure accepted.
    fn current(&self) -> Option<&BootstrapReport> {
        let is_accepted = self.subject.launched().is_some();
        self.report.as_deref().filter(|report| !(is_accepted && report.is_of_refusal()))
    }

    /// The next step for this snapshot's subject.
    pub fn next_step(&self) -> Step {
        let judgement = self.judge();
        // A Node that joined supersedes every report, also one of an earlier attempt.
        let report = match judgement {
            Judgement::Up => self.report.as_deref(),
            Judgement::Failed(_) | Judgement::Underway | Judgement::Withdrawn => self.current(),
        };
        match (judgement, report) {
            (Judgement::Failed(failure), None) => self.fail(&failure),
            (Judgement::Failed(failure), Some(old)) if is_better(&failure, old) => {
                let seen = self.observation.as_deref().cloned().unwrap_or_default();
                let earlier = self.earlier(&failure);
                Step::Revise(Box::new(report::improved(old, &seen, &failure, earlier, self.now)))
            }
            (Judgement::Up, Some(old)) if old.phase() != Phase::Superseded => {
                Step::Revise(Box::new(report::superseded(old, &self.subject, self.now)))
            }
            (Judgement::Up, None) if !self.is_ours() => Step::Rest,
            (Judgement::Up, _) => self.tell(true),
            (Judgement::Failed(_), Some(_)) | (Judgement::Underway, _) => self.tell(false),
            (Judgement::Withdrawn, report) => self.take_leave(report.is_some()),
        }
    }

    /// Whether to report on this joined Node. A Node that joined long before the controller first saw it is
    /// left alone: a controller that is new to a cluster does not write to thousands of claims.
    fn is_ours(&self) -> bool {
        let told = find(&self.subject.conditions, BOOTSTRAP_SUCCEEDED).is_some();
        let lately =
            self.subject.registered.is_some_and(|registered| registered.plus(LATELY) > self.now);
        told || lately || self.was_pending
    }

    /// If the cause is not proven, the other sources are read before the failure is reported.
    fn fail(&self, failure: &Failure) -> Step {
        let is_sure = failure.diagnosis.cause.confidence == Confidence::High;
        match self.observation.as_deref() {
            Some(seen) if !seen.is_full && !is_sure && !failure.lost => {
                Step::Deepen(Priority::Event)
            }
            _ => Step::Publish(Box::new(self.report_of(failure))),
        }
    }

    /// How many other subjects of the same parent failed with the same cause.
    fn earlier(&self, failure: &Failure) -> usize {
        let cause = failure.diagnosis.cause.reason.reason();
        self.alike.get(cause).copied().unwrap_or_default()
    }

    fn report_of(&self, failure: &Failure) -> BootstrapReport {
        let earlier = self.earlier(failure);
        let (subject, seen) = (&self.subject, self.observation.as_deref());
        let attempt =
            self.report.as_deref().map_or(1, |before| before.spec.attempt.saturating_add(1));
        report::of_failure(subject, attempt, seen, failure, &self.namespace, earlier, self.now)
    }

    /// Whether to read the VM before writing anything, because the VM will soon be deleted.
    fn last_chance(&self) -> Option<Priority> {
        let is_open = self.current().is_none() && self.subject.launched().is_some();
        let is_going = self.departed || self.subject.deleting.is_some();
        match (self.signal(), self.looks) {
            _ if !is_open => None,
            (Some(_), Looks { signalled: 0, .. }) => Some(Priority::Event),
            (None, Looks { deleting: 0, .. }) if is_going => Some(Priority::Deletion),
            _ => None,
        }
    }

    /// The subject is being deleted, and nothing shows that it had failed: all sources are read once more
    /// while its VM exists.
    fn take_leave(&self, is_reported: bool) -> Step {
        let is_open = !is_reported && self.subject.launched().is_some();
        match self.observation.as_deref() {
            Some(seen) if !is_open || matches!(seen.vm, Vm::Gone | Vm::Deleting) => Step::Rest,
            _ if self.looks.deleting == 0 => Step::Look(Priority::Deletion),
            Some(seen) if !seen.is_full => Step::Deepen(Priority::Deletion),
            Some(_) | None => Step::Rest,
        }
    }

    /// Writes the present state to Kubernetes; once that is written, looks at Azure again.
    fn tell(&self, is_up: bool) -> Step {
        let last_chance = self.last_chance().filter(|_| !is_up);
        // Azure may refuse this read for minutes; meanwhile the condition is written, and tells of the
        // refusal.
        let is_refused = self.reads_refused_until.is_some_and(|until| until > self.now);
        if let Some(priority) = last_chance.filter(|_| !is_refused) {
            return Step::Look(priority);
        }
        let is_there = !self.departed && self.subject.launch != Launch::NotYet;
        let refused = self.refused_until.filter(|until| is_there && self.now < *until);
        let may_write = is_there && self.subject.held.is_none() && refused.is_none();
        if may_write {
            let (report, seen) = (self.current(), self.observation.as_deref());
            let wanted = conditions::desired(&self.subject, seen, report, is_up, self.now);
            if !conditions::are_borne(&self.subject, &wanted) {
                match (self.subject.has_room, self.warned) {
                    (true, _) => return Step::Apply(wanted),
                    (false, false) => return Step::Warn,
                    (false, true) => {}
                }
            }
            if let Some(mirrored) = conditions::mirrored(&self.subject, &wanted) {
                return Step::Mirror(mirrored);
            }
        }
        if let Some(priority) = last_chance {
            return Step::Look(priority);
        }
        let step = match (self.report.as_deref(), self.current()) {
            (Some(report), _) if !report.is_announced() => Step::Announce,
            (_, Some(report))
                if matches!(report.phase(), Open::Known(Phase::Final | Phase::Lost)) =>
            {
                self.look_once_more(report)
            }
            _ if is_up => self.look_after_join(),
            _ => self.look(),
        };
        // A subject whose conditions cannot be written is still observed.
        match (step, refused) {
            (Step::Rest, Some(until)) => Step::Wait(until),
            (Step::Wait(due), Some(until)) => Step::Wait(due.min(until)),
            (step, _) => step,
        }
    }

    /// A verdict stands. If its cause is unknown, a later Event from Karpenter justifies another look, and so
    /// does a machine that could not be read before the verdict.
    fn look_once_more(&self, report: &BootstrapReport) -> Step {
        let is_open = report.cause() == Some(Cause::Unknown.reason());
        let is_new = self.signal().is_some() && self.looks.signalled == 0;
        if !is_open || report.phase() != Phase::Final {
            Step::Rest
        } else if is_new {
            Step::Look(Priority::Event)
        } else {
            self.look_until_answered(report)
        }
    }

    /// A machine exists until it is deleted. Once Azure answers again, its evidence can be read.
    fn look_until_answered(&self, report: &BootstrapReport) -> Step {
        let is_there = !self.departed && self.subject.deleting.is_none();
        if !self.subject.profile.outlives_failure || !is_there {
            return Step::Rest;
        }
        let judged = report.finished_at().unwrap_or(self.now);
        match self.observation.as_deref() {
            // An earlier process made the verdict: this one has not looked yet.
            None if self.now < judged.plus(GIVEN_UP) => Step::Look(Priority::Schedule),
            Some(seen) if !seen.is_full && seen.at >= judged => Step::Deepen(Priority::Schedule),
            Some(seen) if seen.is_unanswered() && seen.at < judged.plus(GIVEN_UP) => {
                match seen.at.plus(UNANSWERED_PAUSE) {
                    due if due <= self.now => Step::Look(Priority::Schedule),
                    due => Step::Wait(due),
                }
            }
            Some(_) | None => Step::Rest,
        }
    }

    fn look_after_join(&self) -> Step {
        let known = matches!(self.subject.place, Place::Known(_));
        let Some(registered) = self.subject.registered.filter(|_| known && !self.departed) else {
            return Step::Rest;
        };
        // An earlier process may have recorded the result: in the script's own condition, on subjects that
        // bear that condition.
        let bears_script = self.subject.profile.bears(CSE_PROVISIONED);
        let known =
            if bears_script || self.was_pending { CSE_PROVISIONED } else { BOOTSTRAP_SUCCEEDED };
        let is_told =
            find(&self.subject.conditions, known).is_some_and(|held| held.status == "True");
        if is_told {
            return Step::Rest;
        }
        match schedule::next_look_after_join(
            registered,
            self.looks.joined,
            self.observation.as_deref(),
        ) {
            Some(due) if due <= self.now => Step::Look(Priority::Schedule),
            Some(due) => Step::Wait(due),
            None => Step::Rest,
        }
    }

    fn look(&self) -> Step {
        let (subject, now) = (&*self.subject, self.now);
        let observation = self.observation.as_deref();
        if subject.launched().is_none() {
            return Step::Rest;
        }
        if self.signal().is_some() && self.looks.signalled < SIGNAL_LOOKS {
            return match observation {
                Some(seen) if self.looks.signalled > 0 && seen.at.plus(SIGNAL_PAUSE) > now => {
                    Step::Wait(seen.at.plus(SIGNAL_PAUSE))
                }
                _ => Step::Look(Priority::Event),
            };
        }
        let is_told = subject.provider_failure.is_some()
            && subject.provider_failure != self.looks.provider_failure;
        if is_told || self.console.shows_failure() {
            return Step::Look(Priority::Event);
        }
        if subject.deleting.is_some() || self.departed {
            // One last look. Looks are counted instead of compared by time, because clocks differ.
            return match self.looks.deleting {
                0 => Step::Look(Priority::Deletion),
                _ => Step::Rest,
            };
        }
        if let Some(seen) = observation.filter(|seen| !seen.is_full) {
            if self.console.is_inspected() {
                return Step::Deepen(Priority::Event);
            }
            if self.is_decisive(seen) && !subject.may_not_exist(seen) {
                return Step::Deepen(Priority::Forced);
            }
        }
        let look = schedule::next_look(subject, self.looks.pending, observation);
        let read = self.console.next(subject, observation);
        match (look, read) {
            (Some(due), _) if due <= now => {
                // An agent that has reported needs no deadline of its own.
                let agent = observation.is_none_or(|seen| seen.agent != Agent::Ready);
                let agent = agent && now >= subject.agent_deadline(observation);
                let forced = agent || now >= subject.deadline(observation);
                Step::Look(if forced { Priority::Forced } else { Priority::Schedule })
            }
            (_, Some(due)) if due <= now => Step::WatchConsole,
            (look, read) => look.into_iter().chain(read).min().map_or(Step::Rest, Step::Wait),
        }
    }

    /// Whether this observation leads to a verdict unless another source shows more.
    fn is_decisive(&self, seen: &Observation) -> bool {
        let subject = &self.subject;
        let silent = !subject.is_control_plane
            && matches!(seen.cse, Cse::Succeeded { at: Some(at) } if at.plus(SILENCE) <= seen.at);
        let agent = seen.agent == Agent::Silent && seen.at >= subject.agent_deadline(Some(seen));
        let console = seen.cse == Cse::Absent
            && seen.vm == Vm::Present
            && (subject.has_console() || seen.at >= subject.created.plus(CONSOLE));
        silent || agent || console || seen.at >= subject.deadline(Some(seen))
    }
}

/// Whether a new failure replaces an old report: only if the old cause is unknown and the new one is not.
fn is_better(failure: &Failure, old: &BootstrapReport) -> bool {
    let open = matches!(old.phase(), Open::Known(Phase::Lost) | Open::Other(_))
        || old.cause() == Some(Cause::Unknown.reason());
    open && failure.diagnosis.cause.reason != Cause::Unknown
}
