//! The status file, through which the guest agent and Azure learn the state of the wait.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bringup_diagnosis::redaction::redact;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::exit;
use super::settings::Strike;
use crate::capi::{Ended, Progress};
use crate::host::system::files;

/// Every reader passes on a message of this length without cutting it.
const MESSAGE: usize = 3_900;

/// The part of a message that is for human readers.
const SENTENCE: usize = 600;

/// The state in the status file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Transitioning,
    Success,
    Error,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Transitioning => "transitioning",
            Self::Success => "success",
            Self::Error => "error",
        }
    }
}

/// A status: the exit code, if the wait is over, and the content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) exit: u8,
    pub(crate) body: String,
}

impl Status {
    fn new(state: State, exit: u8, message: &str, substatus: Option<Value>, at: Timestamp) -> Self {
        let at = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut status = json!({
            "name": "bringup-node",
            "operation": "Enable",
            "status": state.word(),
            "code": exit,
            "formattedMessage": { "lang": "en-US", "message": message },
        });
        if let Some(substatus) = substatus {
            status["substatus"] = json!([substatus]);
        }
        let body = json!([{ "version": 1.0, "timestampUTC": at, "status": status }]);
        Self { exit, body: body.to_string() }
    }

    /// The wait continues.
    pub(crate) fn waiting(progress: Option<&Progress>, unknown: &[String], at: Timestamp) -> Self {
        let mut message = match progress {
            None => "waiting for the bootstrap".to_owned(),
            Some(progress) => format!(
                "waiting for the bootstrap ({}): {} s of {} s are over",
                if progress.started { "it runs" } else { "it has not begun" },
                progress.waited.as_secs(),
                progress.limit.as_secs()
            ),
        };
        message.push_str(&ignored(unknown));
        Self::new(State::Transitioning, 0, &message, None, at)
    }

    /// The wait is over.
    pub(crate) fn ended(ended: &Ended, strike: &Strike, unknown: &[String], at: Timestamp) -> Self {
        let sentence = strike.from(&ended.human_line());
        let sentence = &sentence[..sentence.floor_char_boundary(SENTENCE)];
        let ignored = ignored(unknown);
        let line = strike.from(&ended.summary_line(MESSAGE - SENTENCE - ignored.len()));
        let message = format!("{}{ignored}\n{}", sentence.trim_end(), line.trim_end());
        if ended.is_well() {
            return Self::new(State::Success, ended.exit(), &message, None, at);
        }
        let proof =
            ended.proof().map_or_else(|| sentence.trim_end().to_owned(), |it| strike.from(it));
        let substatus = substatus(&ended.blamed(), ended.exit(), &proof);
        Self::new(State::Error, ended.exit(), &message, Some(substatus), at)
    }

    /// The wait cannot begin, for this reason.
    pub(crate) fn refused(why: &str, at: Timestamp) -> Self {
        Self::failed(exit::USAGE, "USAGE", why, at)
    }

    /// The waiter was killed too often.
    pub(crate) fn killed(times: u32, at: Timestamp) -> Self {
        let why = format!("the process that waits was killed {times} times");
        Self::failed(exit::INTERNAL, "INTERNAL", &why, at)
    }

    /// The waiter cannot be started.
    pub(crate) fn unstartable(why: &str, at: Timestamp) -> Self {
        Self::failed(exit::INTERNAL, "INTERNAL", why, at)
    }

    fn failed(exit: u8, name: &str, why: &str, at: Timestamp) -> Self {
        let why = redact(why).text.truncated(SENTENCE).into_string();
        let line = json!({
            "v": 1, "kind": "wait", "exit": exit, "name": name, "ev": [why], "end": 1,
        });
        let message = format!("wait failed ({exit}): {why}\n{}{line}", crate::summary::TAG);
        Self::new(State::Error, exit, &message, Some(substatus(name, exit, &why)), at)
    }

    /// Writes the status file of a sequence number atomically. The folder belongs to the guest agent: if the
    /// folder does not exist, the extension is removed.
    pub(crate) fn write(&self, folder: &Path, number: u64) -> io::Result<()> {
        write_body(folder, number, &self.body)
    }
}

/// A sentence about unknown settings.
fn ignored(unknown: &[String]) -> String {
    if unknown.is_empty() {
        return String::new();
    }
    let names = unknown.join(", ");
    let names = &names[..names.floor_char_boundary(200)];
    format!("; unknown settings are ignored: {names}")
}

fn substatus(name: &str, code: u8, message: &str) -> Value {
    json!({
        "name": name,
        "status": "error",
        "code": code,
        "formattedMessage": { "lang": "en-US", "message": message },
    })
}

/// The path of the status file of a sequence number.
pub(crate) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.status"))
}

/// Writes this content to the status file of a sequence number.
pub(crate) fn write_body(folder: &Path, number: u64, body: &str) -> io::Result<()> {
    let beside = folder.join(format!(".{number}.status.{}", std::process::id()));
    let written =
        fs::write(&beside, body).and_then(|()| files::replace(&beside, &path(folder, number)));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(status: &Status) -> Value {
        let value: Value = serde_json::from_str(&status.body).unwrap();
        value[0].clone()
    }

    #[test]
    fn a_status_has_what_the_guest_agent_requires() {
        let at = "2026-01-01T00:00:00.5Z".parse().unwrap();
        let progress = Progress {
            started: true,
            waited: Duration::from_secs(61),
            limit: Duration::from_mins(8),
        };
        let item = read(&Status::waiting(Some(&progress), &[], at));
        assert_eq!(item["version"], 1.0);
        assert_eq!(item["timestampUTC"], "2026-01-01T00:00:00Z");
        assert_eq!(
            item["status"],
            json!({
                "name": "bringup-node", "operation": "Enable", "status": "transitioning", "code": 0,
                "formattedMessage": {
                    "lang": "en-US",
                    "message": "waiting for the bootstrap (it runs): 61 s of 480 s are over",
                },
            })
        );
    }

    #[test]
    fn what_is_refused_is_an_error_that_the_controller_can_read() {
        let status = Status::refused("timeout: not a duration", Timestamp::UNIX_EPOCH);
        let item = read(&status);
        assert_eq!(
            (&item["status"]["status"], &item["status"]["code"]),
            (&"error".into(), &64.into())
        );
        assert_eq!(item["status"]["substatus"][0]["name"], "USAGE");
        let message = item["status"]["formattedMessage"]["message"].as_str().unwrap();
        let node = bringup_contract::cse::read(message).node.unwrap();
        assert_eq!((node.exit, node.whole), (Some(64), true));
    }

    #[test]
    fn a_folder_that_is_gone_is_not_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("status");
        assert!(write_body(&gone, 0, "[]").is_err());
        assert!(!gone.exists());
    }
}
