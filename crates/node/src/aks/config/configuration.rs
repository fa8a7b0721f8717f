//! Reads a node configuration: the errors that refuse it, and the warnings that do not.

use std::io::ErrorKind;
use std::path::Path;

use bringup_contract::node_config::{self, LARGEST, NodeConfig};

use super::{ConfigError, Rules};
use crate::aks::result_files::go_error;
use crate::host::linux::store;

/// Reads a configuration. Errors of reading take precedence over an unsupported version.
pub(crate) fn read(path: &Path, rules: &Rules) -> Result<NodeConfig, ConfigError> {
    let told = || path.display().to_string();
    let bytes = match store::bytes(path, LARGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            let length = std::fs::metadata(path).map_or(0, |data| data.len());
            let what = format!("line 1 column 1: {length} bytes, and the limit is {LARGEST}");
            return Err(ConfigError::Refused { path: told(), what });
        }
        Err(error) => return Err(ConfigError::NotRead(told(), go_error(&error))),
    };
    let config = NodeConfig::parse(&bytes).map_err(|error| match error {
        node_config::ConfigError::UnsupportedVersion(version) => ConfigError::Version(version),
        node_config::ConfigError::Refused(_) | node_config::ConfigError::TooLarge(_) => {
            ConfigError::Refused { path: told(), what: error.to_string() }
        }
    })?;
    if rules.reject_v0 && config.configuration.version == "v0" {
        return Err(ConfigError::Version("v0".to_owned()));
    }
    let missing = config.configuration.missing_required();
    if rules.strict_required && !missing.is_empty() {
        let what = format!("required fields are empty: {}", missing.join(", "));
        return Err(ConfigError::Refused { path: told(), what });
    }
    Ok(config)
}

/// The warnings about a configuration that is used.
pub(crate) fn remarks(config: &NodeConfig) -> Vec<String> {
    let notices = config.notices.iter().map(|notice| format!("configuration: {notice}"));
    let missing = config.configuration.missing_required().into_iter();
    notices
        .chain(missing.map(|field| format!("configuration: {field}: required, and empty")))
        .collect()
}
