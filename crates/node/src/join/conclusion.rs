//! How a join ends: result files, sentinels, report, summary, console. A reader that sees the sentinel also
//! sees everything before it.

use bringup_contract::join_config::{JoinExit, Step};
use bringup_contract::{Cause, Os};
use bringup_diagnosis::{Diagnosis, Evidence, Piece, Source, Verdict, diagnose};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::task::Failure;
use crate::agent::Agent;
use crate::aks::postmortem::units;
use crate::capi;
use crate::cse_output;
use crate::events::{self, Event, Level};
use crate::host::linux::store;
use crate::outcome::Outcome;
use crate::output;
use crate::run::{self, Identity, Run};
use crate::summary::{Summary, Sureness};

/// The longest mark in bytes; a mark is one line.
const MARK: usize = 4_000;
/// The longest line on the console.
const CONSOLE: usize = 1_000;

/// The result of a step.
#[derive(Debug, Clone, Serialize)]
pub(super) struct StepReport {
    pub(super) step: Step,
    pub(super) state: &'static str,
    pub(super) ms: u64,
    pub(super) limit_s: u32,
    pub(super) evidence: Vec<String>,
}

/// A join in progress.
pub(super) struct Attempt<'a> {
    pub(super) agent: &'a Agent,
    identity: Identity,
    run: Run,
    pub(super) steps: Vec<StepReport>,
    /// Warnings.
    pub(super) odd: Vec<String>,
}

/// How a join ended.
pub(super) struct End {
    pub(super) exit: JoinExit,
    pub(super) step: Option<Step>,
    pub(super) failure: Option<Failure>,
}

impl End {
    /// A join that ended before its first step.
    pub(super) fn early(exit: JoinExit, failure: Failure) -> Self {
        Self { exit, step: None, failure: Some(failure) }
    }
}

impl<'a> Attempt<'a> {
    /// Begins a join. Results of earlier joins no longer count.
    pub(super) fn begin(agent: &'a Agent) -> Self {
        let identity = Identity::observe(&agent.root);
        let run = Run::begin(&identity, run::now(), None);
        let attempt = Self { agent, identity, run, steps: Vec::new(), odd: Vec::new() };
        attempt.warn("run.json", attempt.run.save(&agent.root));
        attempt.clear();
        attempt
    }

    fn warn(&self, what: &str, done: std::io::Result<()>) {
        if let Err(error) = done {
            self.agent.log.warn(&format!("{what}: {error}"));
        }
    }

    /// Moves earlier results away, the sentinels first: without them, no reader uses the others as a result.
    fn clear(&self) {
        let root = &self.agent.root;
        for sentinel in [root.joined_sentinel(), root.failed_sentinel()] {
            self.warn("sentinel", store::remove(&sentinel));
        }
        let files =
            [root.complete(), root.succeeded(), root.failed(), root.result(), root.spare_result()];
        if files.iter().any(|file| file.exists()) {
            let name = format!("{}-{}", self.run.started.as_millisecond(), self.run.id);
            self.warn("earlier results", store::set_aside(&files, &root.previous(), &name));
        }
    }

    /// Reports the result everywhere; returns the exit code of the process.
    pub(super) fn conclude(mut self, end: &End) -> u8 {
        let found = end.failure.as_ref().map(|failure| self.examine(failure));
        let mut summary = self.summary(end, found.as_ref());
        let outcome = self.outcome(end);
        self.write_result(&outcome);
        self.write_report(&mut summary, &outcome, found.as_ref());
        self.run.ended(i32::from(end.exit.number()), end.exit.name(), Timestamp::now());
        self.warn("run.json", self.run.save(&self.agent.root));
        self.write_marks(&summary);
        self.write_sentinel(end, &summary);
        let sentence = self.sentence(end);
        self.tell(end, &summary, &sentence);
        output::answer(&cse_output::document(&outcome, &summary));
        output::remark(&cse_output::standard_error(Some(&sentence), &summary));
        end.exit.number()
    }

    /// Diagnoses the output of the programs and the states of the units.
    fn examine(&self, failure: &Failure) -> Diagnosis {
        let said = format!("{}\n{}", failure.output, failure.error);
        let text = self.agent.secrets.strike(&said);
        let mut pieces = vec![Piece::seen(Source::ScriptLog, "bringup-node join", &text)];
        pieces.extend(units::examine(self.agent, &text, Some(self.run.started)));
        diagnose(&Evidence { pieces, os: Some(Os::Linux), ..Evidence::default() })
    }

    fn summary(&self, end: &End, found: Option<&Diagnosis>) -> Summary {
        let mut summary = Summary::new(i32::from(end.exit.number()), end.exit.name());
        summary.kind = Some("join".to_owned());
        let took = Timestamp::now().duration_since(self.run.started).as_secs();
        summary.took = u64::try_from(took).ok();
        summary.run = Some(self.run.id.clone());
        summary.boot = self.identity.boot_short();
        summary.warn = self.odd.iter().map(|line| self.agent.secrets.strike(line)).collect();
        let (Some(failure), Some(diagnosis)) = (&end.failure, found) else { return summary };
        summary.step = end.step.map(|step| self.agent.secrets.redact(step.name()));
        let known = (diagnosis.verdict == Verdict::Failed
            && diagnosis.cause.reason != Cause::Unknown)
            .then_some((diagnosis.cause.reason, diagnosis.cause.confidence.into()));
        let (cause, sureness) = match (failure.cause, known) {
            (Some(cause), _) => (cause, Sureness::High),
            (None, Some(known)) => known,
            (None, None) if failure.late => (Cause::TimeBudgetExhausted, Sureness::Medium),
            (None, None) => (Cause::Unknown, Sureness::Low),
        };
        summary.cause = Some(cause);
        summary.conf = Some(sureness);
        for line in &failure.evidence {
            summary.prove(&self.agent.secrets.strike(line));
        }
        for proof in diagnosis.proof.iter().filter(|_| cause == diagnosis.cause.reason) {
            summary.prove(proof.text.as_str());
        }
        summary.prove(&self.agent.secrets.strike(&failure.error));
        summary
    }

    /// The result in the format of provision.json.
    fn outcome(&self, end: &End) -> Outcome {
        let exit = i32::from(end.exit.number());
        let Some(failure) = &end.failure else { return Outcome::own(exit, "", "") };
        let error = format!("{}: {}", end.exit.name(), self.agent.secrets.redact(&failure.error));
        // Secrets are removed before the text is cut: half a secret is not recognised.
        Outcome::own(exit, &error, &self.agent.secrets.redact(failure.output.trim()))
    }

    fn write_result(&self, outcome: &Outcome) {
        let root = &self.agent.root;
        let text = outcome.written();
        if let Err(error) = store::write(&root.result(), text.as_bytes()) {
            self.agent.log.warn(&format!("provision.json: {error}; the result goes to /run"));
            let _ = store::write(&root.spare_result(), text.as_bytes());
        } else {
            let _ = store::remove(&root.spare_result());
        }
    }

    fn write_report(&self, summary: &mut Summary, outcome: &Outcome, found: Option<&Diagnosis>) {
        let path = self.agent.root.join_report();
        summary.report = Some(self.agent.root.told(&path));
        let report = json!({
            "v": 1,
            "kind": "join",
            "run": self.run,
            "summary": summary,
            "result": outcome.object,
            "steps": self.steps,
            "odd": self.odd,
            "diagnosis": found,
        });
        let report = clean(self.agent, &report);
        if let Err(error) = store::write(&path, report.to_string().as_bytes()) {
            self.agent.log.warn(&format!("join-report.json: {error}"));
            summary.report = None;
        }
    }

    /// Writes exactly one mark, then `provision.complete`.
    fn write_marks(&self, summary: &Summary) {
        let root = &self.agent.root;
        let mut summary = summary.clone();
        summary.machine.clone_from(&self.identity.machine);
        let (mark, other) = match summary.exit {
            0 => (root.succeeded(), root.failed()),
            _ => (root.failed(), root.succeeded()),
        };
        let text = format!("{}\n", summary.encoded(MARK));
        self.warn(
            "mark",
            store::remove(&other).and_then(|()| store::write(&mark, text.as_bytes())),
        );
        self.warn("provision.complete", store::write(&root.complete(), b""));
    }

    /// Writes the sentinel that `wait` expects.
    fn write_sentinel(&self, end: &End, summary: &Summary) {
        let root = &self.agent.root;
        let Some(failure) = &end.failure else {
            let done = store::remove(&root.failed_sentinel());
            let done = done.and_then(|()| store::write(&root.joined_sentinel(), b"success\n"));
            return self.warn("sentinel", done);
        };
        let message = self.agent.secrets.redact(&failure.error).truncated(400);
        let text = json!({
            "code": end.exit.number(),
            "name": end.exit.name(),
            "cause": summary.cause,
            "message": message,
        });
        self.warn(
            "sentinel",
            store::write(&root.failed_sentinel(), format!("{text}\n").as_bytes()),
        );
    }

    fn sentence(&self, end: &End) -> String {
        let number = end.exit.number();
        match (&end.failure, end.step) {
            (None, _) => format!("join (0): the node has joined, {} steps", self.steps.len()),
            (Some(failure), Some(step)) => {
                let error = self.agent.secrets.redact(&failure.error);
                format!("join failed ({number}) in step {step}: {error}")
            }
            (Some(failure), None) => {
                format!("join failed ({number}): {}", self.agent.secrets.redact(&failure.error))
            }
        }
    }

    /// Writes the log, the console line, and the event for the guest agent.
    fn tell(&self, end: &End, summary: &Summary, sentence: &str) {
        let (level, log_level) = match end.failure {
            None => (Level::Informational, crate::log::Level::Info),
            Some(_) => (Level::Error, crate::log::Level::Error),
        };
        self.agent.log.line(log_level, sentence, &[]);
        self.warn("console", capi::write_to_console(&self.agent.root, &summary.line(CONSOLE)));
        let step = end.step.map_or(String::new(), |step| format!(".{step}"));
        let event = Event {
            task: &format!("AKS.AKSNodeController.Join{step}"),
            level,
            message: &self.agent.secrets.strike(sentence),
            run: &self.run.id,
            start: self.run.started,
            end: Timestamp::now(),
        };
        self.warn("event", events::write(&self.agent.root.events(), &event));
    }
}

/// A report without secrets.
fn clean(agent: &Agent, report: &Value) -> Value {
    let struck = agent.secrets.strike_value(report);
    match struck {
        Value::Object(object) => Value::Object(cse_output::redacted(&object)),
        other => other,
    }
}
