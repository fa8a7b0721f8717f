//! Reads the files of cloud-init. The program cloud-init is never run: it could block, or disturb the boot.

use std::path::Path;

use bringup_diagnosis::redaction::{Redacted, redact};
use serde::Serialize;
use serde_json::Value;

use crate::host::linux::store;

/// The largest file of cloud-init that is read.
const LENGTH: u64 = 256 * 1024;

/// The longest error that is reported.
const ERROR: usize = 300;

/// The stages of cloud-init in order.
const STAGES: [&str; 4] = ["init-local", "init", "modules-config", "modules-final"];

/// The content of `status.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Status {
    /// The current stage.
    pub(crate) stage: Option<String>,
    /// The errors.
    pub(crate) errors: Vec<Redacted>,
    /// Warnings, which alone are not a failure.
    pub(crate) recoverable: Vec<Redacted>,
}

/// Why there is no status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoStatus {
    /// `status.json` does not exist.
    Absent,
    /// `status.json` cannot be read.
    Unreadable,
}

impl Status {
    /// Reads `status.json`.
    pub(crate) fn load(path: &Path) -> Result<Self, NoStatus> {
        let text = store::head(path, LENGTH).map_err(|_| NoStatus::Absent)?;
        Self::read(&text).ok_or(NoStatus::Unreadable)
    }

    fn read(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let status = value.get("v1")?.as_object()?;
        let stages = STAGES.iter().filter_map(|stage| status.get(*stage));
        let mut found = Self {
            stage: status.get("stage").and_then(Value::as_str).map(str::to_owned),
            ..Self::default()
        };
        for stage in stages {
            found.errors.extend(texts(&stage["errors"]));
            let kinds = stage["recoverable_errors"].as_object().into_iter().flatten();
            found.recoverable.extend(kinds.flat_map(|(_, list)| texts(list)));
        }
        Some(found)
    }
}

fn texts(list: &Value) -> Vec<Redacted> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(|text| redact(text).text.truncated(ERROR)).take(10).collect()
}

/// The content of `result.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The data source of the user data.
    pub(crate) datasource: Option<String>,
    /// The errors.
    pub(crate) errors: Vec<Redacted>,
}

impl Outcome {
    /// Reads `result.json`.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        let value: Value = serde_json::from_str(&store::head(path, LENGTH).ok()?).ok()?;
        let result = value.get("v1")?;
        let datasource = result["datasource"].as_str().map(str::to_owned);
        Some(Self { datasource, errors: texts(&result["errors"]) })
    }

    /// Whether cloud-init found no data source.
    pub(crate) fn without_source(&self) -> bool {
        self.datasource.as_deref().is_some_and(|source| source.starts_with("DataSourceNone"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_complaints_are_told_apart() {
        let status = Status::read(
            r#"{"v1":{"datasource":"DataSourceAzure","stage":"modules-final",
                "init":{"errors":[],"recoverable_errors":{"WARNING":["odd"]}},
                "modules-final":{"errors":["('scripts_user', RuntimeError('1'))"],"recoverable_errors":{}}}}"#,
        )
        .unwrap();
        assert_eq!(status.stage.as_deref(), Some("modules-final"));
        assert_eq!((status.errors.len(), status.recoverable.len()), (1, 1));
    }

    #[test]
    fn a_status_that_is_no_status_is_not_one() {
        assert_eq!(Status::read("{"), None);
        assert_eq!(Status::read("{}"), None);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.json");
        assert_eq!(Status::load(&path), Err(NoStatus::Absent));
        std::fs::write(&path, "x").unwrap();
        assert_eq!(Status::load(&path), Err(NoStatus::Unreadable));
    }

    #[test]
    fn a_fallback_source_brings_no_user_data() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        std::fs::write(&path, r#"{"v1":{"datasource":"DataSourceNone","errors":[]}}"#).unwrap();
        assert!(Outcome::load(&path).unwrap().without_source());
    }
}
