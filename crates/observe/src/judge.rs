//! Decides from everything observed about a subject whether its bootstrap succeeded or failed, and why. Pure:
//! time is an argument.

use std::sync::Arc;

use bringup_contract::Cause;
use bringup_contract::bounds::TimeMath as _;
use bringup_diagnosis::diagnosis::{Blame, Proof};
use bringup_diagnosis::evidence::Content;
use bringup_diagnosis::{Confidence, Diagnosis, Evidence, Piece, Source, Verdict, diagnose};
use jiff::{SignedDuration, Timestamp};

use crate::interpret::AGENT_PIECE;
use crate::observation::{Agent, Aks, Cse, Mode, Observation, Vm};
use crate::schedule::SILENCE;
use crate::snapshot::Snapshot;
use crate::subject::{Launch, Subject};

/// The verdict on a subject.
#[derive(Debug)]
pub enum Judgement {
    /// No verdict yet.
    Underway,
    /// The subject is being deleted, and nothing shows that it had failed.
    Withdrawn,
    /// The subject's Node exists.
    Up,
    /// The subject failed.
    Failed(Box<Failure>),
}

/// A failed subject.
#[derive(Debug)]
pub struct Failure {
    /// The cause, with the lines that prove it.
    pub diagnosis: Arc<Diagnosis>,
    /// The evidence was deleted before it could be read.
    pub lost: bool,
}

/// How long ARM may take to show a VM after its creation was accepted. A VM that is still missing after this
/// time will not appear.
const APPEARS_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// A subject whose deletion begins this long after its deadline or later counts as timed out.
const TIMED_OUT: SignedDuration = SignedDuration::from_mins(1);

impl Snapshot {
    /// The verdict on this snapshot's subject.
    pub fn judge(&self) -> Judgement {
        let (subject, now) = (&*self.subject, self.now);
        if self.is_up() {
            return Judgement::Up;
        }
        if let Launch::Refused { message, .. } = &subject.launch {
            return refused(message);
        }
        let Some(seen) = self.observation.as_deref() else { return Judgement::Underway };
        match (&seen.cse, &seen.vm) {
            (Cse::Failed { .. }, _) | (_, Vm::Failed) => self.shown(seen),
            // Must come before the arm for a missing VM: a failed AKS machine is the reason why no VM exists.
            _ if seen.aks == Aks::Failed => self.shown(seen),
            (_, Vm::Gone | Vm::Deleting) => self.gone(seen),
            (Cse::Succeeded { at }, _)
                if self.node.is_none() && !subject.is_control_plane && is_silent(*at, seen) =>
            {
                failed(seen, Some(SILENT))
            }
            // Must come before the arm for the deadline: a silent agent is the more precise cause.
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
            _ if subject.profile.console_decides
                && seen.is_full
                && seen.evidence.is_proven_by_guest() =>
            {
                failed(seen, None)
            }
            _ if (subject.deleting.is_some() || self.departed) && self.signal().is_none() => {
                self.withdrawn(seen, now)
            }
            _ => Judgement::Underway,
        }
    }

    /// Azure shows a failure. While a VM is being deleted, it may still show that its script failed but no
    /// longer the script's output; then the evidence is lost. The evidence is also lost if an AKS machine
    /// without a VM failed for an unknown cause.
    fn shown(&self, seen: &Observation) -> Judgement {
        let Judgement::Failed(mut failure) = failed(seen, None) else {
            return Judgement::Underway;
        };
        let known = failure.diagnosis.cause.reason != Cause::Unknown
            || failure.diagnosis.exit_code.is_some();
        // A result that the guest reports has a time; the result that remains in the VM's model has none.
        let wordless = matches!(seen.cse, Cse::Failed { at: None });
        let bodiless = seen.aks == Aks::Failed && seen.vm == Vm::Gone;
        failure.lost = !known && (wordless && self.signal().is_some() || bodiless);
        Judgement::Failed(failure)
    }

    /// The VM does not exist. The evidence is lost if Karpenter reported a failure, or if the VM never
    /// appeared.
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

    /// A subject that had not failed is being deleted. That is no failure, unless its deadline had passed.
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

fn refused(message: &str) -> Judgement {
    let evidence = Evidence {
        pieces: vec![Piece::seen(Source::Kubernetes, "NodeClaim condition Launched", message)],
        ..Evidence::default()
    };
    let mut diagnosis = diagnose(&evidence);
    if diagnosis.verdict != Verdict::Failed {
        state(&mut diagnosis, REFUSED);
    }
    Judgement::Failed(Box::new(Failure { diagnosis: Arc::new(diagnosis), lost: false }))
}

/// Whether the script succeeded so long ago that the Node should have joined, and all sources have been read
/// since.
fn is_silent(at: Option<Timestamp>, seen: &Observation) -> bool {
    seen.is_full && at.is_some_and(|at| at.plus(SILENCE) <= seen.at)
}

/// The diagnosis to use where the evidence itself does not prove a failure.
#[derive(Clone, Copy)]
struct Statement {
    summary: &'static str,
    cause: Cause,
    confidence: Confidence,
}

const REFUSED: Statement = Statement {
    summary: "Azure refused to create the VM, and the text does not tell why",
    cause: Cause::Unknown,
    confidence: Confidence::Low,
};
const SILENT: Statement = Statement {
    summary: "the bootstrap script succeeded and no Node came within 3 minutes",
    cause: Cause::Unknown,
    confidence: Confidence::Low,
};
const TOO_LATE: Statement = Statement {
    summary: "no Node came in time, and nothing that could be read tells why",
    cause: Cause::Unknown,
    confidence: Confidence::Low,
};
const AGENT_SILENT: Statement = Statement {
    summary: "the VM agent has not reported within 10 minutes",
    cause: Cause::GuestAgentUnresponsive,
    confidence: Confidence::Medium,
};
const GONE: Statement = Statement {
    summary: "the VM was deleted before its evidence could be read",
    cause: Cause::Unknown,
    confidence: Confidence::Low,
};

fn failed(seen: &Observation, statement: Option<Statement>) -> Judgement {
    let mut diagnosis = seen.evidence.diagnosis().clone();
    let statement = match statement {
        Some(statement) if diagnosis.cause.reason == Cause::Unknown => Some(statement),
        _ if diagnosis.verdict != Verdict::Failed => Some(VM_FAILED),
        _ => None,
    };
    if let Some(statement) = statement {
        state(Arc::make_mut(&mut diagnosis), statement);
    }
    Judgement::Failed(Box::new(Failure { diagnosis, lost: false }))
}

/// The agent is silent; the platform's status of the agent is the proof.
fn silent_agent(seen: &Observation) -> Judgement {
    let mut judgement = failed(seen, Some(AGENT_SILENT));
    let said = seen.evidence.pieces.iter().find(|piece| piece.name == AGENT_PIECE);
    if let (Judgement::Failed(failure), Some(said)) = (&mut judgement, said)
        && failure.diagnosis.proof.is_empty()
        && let Content::Seen(text) = &said.content
    {
        Arc::make_mut(&mut failure.diagnosis).proof.push(Proof {
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

const VM_FAILED: Statement = Statement {
    summary: "Azure reports that the VM failed, but no reason",
    cause: Cause::Unknown,
    confidence: Confidence::Low,
};

fn state(diagnosis: &mut Diagnosis, statement: Statement) {
    diagnosis.verdict = Verdict::Failed;
    statement.summary.clone_into(&mut diagnosis.summary);
    diagnosis.cause = Blame::new(statement.cause, statement.confidence);
    diagnosis.remedy = bringup_diagnosis::remedy(statement.cause);
}

/// How the subject bootstraps, as far as known.
pub fn mode(subject: &Subject, seen: Option<&Observation>) -> Mode {
    let seen = seen.map(|seen| seen.mode).unwrap_or_default();
    match (seen, &subject.launch) {
        (_, Launch::Refused { .. }) => Mode::Standalone,
        (Mode::Unknown, _) if subject.machine.is_some() => Mode::Machine,
        (mode, _) => mode,
    }
}
