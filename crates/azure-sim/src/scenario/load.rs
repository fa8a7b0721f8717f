//! Loads a scenario file. Errors name file, line and column.

use std::path::{Path, PathBuf};

use super::Scenario;

/// A scenario that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("cannot read scenario {}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The underlying error.
        source: std::io::Error,
    },
    /// The file is not a scenario.
    #[error("{origin}:{line}:{column}: {expected}")]
    Parse {
        /// The name of the file or text.
        origin: String,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// The problem, and the expected value.
        expected: String,
    },
}

/// Reads a scenario file.
pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
    parse(&path.display().to_string(), &text)
}

/// Reads a scenario from text; `origin` names it in errors.
pub fn parse(origin: &str, text: &str) -> Result<Scenario, ScenarioError> {
    if text.trim().is_empty() {
        return Ok(Scenario::default());
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        let place = error.location();
        ScenarioError::Parse {
            origin: origin.to_owned(),
            line: place.as_ref().map_or(1, serde_saphyr::Location::line),
            column: place.as_ref().map_or(1, serde_saphyr::Location::column),
            expected: without_place(&error.to_string()),
        }
    })
}

/// Removes the position from the end of the library's message; our message starts with the position.
fn without_place(message: &str) -> String {
    match message.rfind(" at line ") {
        Some(at) => message[..at].to_owned(),
        None => message.to_owned(),
    }
}
