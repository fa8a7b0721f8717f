//! One status of an instance view.

use jiff::Timestamp;
use serde_json::Value;

use super::read::{list, moment, text};

/// How bad it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// All is well, or going on.
    Info,
    /// Something is not ready.
    Warning,
    /// It failed.
    Error,
    /// A word that is not documented.
    Other(String),
}

/// One status: of a machine, its agent, a handler or an extension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Such as `ProvisioningState/failed/0`.
    pub code: Option<String>,
    /// How bad it is.
    pub level: Option<Level>,
    /// A short text.
    pub display: Option<String>,
    /// A long text: of an extension, the output of a script.
    pub message: Option<String>,
    /// When it came about.
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

    /// The part of the code behind `kind`: `running` of `PowerState/running`.
    pub fn state(&self, kind: &str) -> Option<&str> {
        let (found, state) = self.code.as_deref()?.split_once('/')?;
        found.eq_ignore_ascii_case(kind).then_some(state)
    }

    /// Whether it says that something failed.
    pub fn is_error(&self) -> bool {
        self.level == Some(Level::Error)
    }
}
