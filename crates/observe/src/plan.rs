//! What to do next for a subject: one step, decided by everything that is seen, and by nothing
//! else. A controller that is killed after any step goes on with the next.

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

/// What to do.
#[derive(Debug)]
pub enum Step {
    /// Nothing, until something changes.
    Rest,
    /// Nothing, until then.
    Wait(Timestamp),
    /// Look at the VM.
    Look(Priority),
    /// Ask all other sources as well: console, Kubernetes.
    Deepen(Priority),
    /// Read the console, and nothing else.
    WatchConsole,
    /// Create the report.
    Publish(Box<BootstrapReport>),
    /// Write the report anew.
    Revise(Box<BootstrapReport>),
    /// Write our conditions.
    Apply(Vec<Condition>),
    /// Say that it has no room for our conditions.
    Warn,
    /// Write the same on the provider's object.
    Mirror(AnyCondition),
    /// Make the Events, and note that in the report.
    Announce,
}

/// How soon a VM is looked at again when Karpenter says that it failed and ARM does not show it.
const SIGNAL_PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// A node that joined less than this ago may have been pending while no controller looked.
const LATELY: SignedDuration = SignedDuration::from_mins(10);
/// A claim without an extension that is older than this has its console read.
const CONSOLE: SignedDuration = SignedDuration::from_mins(5);
/// How soon a machine is looked at again of which Azure said nothing when it was judged, and until when.
const UNANSWERED_PAUSE: SignedDuration = SignedDuration::from_mins(2);
const GIVEN_UP: SignedDuration = SignedDuration::from_mins(30);
/// How often.
const SIGNAL_LOOKS: usize = 15;

impl Snapshot {
    /// The report of the present attempt: what was said of one that Azure refused does not hold for the
    /// next one, which was accepted.
    fn current(&self) -> Option<&BootstrapReport> {
        let is_accepted = self.subject.launched().is_some();
        self.report.as_deref().filter(|report| !(is_accepted && report.is_of_refusal()))
    }

    /// What to do next.
    pub fn next_step(&self) -> Step {
        let judgement = self.judge();
        // A Node that came closes whatever was said before.
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

    /// A node that joined long before the controller first looked is not reported: a controller
    /// that is new to a cluster does not write to thousands of claims.
    fn is_ours(&self) -> bool {
        let told = find(&self.subject.conditions, BOOTSTRAP_SUCCEEDED).is_some();
        let lately =
            self.subject.registered.is_some_and(|registered| registered.plus(LATELY) > self.now);
        told || lately || self.was_pending
    }

    /// A failure whose cause is not proven is worth a second question before it is told.
    fn fail(&self, failure: &Failure) -> Step {
        let is_sure = failure.diagnosis.cause.confidence == Confidence::High;
        match self.observation.as_deref() {
            Some(seen) if !seen.is_full && !is_sure && !failure.lost => {
                Step::Deepen(Priority::Event)
            }
            _ => Step::Publish(Box::new(self.report_of(failure))),
        }
    }

    /// How many others of its parent failed of the same.
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

    /// What is about to be gone is read before anything is written.
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

    /// It is deleted, and nothing says that it had failed: everything is read once more first, as long
    /// as its VM is there.
    fn take_leave(&self, is_reported: bool) -> Step {
        let is_open = !is_reported && self.subject.launched().is_some();
        match self.observation.as_deref() {
            Some(seen) if !is_open || matches!(seen.vm, Vm::Gone | Vm::Deleting) => Step::Rest,
            _ if self.looks.deleting == 0 => Step::Look(Priority::Deletion),
            Some(seen) if !seen.is_full => Step::Deepen(Priority::Deletion),
            Some(_) | None => Step::Rest,
        }
    }

    /// Says what is known, and then looks again.
    fn tell(&self, is_up: bool) -> Step {
        let last_chance = self.last_chance().filter(|_| !is_up);
        // A read that Azure refuses for minutes does not keep the condition from saying so.
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
        // A subject that may not be written to is observed all the same.
        match (step, refused) {
            (Step::Rest, Some(until)) => Step::Wait(until),
            (Step::Wait(due), Some(until)) => Step::Wait(due.min(until)),
            (step, _) => step,
        }
    }

    /// A verdict stands; but where the cause is not known, what Karpenter says later is worth a
    /// look, and so is a machine that could not be looked at when it was judged.
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

    /// A machine stays until it is deleted, and Azure may answer again: then its evidence is there.
    fn look_until_answered(&self, report: &BootstrapReport) -> Step {
        let is_there = !self.departed && self.subject.deleting.is_none();
        if !self.subject.profile.outlives_failure || !is_there {
            return Step::Rest;
        }
        let judged = report.finished_at().unwrap_or(self.now);
        match self.observation.as_deref() {
            // From an earlier life.
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
        // Known from an earlier life, by what the script said where the subject bears that.
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
            // One last look: clocks differ, so looks are counted and not dated.
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
                // An agent that has spoken has no time to be read in.
                let agent = observation.is_none_or(|seen| seen.agent != Agent::Ready);
                let agent = agent && now >= subject.agent_deadline(observation);
                let forced = agent || now >= subject.deadline(observation);
                Step::Look(if forced { Priority::Forced } else { Priority::Schedule })
            }
            (_, Some(due)) if due <= now => Step::WatchConsole,
            (look, read) => look.into_iter().chain(read).min().map_or(Step::Rest, Step::Wait),
        }
    }

    /// Whether what was seen decides unless another source says more.
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

/// A verdict changes only for better evidence.
fn is_better(failure: &Failure, old: &BootstrapReport) -> bool {
    let open = matches!(old.phase(), Open::Known(Phase::Lost) | Open::Other(_))
        || old.cause() == Some(Cause::Unknown.reason());
    open && failure.diagnosis.cause.reason != Cause::Unknown
}
