//! Events for the guest agent, which reads files with numeric names and drops long ones.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use bringup_diagnosis::redaction::redact;
use jiff::Timestamp;
use serde_json::json;

use crate::crash_points;
use crate::host::linux::store;

/// The longest message, in characters.
const MESSAGE: usize = 3_000;
/// The longest file, in characters; the guest agent drops a file above 6,144.
const FILE: usize = 6_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// A success or progress.
    Informational,
    /// A failure.
    Error,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Event<'a> {
    /// The task that the event reports, such as `AKS.AKSNodeController.Provision`.
    pub(crate) task: &'a str,
    pub(crate) level: Level,
    pub(crate) message: &'a str,
    /// The run that the event belongs to.
    pub(crate) run: &'a str,
    /// The start of the task.
    pub(crate) start: Timestamp,
    /// The end of the task.
    pub(crate) end: Timestamp,
}

/// Writes an event.
pub(crate) fn write(directory: &Path, event: &Event<'_>) -> io::Result<()> {
    store::directory_for(directory)?;
    // The guest agent ignores this temporary name. The agent runs as root, but others read events too.
    let beside = directory.join(".event.new");
    store::write_new(&beside, encoded(event).as_bytes(), 0o644)?;
    let mut name = event.end.as_nanosecond();
    let linked = loop {
        let path = directory.join(format!("{name}.json"));
        crash_points::reached("name an event");
        match fs::hard_link(&beside, &path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => name += 1,
            other => break other,
        }
    };
    linked.and(fs::remove_file(&beside))
}

fn encoded(event: &Event<'_>) -> String {
    let time = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string();
    let (start, end) = (time(event.start), time(event.end));
    let took = event.end.duration_since(event.start).as_millis();
    let run = if event.run.is_empty() { String::new() } else { format!(" run={}", event.run) };
    let tail = format!("{run} | startTime={start} endTime={end} durationMs={took}");
    let task: String = event.task.chars().take(200).collect();
    let clean = redact(event.message).text.into_string();
    let mut room = MESSAGE - tail.chars().count();
    loop {
        let head: String = clean.chars().take(room).collect();
        let text = json!({
            "Timestamp": start,
            "OperationId": end,
            "Version": "1.23",
            "TaskName": task,
            "EventLevel": match event.level {
                Level::Informational => "Informational",
                Level::Error => "Error",
            },
            "Message": format!("{head}{tail}"),
            "EventPid": "0",
            "EventTid": "0",
        })
        .to_string();
        if text.chars().count() <= FILE || room == 0 {
            return text;
        }
        room = room * 3 / 4;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn event(message: &str) -> Event<'_> {
        let start = "2026-08-21T10:00:00.25Z".parse().unwrap();
        let end = "2026-08-21T10:00:01.5Z".parse().unwrap();
        Event { task: "AKS.CSE.x", level: Level::Error, message, run: "r1", start, end }
    }

    #[test]
    fn an_event_has_the_form_that_queries_rely_on() {
        let value: Value = serde_json::from_str(&encoded(&event("it failed"))).unwrap();
        assert_eq!(value["Timestamp"], "2026-08-21 10:00:00.250");
        assert_eq!(value["OperationId"], "2026-08-21 10:00:01.500");
        assert_eq!(
            value["Message"],
            "it failed run=r1 | startTime=2026-08-21 10:00:00.250 endTime=2026-08-21 10:00:01.500 durationMs=1250"
        );
    }

    #[test]
    fn test_e34_a_thousand_long_events_at_the_same_moment_are_a_thousand_valid_files() {
        let folder = tempfile::tempdir().unwrap();
        let message = "\"\\\u{1}é".repeat(1_000);
        for _ in 0..1_000 {
            write(folder.path(), &event(&message)).unwrap();
        }
        let files: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(files.len(), 1_000);
        for file in files {
            let file = file.unwrap();
            let text = fs::read_to_string(file.path()).unwrap();
            assert!(text.chars().count() <= 6_000);
            let value: Value = serde_json::from_str(&text).unwrap();
            assert!(value["Message"].as_str().unwrap().chars().count() <= 3_000);
            let name = file.file_name().into_string().unwrap();
            assert!(name.strip_suffix(".json").unwrap().bytes().all(|byte| byte.is_ascii_digit()));
        }
    }
}
