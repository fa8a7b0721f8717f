//! Measures redaction in everything that the controller writes. `secrets DIRECTORY` puts each secret of
//! DIRECTORY/secrets-dev.jsonl into the texts of an extension, a console, Karpenter and Azure, and searches
//! for the secret in the resulting report, conditions, Events and log lines. The exit code is 1 if a secret
//! appears.

#![allow(clippy::print_stdout, reason = "a program that prints a line")]
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed evaluation")]

#[path = "../tests/claim/mod.rs"]
mod claim;

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_azure::model::VirtualMachine;
use bringup_objects::report::BootstrapReport;
use bringup_observe::log;
use bringup_observe::observation::Observation;
use bringup_observe::outputs::{conditions, events};
use bringup_observe::plan::Step;
use bringup_observe::snapshot::{Signal, Snapshot};
use bringup_observe::subject::{Launch, Subject};
use serde::Deserialize;
use serde_json::json;

use crate::claim::{at, snapshot, subject};

/// Lines that decide a verdict, and that the outputs therefore quote. A secret may be before or after such a
/// line.
const DECIDING: [&str; 2] = [
    "curl: (28) Failed to connect to mcr.microsoft.com port 443 after 15001 ms: Timeout was reached",
    "timeout: failed to run command 'oras': No such file or directory",
];

#[derive(Debug, Deserialize)]
struct Shape {
    id: String,
    label: String,
    text_base64: String,
    secrets: Vec<String>,
}

/// The log, in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn taken(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn main() -> ExitCode {
    let directory = std::env::args().nth(1).unwrap_or_default();
    let file = Path::new(&directory).join("secrets-dev.jsonl");
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("secrets: skipped, {} is absent", file.display());
        return ExitCode::SUCCESS;
    };
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().json().with_writer(move || writer.clone()).init();
    let (mut cases, mut removed, mut outputs) = (0, 0, 0);
    for line in text.lines() {
        let shape: Shape = serde_json::from_str(line).unwrap();
        let text = STANDARD.decode(&shape.text_base64).unwrap();
        cases += 1;
        let said = said_of(&String::from_utf8_lossy(&text), &log);
        outputs += said.len();
        match said.iter().find(|said| holds(&said.1, &shape.secrets)) {
            Some((what, _)) => println!("{} {}: survives in {what}", shape.id, shape.label),
            None => removed += 1,
        }
    }
    println!(
        "secrets-dev.jsonl, removed from report, conditions, Events and log line: {removed} of {cases} \
         ({outputs} outputs searched)"
    );
    if removed == cases { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All outputs for a text that appears in each possible source.
fn said_of(text: &str, log: &Log) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    let around = |line: &str| {
        [format!("{line} {text}"), format!("{text}\n{line}"), format!("{line}: {text}")]
    };
    for text in DECIDING.into_iter().flat_map(around).chain([text.to_owned()]) {
        let launch = Launch::Refused { at: at(5), message: text.clone() };
        let refused = Subject { launch, ..subject() };
        add(&mut said, &refused, &Observation::default(), None, log);
        let claim = subject();
        let signal = Signal { stamped: at(80), heard: at(80), text: text.clone() };
        let seen = Observation::default().with_vm(&failed(&text), at(90));
        add(&mut said, &claim, &seen, Some(&signal), log);
        let seen = Observation::default().with_vm(&failed("failed"), at(90));
        add(&mut said, &claim, &seen.with_console(&text, false), None, log);
        // If a failure is not proven, the report contains what each source answered.
        let mut seen = Observation::default().with_vm(&failed(&text), at(90)).with_signal(&text);
        seen.is_full = true;
        add(&mut said, &claim, &seen, Some(&signal), log);
    }
    said
}

/// A VM whose script failed with this output.
fn failed(text: &str) -> VirtualMachine {
    let message = format!(
        "Enable failed: failed to execute command: command terminated with exit status=50\n\
         [stdout]\n{text}\n\n[stderr]\n{text}"
    );
    let status = json!({
        "code": "ProvisioningState/failed/1", "level": "Error", "message": message,
        "displayStatus": "Provisioning failed", "time": "2027-01-15T08:01:00Z",
    });
    let extension = json!({
        "name": "vmssCSE", "type": "Microsoft.Azure.Extensions.CustomScript", "statuses": [status],
    });
    VirtualMachine::of(json!({
        "name": "aks-a",
        "properties": {
            "provisioningState": "Failed", "vmId": "x",
            "instanceView": { "statuses": [status], "extensions": [extension] },
        },
    }))
}

fn add(
    said: &mut Vec<(&'static str, String)>,
    subject: &Subject,
    seen: &Observation,
    signal: Option<&Signal>,
    log: &Log,
) {
    let wanted = conditions::desired(subject, Some(seen), None, false, at(91));
    said.push(("the conditions", serde_json::to_string(&wanted).unwrap()));
    let snapshot =
        Snapshot { signal: signal.cloned(), ..snapshot(subject, Some(seen), None, at(91)) };
    let Step::Publish(report) = snapshot.next_step() else { return };
    let report: BootstrapReport = *report;
    said.push(("the report", serde_json::to_string(&report).unwrap()));
    let wanted = conditions::desired(subject, Some(seen), Some(&report), false, at(91));
    said.push(("the conditions", serde_json::to_string(&wanted).unwrap()));
    let on_parent = events::on_parent(&report, "uid-pool", "test-0", at(91));
    for event in events::on_target(&report, "test-0", at(91)).into_iter().chain(on_parent) {
        said.push(("an Event", serde_json::to_string(&event).unwrap()));
    }
    log::verdict(&report);
    said.push(("the log", log.taken()));
}

/// Whether a text contains one of the secrets: verbatim, escaped, or broken by white space.
fn holds(text: &str, secrets: &[String]) -> bool {
    let squeezed = squeeze(text);
    secrets.iter().any(|secret| {
        let escaped = serde_json::to_string(secret).unwrap();
        text.contains(secret.as_str())
            || text.contains(escaped.trim_matches('"'))
            || squeezed.contains(&squeeze(secret))
    })
}

/// The text without white space, control characters and their escapes.
fn squeeze(text: &str) -> String {
    let text = text.replace("\\r", "").replace("\\n", "").replace("\\t", "");
    text.chars().filter(|letter| !letter.is_whitespace() && !letter.is_control()).collect()
}
