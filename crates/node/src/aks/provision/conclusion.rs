//! How an attempt ends: with the result of the scripts, or with a result that the agent writes in their
//! place.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Attempt;
use crate::aks::exit_code::{self, Own};
use crate::aks::keeper::KeeperMessage;
use crate::aks::postmortem::{PostMortem, examine, summarise};
use crate::aks::result_files::BASE_PREPARED;
use crate::cse_output::redacted;
use crate::events::{self, Event, Level};
use crate::host::linux::store;
use crate::outcome::Outcome;
use crate::summary::Summary;

/// The longest mark in bytes; a mark is one line.
const MARK: usize = 4_000;

impl Attempt<'_> {
    /// The scripts wrote a result and may still be uploading logs: their result counts.
    pub(super) fn conclude_by_result(&mut self) -> Option<i32> {
        match self.left().result? {
            Ok(result) => Some(self.stamp(&result, None)),
            Err(why) => {
                let own = Own::ResultUnreadable;
                let exit = own.number(self.agent.settings.base);
                let result = Outcome::own(exit, &why.to_string(), "");
                Some(self.fail(&result, Some(own.name())))
            }
        }
    }

    /// The scripts ended without `provision.complete`.
    pub(super) fn conclude(&mut self, ended: Option<KeeperMessage>) -> i32 {
        let left = self.left();
        // Older scripts write the base-prep mark even after a failure.
        let failed = left.counts_since(self.run.started);
        if let (None, Some(prepared)) = (left.complete, left.base_prep)
            && prepared >= self.run.started
            && !failed
        {
            // The image will be captured, and a mark of success would be captured with it.
            self.run.ended(0, BASE_PREPARED, Timestamp::now());
            self.save();
            self.event(Level::Informational, "Completed");
            return 0;
        }
        // If the scripts report success but exit with an error, the result is not final.
        let well = matches!(&ended, Some(KeeperMessage::Ended { code: Some(0), .. }));
        if let Some(Ok(result)) = left.result
            && (result.exit != 0 || left.complete.is_some() || well)
        {
            let exit = self.stamp(&result, None);
            self.touch_complete();
            return exit;
        }
        let own = Own::ResultUnreadable;
        let (exit, error, output, name) = match ended {
            Some(KeeperMessage::Ended { code: Some(0), output, .. }) => {
                let error = "the scripts ended with 0 and wrote no result".to_owned();
                (own.number(self.agent.settings.base), error, output, Some(own.name()))
            }
            Some(KeeperMessage::Ended { code: Some(code), output, .. }) => {
                (code, format!("exit status {code}"), output, None)
            }
            Some(KeeperMessage::Ended { signal, output, .. }) => {
                (-1, format!("signal: {}", signal_name(signal)), output, None)
            }
            Some(KeeperMessage::Ready(_) | KeeperMessage::NotStarted(_)) | None => {
                let own = Own::ProvisionerDied;
                let error = format!("{}: the keeper of the scripts is gone", own.name());
                (own.number(self.agent.settings.base), error, String::new(), Some(own.name()))
            }
        };
        // Secrets are removed before the text is cut: half a secret is not recognised.
        let output = self.agent.secrets.redact(&output);
        self.fail(&Outcome::own(exit, &error, &output), name)
    }

    /// Ends the attempt with the agent's own result, which replaces any existing one.
    pub(super) fn fail(&mut self, result: &Outcome, name: Option<&str>) -> i32 {
        let root = &self.agent.root;
        let struck = self.agent.secrets.strike_outcome(result);
        let clean = Outcome { exit: result.exit, object: redacted(&struck.object) };
        let text = clean.written();
        if let Err(error) = store::write(&root.result(), text.as_bytes()) {
            self.agent.log.warn(&format!("provision.json: {error}; the result goes to /run"));
            let _ = store::write(&root.spare_result(), text.as_bytes());
        } else {
            let _ = store::remove(&root.spare_result());
        }
        let exit = self.stamp(&clean, name);
        self.touch_complete();
        exit
    }

    /// Records the result: report, `run.json`, mark, events.
    fn stamp(&mut self, result: &Outcome, name: Option<&str>) -> i32 {
        let root = &self.agent.root;
        let now = Timestamp::now();
        let result = &self.agent.secrets.strike_outcome(result);
        let since = Some(self.run.started);
        let found = (result.exit != 0).then(|| examine(self.agent, Some(result), since));
        let mut summary = summarise(result, name, found.as_ref(), &self.preflight);
        let took = now.duration_since(self.run.started).as_secs();
        summary.took = summary.took.or(u64::try_from(took).ok());
        let report = self.report(result, &summary, found.as_ref());
        if let Err(error) = store::write(&root.report(), report.to_string().as_bytes()) {
            self.agent.log.warn(&format!("provision-report.json: {error}"));
        }
        self.agent.stamp(&mut summary, Some(&self.run), &self.identity);
        self.run.ended(result.exit, &summary.name, now);
        self.save();
        self.mark(&mut summary);
        self.tell(result, &summary);
        result.exit
    }

    fn report(&self, result: &Outcome, summary: &Summary, found: Option<&PostMortem>) -> Value {
        let mut report = json!({
            "v": 1,
            "run": self.run,
            "summary": summary,
            "result": redacted(&result.object),
            "preflight": self.preflight,
            "reported": self.reported.iter().map(|line| self.agent.secrets.redact(line)).collect::<Vec<_>>(),
            "diagnosis": found.map(|found| &found.diagnosis),
            "probes": found.map(|found| &found.probes),
        });
        if summary.name == exit_code::ORAS {
            report["proposed_code"] = exit_code::ORAS_PROPOSED.into();
        }
        self.agent.secrets.strike_value(&report)
    }

    /// Writes the mark. After an attempt, exactly one mark exists.
    fn mark(&self, summary: &mut Summary) {
        let root = &self.agent.root;
        summary.machine.clone_from(&self.identity.machine);
        let (mark, other) = match summary.exit {
            0 => (root.succeeded(), root.failed()),
            _ => (root.failed(), root.succeeded()),
        };
        let text = format!("{}\n", summary.encoded(MARK));
        let done = store::remove(&other).and_then(|()| store::write(&mark, text.as_bytes()));
        if let Err(error) = done {
            self.agent.log.warn(&format!("{}: {error}", root.told(&mark)));
        }
    }

    fn touch_complete(&self) {
        let path = self.agent.root.complete();
        if path.exists() {
            return;
        }
        if let Err(error) = store::write(&path, b"") {
            self.agent.log.warn(&format!("provision.complete: {error}"));
        }
    }

    /// Writes the log and the events.
    fn tell(&self, result: &Outcome, summary: &Summary) {
        if result.exit == 0 {
            self.agent.log.info("provisioning completed");
            self.event(Level::Informational, "Completed");
            return;
        }
        let cause = summary.cause.map(|cause| cause.to_string()).unwrap_or_default();
        let error = match result.text("Error") {
            "" => format!("exit status {}", result.exit),
            error => error.to_owned(),
        };
        let line = format!("aks-node-controller exited with error {error}");
        let code = result.exit.to_string();
        let more = [("exitCode", code.as_str()), ("name", &summary.name), ("cause", &cause)];
        self.agent.log.line(crate::log::Level::Error, &line, &more);
        self.event(Level::Error, &line);
        if let Some(step) = &summary.step {
            let proof: Vec<&str> =
                summary.ev.iter().map(bringup_diagnosis::redaction::Redacted::as_str).collect();
            let message =
                format!("exit={code} name={} cause={cause} {}", summary.name, proof.join(" / "));
            self.write_event(step, Level::Error, &message);
        }
    }

    pub(super) fn event(&self, level: Level, message: &str) {
        self.write_event("AKS.AKSNodeController.Provision", level, message);
    }

    pub(super) fn write_event(&self, task: &str, level: Level, message: &str) {
        let message = &self.agent.secrets.strike(message);
        let (run, start, end) = (&self.run.id, self.run.started, Timestamp::now());
        let event = Event { task, level, message, run, start, end };
        if let Err(error) = events::write(&self.agent.root.events(), &event) {
            self.agent.log.warn(&format!("event: {error}"));
        }
    }

    /// Moves away existing results.
    pub(super) fn set_aside(&self, why: &str) {
        let root = &self.agent.root;
        self.agent.log.info(&format!("an earlier result is set aside: {why}"));
        // `provision.complete` is removed first: without that file, no reader uses the others as a result.
        let files =
            [root.complete(), root.succeeded(), root.failed(), root.result(), root.spare_result()];
        let name = format!("{}-{}", self.run.started.as_millisecond(), self.run.id);
        if let Err(error) = store::set_aside(&files, &root.previous(), &name) {
            self.agent.log.warn(&format!("an earlier result could not be moved: {error}"));
            for file in &files {
                let _ = store::remove(file);
            }
        }
    }
}

/// The name that Go prints for a signal.
fn signal_name(signal: Option<i32>) -> String {
    match signal {
        Some(6) => "aborted".to_owned(),
        Some(9) => "killed".to_owned(),
        Some(11) => "segmentation fault".to_owned(),
        Some(15) => "terminated".to_owned(),
        Some(number) => format!("signal {number}"),
        None => "unknown".to_owned(),
    }
}
