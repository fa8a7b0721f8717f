//! Managed run commands: the commands that users run on a VM, and their output.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{list, moment, text};

/// The most run commands of a VM that are read.
const MOST: usize = 25;

/// A managed run command, without its script and parameters, which may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunCommand {
    /// The name of the run command.
    pub name: String,
    /// The execution state, such as `Running`, `Failed` or `TimedOut`.
    pub execution_state: Option<String>,
    /// The exit code.
    pub exit_code: Option<i64>,
    /// The end of the standard output.
    pub output: Option<String>,
    /// The end of the standard error.
    pub error: Option<String>,
    /// When the command ended.
    pub ended: Option<Timestamp>,
}

impl RunCommand {
    fn of(value: &Value) -> Option<Self> {
        let view = value.pointer("/properties/instanceView");
        let view = view.filter(|view| view.is_object()).unwrap_or(&Value::Null);
        Some(Self {
            name: text(value, "/name")?,
            execution_state: text(view, "/executionState"),
            exit_code: view.pointer("/exitCode").and_then(Value::as_i64),
            output: text(view, "/output"),
            error: text(view, "/error"),
            ended: moment(view, "/endTime"),
        })
    }

    pub(crate) fn all(answer: &Value) -> Vec<Self> {
        list(answer, "/value").iter().filter_map(Self::of).take(MOST).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_command_was_told_is_not_kept_and_what_is_missing_is_nothing() {
        let answer = json!({ "value": [
            { "name": "wait", "properties": {
                "source": { "script": "wait --token secret" },
                "instanceView": { "executionState": "Failed", "exitCode": 31, "output": "said", "error": "",
                                  "endTime": "2026-01-27T14:30:02.1234567+00:00" } } },
            { "name": "early", "properties": { "instanceView": null } },
            { "properties": {} },
            7,
        ] });
        let commands = RunCommand::all(&answer);
        assert_eq!(commands.len(), 2, "{commands:?}");
        assert!(!format!("{commands:?}").contains("secret"));
        assert_eq!((commands[0].exit_code, commands[0].error.as_deref()), (Some(31), None));
        assert_eq!(commands[0].output.as_deref(), Some("said"));
        assert!(commands[0].ended.is_some());
        assert_eq!(commands[1], RunCommand { name: "early".to_owned(), ..RunCommand::default() });
        assert!(RunCommand::all(&json!([])).is_empty());
    }
}
