//! Turns the delivered files into the command to run. The rest of the agent uses only [`command`] and does
//! not know configurations.
//!
//! A ready-made command (`--nbc-cmd`) takes precedence over a node configuration (`--provision-config`). The
//! contract library makes the variables from a configuration; this module adds the variables that depend on
//! the machine, and collects the warnings to report.

pub(crate) mod assignments;
pub(crate) mod comparison;
pub(crate) mod configuration;
mod host;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bringup_contract::node_config::{COMMAND, Environment, EnvironmentError, LARGEST};
use sha2::{Digest as _, Sha256};

use crate::aks::environment::{Variables, handed_on};
use crate::aks::result_files::go_error;
use crate::host::linux::store;
use crate::host::paths::Root;
use crate::secrets::Secrets;

/// The files that were delivered to the node.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    /// `--provision-config`.
    pub(crate) configuration: Option<&'a Path>,
    /// `--nbc-cmd`.
    pub(crate) ready_made: Option<&'a Path>,
}

/// How strictly a configuration is validated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Refuse a configuration of version 0.
    pub(crate) reject_v0: bool,
    /// Refuse a configuration that lacks a required field.
    pub(crate) strict_required: bool,
    /// The registry that holds Microsoft's images in a sovereign cloud.
    pub(crate) mcr_repository_base: Option<String>,
}

/// The command that runs the scripts.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) argv: Vec<OsString>,
    /// The complete environment: the command inherits no other variables.
    pub(crate) env: Variables,
    /// Warnings about the input, to be reported.
    pub(crate) reported: Vec<String>,
    /// Whether a registry is configured from which oras pulls the programs that the node needs.
    pub(crate) registry: bool,
    /// The digest of the file that the command was made from.
    pub(crate) sha256: String,
    /// The secrets of the command, which must not appear in any output.
    pub(crate) secrets: Secrets,
}

/// Why there is no command to run. Every variant ends with exit code 240.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Neither a command nor a configuration was delivered.
    #[error("--provision-config or --nbc-cmd is required")]
    Nothing,
    /// The ready-made command cannot be read.
    #[error("read NBC command file {0}: {1}")]
    CommandNotRead(String, String),
    /// The ready-made command is not a regular file but a directory, a pipe or a device.
    #[error("NBC command file {0} must be a regular file")]
    CommandNotRegular(String),
    /// The configuration cannot be read.
    #[error("open provision file {0}: {1}")]
    NotRead(String, String),
    /// The configuration violates the contract.
    #[error("config {path}: {what}")]
    Refused {
        /// The path of the configuration.
        path: String,
        /// The problem, with line, column and field.
        what: String,
    },
    /// The version of the configuration is not supported.
    #[error("unsupported version: {0}")]
    Version(String),
    /// The variables cannot be made from the configuration.
    #[error("{} (variable {})", .0.what, .0.variable)]
    NotMade(#[from] EnvironmentError),
    /// The command is a shell text, in which this root path would have another meaning.
    #[error("--root {0}: a shell would act on a character of it")]
    Root(String),
}

/// The command for the delivered files; a ready-made command takes precedence.
pub(crate) fn command(
    given: Given<'_>,
    root: &Root,
    rules: &Rules,
    inherited: Variables,
) -> Result<Command, ConfigError> {
    match (given.ready_made, given.configuration) {
        (Some(path), configuration) => {
            let mut command = ready(path, inherited)?;
            // The configuration holds the same secrets, and they are easier to recognise there than in a
            // shell text.
            if let Some(Ok(config)) = configuration.map(|path| configuration::read(path, rules)) {
                command.secrets = command.secrets.and(&Secrets::of_configuration(&config));
            }
            Ok(command)
        }
        (None, Some(path)) => configured(path, root, rules, inherited),
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
    let bytes = store::bytes(path, LARGEST).map_err(|error| not_read(&error))?;
    let text = String::from_utf8_lossy(&bytes);
    let (env, reported) = handed_on(inherited);
    let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    Ok(Command {
        argv: vec!["/bin/bash".into(), "--".into(), path.into()],
        registry: names_a_registry(&text, &env),
        secrets: Secrets::of_command(&text),
        env,
        reported,
        sha256: hexadecimal(&Sha256::digest(&bytes)),
    })
}

fn configured(
    path: &Path,
    root: &Root,
    rules: &Rules,
    inherited: Variables,
) -> Result<Command, ConfigError> {
    let config = configuration::read(path, rules)?;
    let (inherited, mut reported) = handed_on(inherited);
    reported.extend(configuration::remarks(&config));
    let host = host::observe(root, &inherited, rules, &mut reported);
    let made = Environment::of(&config.configuration, &host)?;
    reported.extend(made.warnings().iter().cloned());
    Ok(Command {
        argv: under(root)?,
        registry: pulls_from_a_registry(&made),
        env: made.over(inherited).into_iter().collect(),
        reported,
        sha256: hexadecimal(&Sha256::digest(config.source())),
        secrets: Secrets::of_configuration(&config),
    })
}

/// The command of the contract. Under a root, the paths in its arguments are moved under the root; the
/// variables are the same as on a machine.
fn under(root: &Root) -> Result<Vec<OsString>, ConfigError> {
    let Some(directory) = root.directory() else {
        return Ok(COMMAND.iter().map(OsString::from).collect());
    };
    let told = directory.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if !told.bytes().all(plain) {
        return Err(ConfigError::Root(told));
    }
    let told = told.trim_end_matches('/');
    let places = [
        ("", "${PROVISION_OUTPUT}"),
        ("", "${INIT_AKS_CLOUD_FILEPATH}"),
        (" ", "/opt/azure/"),
        (" ", "/var/log/"),
    ];
    let rooted = |word: &&str| {
        let moved = |text: String, (before, place): &(&str, &str)| {
            text.replace(&format!("{before}{place}"), &format!("{before}{told}{place}"))
        };
        OsString::from(places.iter().fold((*word).to_owned(), moved))
    };
    Ok(COMMAND.iter().map(rooted).collect())
}

/// The variable that makes the scripts log in to a registry with oras.
const REGISTRY: &str = "BOOTSTRAP_PROFILE_CONTAINER_REGISTRY_SERVER";

/// The variables that name where programs are downloaded from, which may be a registry.
const SOURCES: &[&str] = &[
    "KUBE_BINARY_URL",
    "CUSTOM_KUBE_BINARY_URL",
    "PRIVATE_KUBE_BINARY_URL",
    "CREDENTIAL_PROVIDER_DOWNLOAD_URL",
];

fn pulls_from_a_registry(made: &Environment) -> bool {
    let value = |name: &str| made.get(name).unwrap_or_default();
    !value(REGISTRY).is_empty() || SOURCES.iter().any(|name| is_reference(value(name)))
}

/// Whether the text is an image reference, `registry.example/path/name:tag`, and not a URL.
fn is_reference(text: &str) -> bool {
    let path =
        text.rsplit_once(':').map(|(path, tag)| (path, !tag.is_empty() && !tag.contains('/')));
    path.is_some_and(|(path, tagged)| {
        tagged
            && !path.contains("://")
            && path.split('/').filter(|part| !part.is_empty()).count() > 2
    })
}

/// Whether a ready-made command, or an inherited variable, names a registry.
fn names_a_registry(text: &str, env: &Variables) -> bool {
    let inherited = env.iter().any(|(name, value)| name == REGISTRY && !value.is_empty());
    inherited
        || text.match_indices(REGISTRY).any(|(at, _)| {
            let value = text[at + REGISTRY.len()..].strip_prefix('=');
            let value = value.map(|value| value.trim_start_matches(['"', '\'', '\\']));
            value.is_some_and(|value| value.starts_with(|c: char| c.is_ascii_alphanumeric()))
        })
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
    fn a_reference_into_a_registry_is_no_address_of_the_web() {
        assert!(is_reference("registry.example/oss/kubernetes-node:v1.32.4"));
        for other in ["", "https://x.example/a/b.tar.gz", "https://x.example:443/a/b:c", "a/b/c"] {
            assert!(!is_reference(other), "{other}");
        }
    }

    #[test]
    fn on_a_machine_the_command_is_that_of_the_contract_and_under_a_root_it_stays_there() {
        let of = |root: Option<&str>| under(&Root::new(root.map(PathBuf::from)));
        assert_eq!(of(None).unwrap(), COMMAND.map(OsString::from));
        let moved = of(Some("/tmp/x/")).unwrap().remove(2).into_string().unwrap();
        assert!(moved.contains("> /tmp/x${PROVISION_OUTPUT};"), "{moved}");
        assert!(moved.contains("/bin/bash /tmp/x/opt/azure/containers/provision_start.sh"));
        assert_eq!(moved.matches("/tmp/x").count(), 5);
        assert!(of(Some("/tmp/a b")).is_err());
    }
}
