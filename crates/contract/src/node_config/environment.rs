//! The environment of the scripts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use super::derived::{DERIVED, on_one_line};
use super::gpu::{self, Components};
use super::variables::PLAIN;
use super::{Configuration, features};

/// The command that runs the scripts, to be given the environment.
pub const COMMAND: [&str; 3] = [
    "/bin/bash",
    "-c",
    concat!(
        "echo $(date),$(hostname) > ${PROVISION_OUTPUT}; ",
        "if [ -f \"${INIT_AKS_CLOUD_FILEPATH}\" ]; then ",
        "\"${INIT_AKS_CLOUD_FILEPATH}\" >> /var/log/azure/cluster-provision.log 2>&1 || exit $?; ",
        "fi; ",
        "/usr/bin/nohup /bin/bash -c \"/bin/bash /opt/azure/containers/provision_start.sh\" ",
    ),
];

/// Which of its two schemas the configuration of containerd has to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerdSchema {
    /// Before version 2.
    A,
    /// From version 2 on.
    B,
}

impl ContainerdSchema {
    /// The schema of what `containerd --version` says; `None` where that says nothing.
    pub fn of_version_output(output: &str) -> Option<Self> {
        let word = output.split_whitespace().nth(2)?;
        let version = word.strip_prefix('v').unwrap_or(word).split('-').next()?;
        let parts: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
        match parts.as_deref() {
            Some([major, _, _]) => Some(if *major >= 2 { Self::B } else { Self::A }),
            _ => None,
        }
    }
}

/// What the environment depends on beside the configuration.
#[derive(Debug, Clone)]
pub struct Host {
    /// That of the containerd which is installed.
    pub containerd: ContainerdSchema,
    /// The drivers of GPUs, or why they are not known.
    pub components: Result<Components, String>,
    /// Where Microsoft's images are in a sovereign cloud.
    pub mcr_repository_base: Option<String>,
}

impl Default for Host {
    /// An old containerd, and no drivers.
    fn default() -> Self {
        Self {
            containerd: ContainerdSchema::A,
            components: Err("there is no component list".to_owned()),
            mcr_repository_base: None,
        }
    }
}

/// A value that cannot be made of this configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {what}")]
pub struct EnvironmentError {
    /// The variable.
    pub variable: &'static str,
    /// Why not; never with the value.
    pub what: String,
}

pub(super) fn refused(variable: &'static str, what: String) -> EnvironmentError {
    EnvironmentError { variable, what }
}

/// The variables that the scripts read. `Debug` shows their names only.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<Cow<'static, str>, String>,
    warnings: Vec<String>,
}

impl Environment {
    /// Makes them of a configuration.
    pub fn of(config: &Configuration, host: &Host) -> Result<Self, EnvironmentError> {
        let mut variables: BTreeMap<Cow<'static, str>, String> = BTreeMap::new();
        for (name, value) in PLAIN {
            variables.insert((*name).into(), value(config));
        }
        for (name, value) in DERIVED {
            variables.insert((*name).into(), value(config, host)?);
        }
        for (index, certificate) in config.custom_ca_certs.iter().enumerate() {
            let name = format!("CUSTOM_CA_CERT_{index}");
            variables.insert(name.into(), on_one_line(certificate));
        }
        if let Some(base) = &host.mcr_repository_base {
            variables.insert("MCR_REPOSITORY_BASE".into(), base.clone());
        }
        let warnings = match &host.components {
            Err(why) if !gpu::needs_driver(config) => vec![format!("no drivers of GPUs: {why}")],
            Ok(_) | Err(_) => Vec::new(),
        };
        Ok(Self { variables, warnings })
    }

    /// One variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_ref(), value.as_str()))
    }

    /// What is missing and does not matter to this node.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The environment of the scripts' process: these variables, and below them what is inherited
    /// and can do no harm. `PATH` gets the directories in which images keep their programs.
    pub fn over(
        &self,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let harmless =
            |name: &OsStr| name.to_str().is_none_or(|name| !features::never_passed(name));
        let mut all: BTreeMap<OsString, OsString> =
            inherited.into_iter().filter(|(name, _)| harmless(name)).collect();
        let path = all.entry("PATH".into()).or_default();
        *path = whole_path(path);
        all.extend(self.iter().map(|(name, value)| (name.into(), value.into())));
        all
    }
}

/// `PATH` with `/usr/local/bin` and `/opt/bin` behind what is there.
fn whole_path(path: &OsStr) -> OsString {
    let mut whole = path.to_owned();
    for directory in ["/usr/local/bin", "/opt/bin"] {
        let there = path.as_encoded_bytes().split(|byte| *byte == b':');
        if !there.into_iter().any(|entry| entry == directory.as_bytes()) {
            if !whole.is_empty() {
                whole.push(":");
            }
            whole.push(directory);
        }
    }
    whole
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.variables.keys()).finish()
    }
}
