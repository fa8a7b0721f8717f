//! Settings: a flag takes precedence over a variable, a variable over the file, the file over the default.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::aks::config::Rules;
use crate::aks::endpoints::Endpoints;
use crate::aks::exit_code;
use crate::args::{Arguments, ExitCodes, Wrong, duration};
use crate::host::linux::store;
use crate::host::paths::Root;
use crate::settings_file::{self, AGENT_KEYS};

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The exit codes of the process.
    pub(crate) exit_codes: ExitCodes,
    /// The first of the agent's own exit codes.
    pub(crate) base: i32,
    /// The exit code for a missing oras, if configured.
    pub(crate) oras: Option<i32>,
    /// The policy of the preflight checks.
    pub(crate) preflight: Policy,
    /// The time limit of the waiter.
    pub(crate) timeout: Duration,
    /// The time limit of the waiter until the first sign of an attempt.
    pub(crate) start_timeout: Duration,
    /// The addresses of the platform.
    pub(crate) endpoints: Endpoints,
    /// How strictly a configuration is validated.
    pub(crate) rules: Rules,
}

/// The policy of the preflight checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The checks do not run.
    Off,
    /// The checks only report.
    Report,
    /// The checks stop an attempt that cannot succeed.
    Enforce,
}

/// The guest agent stops an extension after 90 minutes.
const LONGEST: Duration = Duration::from_mins(85);

impl Settings {
    pub(crate) fn read(arguments: &Arguments, root: &Root) -> Result<Self, Wrong> {
        let text = store::head(&root.settings(), 64 * 1024).unwrap_or_default();
        let file = settings_file::read(&root.settings(), &text, &AGENT_KEYS)?;
        let find = |name: &str| {
            let variable = format!("BRINGUP_NODE_{}", name.to_uppercase().replace('-', "_"));
            arguments
                .value(name)
                .map(str::to_owned)
                .or_else(|| std::env::var(variable).ok())
                .or_else(|| file.get(name).cloned())
        };
        let wrong = |name: &str, value: String, why| Wrong::BadValue(name.to_owned(), value, why);
        let time = |name: &str, default: Duration| match find(name) {
            Some(value) => duration(&value).ok_or_else(|| wrong(name, value, "not a duration")),
            None => Ok(default),
        };
        let switch = |name: &str| match find(name).as_deref() {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(value) => Err(wrong(name, value.to_owned(), "neither true nor false")),
        };
        let cse = std::env::var("CSE_TIMEOUT").ok().and_then(|value| value.parse::<u64>().ok());
        let cse = cse.filter(|seconds| (1..=21_600).contains(seconds)).unwrap_or(900);
        Ok(Self {
            exit_codes: ExitCodes::read(find("exit-code").as_deref())?,
            base: match find("own-code-base") {
                None => exit_code::BASE,
                Some(value) => {
                    value.parse().ok().filter(|base| (1..=250).contains(base)).ok_or_else(|| {
                        wrong("own-code-base", value, "not a number from 1 to 250")
                    })?
                }
            },
            oras: oras(arguments, &file)?,
            preflight: match find("preflight").as_deref() {
                None | Some("enforce") => Policy::Enforce,
                Some("report") => Policy::Report,
                Some("off") => Policy::Off,
                Some(value) => {
                    let why = "none of off, report, enforce";
                    return Err(wrong("preflight", value.to_owned(), why));
                }
            },
            timeout: time("timeout", Duration::from_secs(cse + 1_500).min(LONGEST))?,
            start_timeout: time("start-timeout", Duration::from_mins(10))?,
            endpoints: Endpoints::read(&file, root)
                .map_err(|value| wrong("endpoints", value, "not addresses with ports"))?,
            rules: Rules {
                reject_v0: switch("reject-v0")?,
                strict_required: switch("strict-required")?,
                mcr_repository_base: find("mcr-repository-base").filter(|base| !base.is_empty()),
            },
        })
    }
}

/// `--code NAME=N`, else the section `[codes]` of the file. Only oras has a name defined by this project.
fn oras(arguments: &Arguments, file: &BTreeMap<String, String>) -> Result<Option<i32>, Wrong> {
    let mut found = file.get(&format!("codes.{}", exit_code::ORAS)).cloned();
    for value in arguments.values("code") {
        match value.split_once('=') {
            Some((name, number)) if name == exit_code::ORAS => found = Some(number.to_owned()),
            _ => {
                let why = "not ERR_ORAS_BINARY_NOT_FOUND=N";
                return Err(Wrong::BadValue("code".to_owned(), value.to_owned(), why));
            }
        }
    }
    let Some(value) = found else { return Ok(None) };
    match value.parse() {
        Ok(number @ 1..=255) => Ok(Some(number)),
        _ => Err(Wrong::BadValue("code".to_owned(), value, "not a number from 1 to 255")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_beats_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(Some(folder.path().to_owned()));
        store::write(&root.settings(), b"own-code-base = 100\nexit-code = \"legacy\"").unwrap();
        let typed = ["provision", "--own-code-base=50"].map(str::to_owned);
        let settings = Settings::read(&Arguments::read(typed).unwrap(), &root).unwrap();
        assert_eq!((settings.base, settings.exit_codes), (50, ExitCodes::Legacy));
    }
}
