//! One status of an instance view.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{list, moment, text};

/// The severity of a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// Success or progress.
    Info,
    /// Not ready.
    Warning,
    /// Failure.
    Error,
    /// An undocumented severity.
    Other(String),
}

/// One status: of a VM, its agent, a handler or an extension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The code, such as `ProvisioningState/failed/0`.
    pub code: Option<String>,
    /// The severity.
    pub level: Option<Level>,
    /// A short text for display.
    pub display: Option<String>,
    /// A long text: of an extension, the output of a script.
    pub message: Option<String>,
    /// When the status was reported.
    pub time: Option<Timestamp>,
}

impl Status {
    pub(super) fn of(value: &Value) -> Self {
        Self {
            code: text(value, "/code"),
            level: text(value, "/level").map(|word| match word.to_ascii_lowercase().as_str() {
                "info" => Level::Info,
                "warning" => Level::Warning,
                "error" => Level::Error,
                _ => Level::Other(word),
            }),
            display: text(value, "/displayStatus"),
            message: text(value, "/message"),
            time: moment(value, "/time"),
        }
    }

    pub(super) fn list(value: &Value, pointer: &str) -> Vec<Self> {
        list(value, pointer).iter().filter(|status| status.is_object()).map(Self::of).collect()
    }

    /// The part of the code after `kind`: `running` in `PowerState/running`.
    pub fn state(&self, kind: &str) -> Option<&str> {
        let (found, state) = self.code.as_deref()?.split_once('/')?;
        found.eq_ignore_ascii_case(kind).then_some(state)
    }

    /// Whether the status reports a failure.
    pub fn is_error(&self) -> bool {
        self.level == Some(Level::Error)
    }
}
