//! The failure sentinel: `bootstrap-failed.json`, beside the success sentinel. Any bootstrap may
//! write it; all of its keys are optional: `code`, `cause`, `message`.

use bringup_contract::Cause;
use bringup_diagnosis::redaction::{Redacted, redact};
use serde_json::Value;

/// The longest message, in bytes.
const MESSAGE: usize = 512;

/// The content of a failure sentinel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Whether the content is complete JSON, or will never be JSON.
    pub(crate) whole: bool,
    /// The code from the writer of the sentinel.
    pub(crate) code: Option<i64>,
    /// The cause, if this program knows it.
    pub(crate) cause: Option<Cause>,
    /// The message for human readers.
    pub(crate) message: Option<Redacted>,
}

impl Failure {
    /// Parses a failure sentinel. Text that is not JSON is used as the message.
    pub(crate) fn read(text: &str) -> Self {
        let text = text.trim_start_matches('\u{feff}').trim();
        let message = |text: &str| {
            let message = redact(text).text.truncated(MESSAGE);
            Some(message).filter(|message| !message.is_empty())
        };
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            let cut = text.is_empty() || text.starts_with(['{', '[']);
            return Self { whole: !cut, message: message(text), ..Self::default() };
        };
        let first = |names: &[&str]| names.iter().map(|name| &value[*name]).find(|v| !v.is_null());
        let code = first(&["code", "exit", "exitCode", "ExitCode"])
            .cloned()
            .or_else(|| Some(value.clone()).filter(Value::is_number));
        let words = |names: &[&str]| first(names).and_then(Value::as_str);
        Self {
            whole: true,
            code: code.and_then(|code| match code {
                Value::String(text) => text.trim().parse().ok(),
                other => other.as_i64(),
            }),
            cause: words(&["cause", "reason"]).and_then(|cause| cause.parse().ok()),
            message: words(&["message", "error", "Error"]).and_then(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_cause_and_message_are_read_and_all_may_be_missing() {
        let full = Failure::read(r#"{"code":42,"cause":"DnsFailure","message":"no name"}"#);
        assert_eq!((full.code, full.cause), (Some(42), Some(Cause::DnsFailure)));
        assert_eq!(full.message.unwrap().as_str(), "no name");
        assert_eq!(Failure::read(r#"{"exitCode":"7"}"#).code, Some(7));
        assert_eq!(Failure::read("{}"), Failure { whole: true, ..Failure::default() });
        assert_eq!(Failure::read("42").code, Some(42));
    }

    #[test]
    fn what_is_being_written_is_told_from_what_is_no_json() {
        assert!(!Failure::read("").whole);
        assert!(!Failure::read(r#"{"code":4"#).whole);
        let words = Failure::read("it broke");
        assert!(words.whole && words.message.is_some());
    }
}
