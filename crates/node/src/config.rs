//! From what was delivered to the command that is run. **This is the seam** for the AKSNodeConfig
//! contract: [`command`] is all that the rest of the agent knows of configurations.
//!
//! A ready-made command (`--nbc-cmd`) is complete. Of a node configuration
//! (`--provision-config`), only what refuses it is there: it must be readable, be JSON, and have a
//! version that is known. Then it is refused with [`ConfigError::NotBuilt`]; the contract's
//! parser, its validation and its environment go in that place, and fill all of [`Command`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::environment::{Variables, handed_on};
use crate::leftovers::go_error;
use crate::store;

/// What is run.
#[derive(Debug)]
pub(crate) struct Command {
    /// The program and its arguments.
    pub(crate) argv: Vec<OsString>,
    /// All variables, and no others.
    pub(crate) env: Variables,
    /// What is to be reported of how it was made.
    pub(crate) reported: Vec<String>,
    /// A registry is configured, from which oras pulls what the node needs.
    pub(crate) registry: bool,
    /// The digest of what it was made from.
    pub(crate) sha256: String,
}

/// Why there is nothing to run. Every one of them is a 240.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Nothing was given.
    #[error("--provision-config or --nbc-cmd is required")]
    Nothing,
    /// The ready-made command cannot be read.
    #[error("read NBC command file {0}: {1}")]
    CommandNotRead(String, String),
    /// The ready-made command is a directory, a pipe, a device.
    #[error("NBC command file {0} must be a regular file")]
    CommandNotRegular(String),
    /// The configuration cannot be read.
    #[error("open provision file {0}: {1}")]
    NotRead(String, String),
    /// The configuration is not JSON.
    #[error("config {path}: line {line} column {column}: {what}")]
    NotJson {
        /// Where it is.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// The configuration is of another time.
    #[error("unsupported version: {0}")]
    Version(String),
    /// The configuration may be fine; this build cannot run it.
    #[error(
        "config {0}: this build of bringup-node does not turn an AKSNodeConfig into a command yet; give it the ready-made command with --nbc-cmd"
    )]
    NotBuilt(String),
}

/// The command for what was given; a ready-made one wins.
pub(crate) fn command(
    configuration: Option<&Path>,
    ready_made: Option<&Path>,
    inherited: Variables,
) -> Result<Command, ConfigError> {
    match (ready_made, configuration) {
        (Some(path), _) => ready(path, inherited),
        (None, Some(path)) => Err(refusal(path)),
        (None, None) => Err(ConfigError::Nothing),
    }
}

fn ready(path: &Path, inherited: Variables) -> Result<Command, ConfigError> {
    let told = || path.display().to_string();
    let not_read = |error: &std::io::Error| ConfigError::CommandNotRead(told(), go_error(error));
    let data = std::fs::metadata(path).map_err(|error| not_read(&error))?;
    if !data.is_file() {
        return Err(ConfigError::CommandNotRegular(told()));
    }
    let text = std::fs::read(path).map_err(|error| not_read(&error))?;
    let (env, reported) = handed_on(inherited);
    let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    Ok(Command {
        argv: vec!["/bin/bash".into(), "--".into(), path.into()],
        registry: names_a_registry(&String::from_utf8_lossy(&text), &env),
        env,
        reported,
        sha256: hexadecimal(&Sha256::digest(&text)),
    })
}

/// The variable that makes the scripts log in to a registry with oras.
const REGISTRY: &str = "BOOTSTRAP_PROFILE_CONTAINER_REGISTRY_SERVER";

/// Whether a ready-made command, or what it inherits, names a registry.
fn names_a_registry(text: &str, env: &Variables) -> bool {
    let inherited = env.iter().any(|(name, value)| name == REGISTRY && !value.is_empty());
    inherited
        || text.match_indices(REGISTRY).any(|(at, _)| {
            let value = text[at + REGISTRY.len()..].strip_prefix('=');
            let value = value.map(|value| value.trim_start_matches(['"', '\'', '\\']));
            value.is_some_and(|value| value.starts_with(|c: char| c.is_ascii_alphanumeric()))
        })
}

fn refusal(path: &Path) -> ConfigError {
    let told = path.display().to_string();
    let text = match store::head(path, 16 << 20) {
        Ok(text) => text,
        Err(error) => return ConfigError::NotRead(told, go_error(&error)),
    };
    let value: Value = match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(error) => {
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or_default().to_owned();
            let (line, column) = (error.line().max(1), error.column().max(1));
            return ConfigError::NotJson { path: told, line, column, what };
        }
    };
    match &value["version"] {
        Value::String(version) if matches!(version.as_str(), "v0" | "v1") => {
            ConfigError::NotBuilt(told)
        }
        Value::String(version) => ConfigError::Version(version.clone()),
        _ => ConfigError::Version(String::new()),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_seen_in_a_ready_made_command() {
        let none = Variables::new();
        assert!(names_a_registry(&format!("X=1 {REGISTRY}=\"reg.example.io\" bash y"), &none));
        assert!(!names_a_registry(&format!("X=1 {REGISTRY}=\"\" bash y"), &none));
        assert!(!names_a_registry(&format!("if [ -n ${REGISTRY} ]; then"), &none));
        assert!(names_a_registry("", &vec![(REGISTRY.into(), "reg.example.io".into())]));
    }

    #[test]
    fn a_configuration_is_refused_by_what_is_wrong_with_it_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        let said = |text: &str| {
            std::fs::write(&path, text).unwrap();
            refusal(&path).to_string()
        };
        assert!(said("").contains("line 1 column 1: "));
        assert!(said("{\"version\":\"v1\",}").contains("line 1 column 17: "));
        assert_eq!(said("{\"version\":\"v2\"}"), "unsupported version: v2");
        assert!(said("{\"version\":\"v1\"}").contains("--nbc-cmd"));
    }
}
