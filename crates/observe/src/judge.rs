//! From what is seen of a subject to what is to be said of it. Pure: time is an argument.

use bringup_contract::Cause;
use bringup_contract::bounds::TimeMath as _;
use bringup_diagnosis::diagnosis::{Blame, Proof};
use bringup_diagnosis::evidence::Content;
use bringup_diagnosis::{Confidence, Diagnosis, Evidence, Piece, Source, Verdict, diagnose};
use jiff::{SignedDuration, Timestamp};

use crate::digest::{AGENT_PIECE, SUMMARY};
use crate::observation::{Agent, Aks, Cse, Mode, Observation, Vm};
use crate::schedule::SILENCE;
use crate::subject::{Kind, Launch, Subject};

/// A Node that belongs to a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Its name.
    pub name: String,
    /// Whether its kubelet says that it is ready.
    pub ready: bool,
}

/// Karpenter said that a claim's VM failed; the text is cut before it gets to the point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// When the API server got it, by that server's clock: as deletions are stamped.
    pub stamped: Timestamp,
    /// When we heard of it, by our clock.
    pub heard: Timestamp,
    /// What it said.
    pub text: String,
}

/// Everything that a judgement rests on.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The subject.
    pub subject: &'a Subject,
    /// What the last look brought.
    pub observation: Option<&'a Observation>,
    /// Its Node.
    pub node: Option<&'a Joined>,
    /// What Karpenter said.
    pub signal: Option<&'a Signal>,
    /// The subject does not exist any more.
    pub departed: bool,
    /// The present moment.
    pub now: Timestamp,
}

/// What is to be said of a subject.
#[derive(Debug)]
pub enum Judgement {
    /// Nothing yet.
    Underway,
    /// It is deleted, and nothing says that it had failed.
    Withdrawn,
    /// Its Node is there.
    Up,
    /// It failed.
    Failed(Box<Failure>),
}

/// A failure.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub diagnosis: Diagnosis,
    /// The evidence was gone before it could be read.
    pub lost: bool,
}

/// A VM that is not there this long after it was accepted will not come: until then, ARM may not
/// have noticed it yet.
const APPEARS_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// What is deleted so long after it had to be judged did not make it in time.
const TIMED_OUT: SignedDuration = SignedDuration::from_mins(1);

impl Case<'_> {
    /// What is to be said.
    pub fn judge(&self) -> Judgement {
        let Self { subject, now, .. } = *self;
        if subject.registered.is_some() || self.node.is_some_and(|node| node.ready) {
            return Judgement::Up;
        }
        if let Launch::Refused { message, .. } = &subject.launch {
            return refused(message);
        }
        let Some(seen) = self.observation else { return Judgement::Underway };
        match (&seen.cse, &seen.vm) {
            (Cse::Failed { .. }, _) | (_, Vm::Failed) => self.shown(seen),
            // Before its VM is said to be gone: this is why there is none.
            _ if seen.aks == Aks::Failed => self.shown(seen),
            (_, Vm::Gone | Vm::Deleting) => self.gone(seen),
            (Cse::Succeeded { at }, _)
                if self.node.is_none() && !subject.is_control_plane && is_silent(*at, seen) =>
            {
                failed(seen, Some(SILENT))
            }
            // Before its time is said to be over: this is why.
            _ if seen.is_full
                && seen.vm == Vm::Present
                && seen.agent == Agent::Silent
                && seen.denied.is_none()
                && seen.at >= subject.agent_deadline(Some(seen)) =>
            {
                silent_agent(seen)
            }
            _ if seen.is_full
                && seen.at >= subject.deadline(Some(seen))
                && !subject.may_not_exist(seen) =>
            {
                failed(seen, Some(TOO_LATE))
            }
            _ if subject.kind == Kind::Machine && seen.is_full && seen.is_told() => {
                failed(seen, None)
            }
            _ if (subject.deleting.is_some() || self.departed) && self.signal().is_none() => {
                self.withdrawn(seen, now)
            }
            _ => Judgement::Underway,
        }
    }

    /// What Karpenter said, unless it said so because the claim was already being deleted: then
    /// it is the deletion that failed its waiting task.
    pub fn signal(&self) -> Option<&Signal> {
        let deleting = self.subject.deleting;
        self.signal.filter(|signal| deleting.is_none_or(|deleting| signal.stamped <= deleting))
    }

    /// ARM shows a failure. A VM on its way out may show that its script failed and no longer
    /// what that said: then this is lost, too. So it is if AKS does not tell why its machine has none.
    fn shown(&self, seen: &Observation) -> Judgement {
        let Judgement::Failed(mut failure) = failed(seen, None) else {
            return Judgement::Underway;
        };
        let known = failure.diagnosis.cause.reason != Cause::Unknown
            || failure.diagnosis.exit_code.is_some();
        // What the guest says has its time; what is left of it in the model has none.
        let wordless = matches!(seen.cse, Cse::Failed { at: None });
        let bodiless = seen.aks == Aks::Failed && seen.vm == Vm::Gone;
        failure.lost = !known && (wordless && self.signal().is_some() || bodiless);
        Judgement::Failed(failure)
    }

    /// The VM is gone: with its evidence if Karpenter said that it failed, or if it never came.
    fn gone(&self, seen: &Observation) -> Judgement {
        let never_came = seen.vm == Vm::Gone
            && self.subject.deleting.is_none()
            && matches!(self.subject.launch, Launch::Accepted(at) if at.plus(APPEARS_WITHIN) <= seen.at);
        if self.signal().is_some() || never_came {
            let Judgement::Failed(mut failure) = failed(seen, Some(GONE)) else {
                return Judgement::Underway;
            };
            failure.lost = true;
            return Judgement::Failed(failure);
        }
        if self.subject.deleting.is_some() || self.departed {
            return self.withdrawn(seen, self.now);
        }
        Judgement::Underway
    }

    /// A claim that had not failed is being deleted: no failure, unless its time was over.
    fn withdrawn(&self, seen: &Observation, now: Timestamp) -> Judgement {
        let ended = self.subject.deleting.unwrap_or(now);
        let is_late = ended >= self.subject.deadline(Some(seen)).plus(TIMED_OUT);
        if is_late && !self.subject.may_not_exist(seen) {
            failed(seen, Some(TOO_LATE))
        } else {
            Judgement::Withdrawn
        }
    }
}

/// Whether what was read tells by itself that the bootstrap has failed, and why: the console of a
/// machine that needs no extension. What its user's own extensions say explains a failure, and is none.
pub(crate) fn tells(evidence: &Evidence, whole: &Diagnosis) -> bool {
    let counts = |piece: &&Piece| match &piece.content {
        Content::Seen(text) => piece.source == Source::SerialLog || text.as_str().contains(SUMMARY),
        Content::Missing(_) | Content::NotAsked => true,
    };
    let partial;
    let diagnosis = if evidence.pieces.iter().all(|piece| counts(&piece)) {
        whole
    } else {
        let pieces = evidence.pieces.iter().filter(counts).cloned().collect();
        let (api_server, signatures) = (evidence.api_server.clone(), evidence.signatures.clone());
        let (image_version, os) = (evidence.image_version, evidence.os);
        partial = diagnose(&Evidence { pieces, image_version, os, api_server, signatures });
        &partial
    };
    diagnosis.verdict == Verdict::Failed
        && diagnosis.cause.reason != Cause::Unknown
        && diagnosis.cause.confidence == Confidence::High
}

fn refused(message: &str) -> Judgement {
    let evidence = Evidence {
        pieces: vec![Piece::seen(Source::Kubernetes, "NodeClaim condition Launched", message)],
        ..Evidence::default()
    };
    let mut diagnosis = diagnose(&evidence);
    if diagnosis.verdict != Verdict::Failed {
        diagnosis = turned(diagnosis, REFUSED);
    }
    Judgement::Failed(Box::new(Failure { diagnosis, lost: false }))
}

/// Whether the script succeeded so long ago that the Node should have come, and everything was
/// asked since.
fn is_silent(at: Option<Timestamp>, seen: &Observation) -> bool {
    seen.is_full && at.is_some_and(|at| at.plus(SILENCE) <= seen.at)
}

/// What is said where the evidence itself does not say that it failed.
#[derive(Clone, Copy)]
struct Turn {
    summary: &'static str,
    cause: Cause,
    confidence: Confidence,
}

const REFUSED: Turn = Turn {
    summary: "Azure refused to create the VM, and the text does not tell why",
    cause: Cause::Unknown,
    confidence: Confidence::Low,
};
const SILENT: Turn = Turn {
    summary: "the bootstrap script succeeded and no Node came within 3 minutes",
    cause: Cause::Unknown,
    confidence: Confidence::Low,
};
const TOO_LATE: Turn = Turn {
    summary: "no Node came in time, and nothing that could be read tells why",
    cause: Cause::Unknown,
    confidence: Confidence::Low,
};
const AGENT_SILENT: Turn = Turn {
    summary: "the VM agent has not reported within 10 minutes",
    cause: Cause::GuestAgentUnresponsive,
    confidence: Confidence::Medium,
};
const GONE: Turn = Turn {
    summary: "the VM was gone before its evidence could be read",
    cause: Cause::Unknown,
    confidence: Confidence::Low,
};

fn failed(seen: &Observation, turn: Option<Turn>) -> Judgement {
    let diagnosis = seen.diagnosis();
    let diagnosis = match turn {
        Some(turn) if diagnosis.cause.reason == Cause::Unknown => turned(diagnosis, turn),
        _ if diagnosis.verdict != Verdict::Failed => turned(diagnosis, VM_FAILED),
        _ => diagnosis,
    };
    Judgement::Failed(Box::new(Failure { diagnosis, lost: false }))
}

/// The agent is silent; what the platform says of it is the proof.
fn silent_agent(seen: &Observation) -> Judgement {
    let mut judgement = failed(seen, Some(AGENT_SILENT));
    let said = seen.evidence.pieces.iter().find(|piece| piece.name == AGENT_PIECE);
    if let (Judgement::Failed(failure), Some(said)) = (&mut judgement, said)
        && failure.diagnosis.proof.is_empty()
        && let Content::Seen(text) = &said.content
    {
        failure.diagnosis.proof.push(Proof {
            source: said.source,
            name: said.name.clone(),
            line: 1,
            text: text.clone(),
            before: Vec::new(),
            after: Vec::new(),
            span: (0, 0),
        });
    }
    judgement
}

const VM_FAILED: Turn = Turn {
    summary: "Azure says that the VM failed, and not why",
    cause: Cause::Unknown,
    confidence: Confidence::Low,
};

fn turned(mut diagnosis: Diagnosis, turn: Turn) -> Diagnosis {
    diagnosis.verdict = Verdict::Failed;
    turn.summary.clone_into(&mut diagnosis.summary);
    diagnosis.cause = Blame::new(turn.cause, turn.confidence);
    diagnosis.remedy = bringup_diagnosis::remedy(turn.cause);
    diagnosis
}

/// How the subject bootstraps, as far as it can be told.
pub fn mode(subject: &Subject, seen: Option<&Observation>) -> Mode {
    let seen = seen.map(|seen| seen.mode).unwrap_or_default();
    match (seen, &subject.launch) {
        (_, Launch::Refused { .. }) => Mode::Standalone,
        (Mode::Unknown, _) if subject.machine.is_some() => Mode::Machine,
        (mode, _) => mode,
    }
}
