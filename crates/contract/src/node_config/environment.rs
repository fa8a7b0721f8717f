//! The environment of the scripts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use super::derived::{DERIVED, on_one_line};
use super::gpu::{self, Components};
use super::variables::PLAIN;
use super::{Configuration, features};

/// The command that runs the scripts with the environment.
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

/// The two schemas of containerd's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerdSchema {
    /// For containerd before version 2.
    A,
    /// For containerd from version 2 on.
    B,
}

impl ContainerdSchema {
    /// The schema for the output of `containerd --version`; `None` if the output contains no version.
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

/// The properties of the machine on which the environment depends, besides the configuration.
#[derive(Debug, Clone)]
pub struct Host {
    /// The schema for the installed containerd.
    pub containerd: ContainerdSchema,
    /// The GPU drivers in the image, or why they are unknown.
    pub components: Result<Components, String>,
    /// The registry that holds Microsoft's images in a sovereign cloud.
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

/// The error for a variable that cannot be made from this configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {what}")]
pub struct EnvironmentError {
    /// The name of the variable.
    pub variable: &'static str,
    /// The reason, without the value.
    pub what: String,
}

pub(super) fn refused(variable: &'static str, what: String) -> EnvironmentError {
    EnvironmentError { variable, what }
}

/// The variables for the scripts. `Debug` shows only their names.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<Cow<'static, str>, String>,
    warnings: Vec<String>,
}

impl Environment {
    /// Makes the variables from a configuration.
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

    /// The value of one variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_ref(), value.as_str()))
    }

    /// Missing fields that do not matter to this node.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The environment of the scripts' process: these variables, and inherited variables that can do no harm.
    /// `PATH` gets the directories in which images install programs.
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

/// `PATH` with `/usr/local/bin` and `/opt/bin` appended.
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
