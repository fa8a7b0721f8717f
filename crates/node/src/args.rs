//! The parsed command line.

use std::path::PathBuf;
use std::time::Duration;

/// The parsed command line.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The command, if there is one.
    pub(crate) command: Option<String>,
    /// `--root`.
    pub(crate) root: Option<PathBuf>,
    flags: Vec<(String, String)>,
    /// Words that are neither a command nor a flag.
    pub(crate) rest: Vec<String>,
}

/// A mistake on the command line or in a settings file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("Incorrect Usage: flag provided but not defined: -{0}")]
    Undefined(String),
    #[error("Incorrect Usage: flag needs an argument: -{0}")]
    NoValue(String),
    /// A flag has a value that is not allowed.
    #[error("Incorrect Usage: invalid value \"{1}\" for flag -{0}: {2}")]
    BadValue(String, String, &'static str),
    #[error("settings file {0}: {1}")]
    BadFile(String, String),
}

/// A command of this program. The commands for AKS nodes and `join` exist on Linux only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    #[cfg(unix)]
    Provision,
    #[cfg(unix)]
    ProvisionWait,
    Wait,
    Extension,
    #[cfg(unix)]
    Join,
    #[cfg(unix)]
    Launch,
    #[cfg(unix)]
    Preflight,
    #[cfg(unix)]
    Postmortem,
    Report,
    #[cfg(unix)]
    Customdata,
    #[cfg(unix)]
    CheckHotfix,
    #[cfg(unix)]
    DownloadHotfix,
    /// `version`: prints only the version.
    Version,
    /// `--version`: prints the name of the program and the version.
    ProgramVersion,
    Help,
}

impl Command {
    /// Every command with the words that select it.
    pub(crate) const ALL: &[(&str, Self)] = &[
        #[cfg(unix)]
        ("provision", Self::Provision),
        #[cfg(unix)]
        ("provision-wait", Self::ProvisionWait),
        ("wait", Self::Wait),
        ("extension", Self::Extension),
        #[cfg(unix)]
        ("join", Self::Join),
        #[cfg(unix)]
        ("launch", Self::Launch),
        #[cfg(unix)]
        ("preflight", Self::Preflight),
        #[cfg(unix)]
        ("postmortem", Self::Postmortem),
        ("report", Self::Report),
        #[cfg(unix)]
        ("customdata", Self::Customdata),
        #[cfg(unix)]
        ("check-hotfix", Self::CheckHotfix),
        #[cfg(unix)]
        ("download-hotfix", Self::DownloadHotfix),
        ("version", Self::Version),
        ("--version", Self::ProgramVersion),
        ("help", Self::Help),
        ("--help", Self::Help),
        ("--h", Self::Help),
    ];

    /// The command that a word selects.
    pub(crate) fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == word).map(|(_, command)| *command)
    }

    /// The keys that a settings file may set for a command: its flags, and the exit code.
    pub(crate) fn settings(self) -> Vec<&'static str> {
        let (valued, plain) = self.flags();
        valued.iter().chain(plain).chain(&["exit-code"]).copied().collect()
    }

    /// The flags of a command: flags with a value, and flags without.
    fn flags(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            #[cfg(unix)]
            Self::Provision => (
                &["provision-config", "nbc-cmd", "preflight", "mcr-repository-base"],
                &["dry-run", "reject-v0", "strict-required"],
            ),
            #[cfg(unix)]
            Self::ProvisionWait => (&["timeout", "start-timeout"], &[]),
            #[cfg(unix)]
            Self::Launch => (
                &["preflight", "hostname-timeout", "mcr-repository-base"],
                &["require-config", "reject-v0", "strict-required"],
            ),
            #[cfg(unix)]
            Self::Join => (&["config"], &["repair-containerd"]),
            #[cfg(unix)]
            Self::Customdata => (&["provision-config", "format"], &[]),
            #[cfg(unix)]
            Self::Preflight => (&["only"], &["json"]),
            #[cfg(unix)]
            Self::Postmortem => (&[], &["json"]),
            #[cfg(unix)]
            Self::CheckHotfix | Self::DownloadHotfix => (&[], &[]),
            Self::Wait => (
                &[
                    "sentinel",
                    "failure-sentinel",
                    "timeout",
                    "start-timeout",
                    "settle",
                    "deadline-from",
                    "on-joined-without-sentinel",
                    "watch",
                    "probe",
                    "report",
                    "max-bytes",
                ],
                &["console", "post-commands", "strict", "unsafe"],
            ),
            Self::Extension => (&["handler", "number"], &[]),
            Self::Report => (&[], &["json"]),
            Self::Version | Self::ProgramVersion | Self::Help => (&[], &[]),
        }
    }
}

/// Flags with a value that every command accepts.
const COMMON: &[&str] = &["root", "exit-code", "own-code-base", "code"];

/// The exit codes of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ExitCodes {
    /// The exit code of the failure.
    #[default]
    Propagate,
    /// 0 or 1 only, as upstream.
    Legacy,
}

impl ExitCodes {
    /// Reads the value of `--exit-code`, or of the setting with that name.
    pub(crate) fn read(value: Option<&str>) -> Result<Self, Wrong> {
        match value {
            None | Some("propagate") => Ok(Self::Propagate),
            Some("legacy") => Ok(Self::Legacy),
            Some(value) => {
                let why = "neither propagate nor legacy";
                Err(Wrong::BadValue("exit-code".to_owned(), value.to_owned(), why))
            }
        }
    }

    /// The exit status for a code: a failure never ends the process with 0.
    pub(crate) fn status(self, code: i32) -> u8 {
        match self {
            Self::Propagate => u8::try_from(code).unwrap_or(u8::MAX),
            Self::Legacy => u8::from(code != 0),
        }
    }
}

impl Arguments {
    /// Parses the command line. An error is returned together with the flags that were understood, such as
    /// the place for the result of the mistake (`--root`) and the exit codes of the process (`--exit-code`).
    pub(crate) fn read(
        typed: impl IntoIterator<Item = String>,
    ) -> Result<Self, Box<(Self, Wrong)>> {
        let mut found = Self::default();
        let mut mistake = None;
        let mut typed = typed.into_iter();
        while let Some(word) = typed.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                // After a mistake, only the flags that every command accepts are useful.
                if mistake.is_some() {
                    continue;
                }
                if found.command.is_none() {
                    found.command = Some(word);
                } else {
                    found.rest.push(word);
                }
                continue;
            };
            if matches!(flag, "help" | "h" | "version")
                && found.command.is_none()
                && mistake.is_none()
            {
                found.command = Some(format!("--{flag}"));
                continue;
            }
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (flag.to_owned(), None),
            };
            let (valued, bare) = found.known_command().map_or((&[][..], &[][..]), Command::flags);
            if bare.contains(&name.as_str()) {
                found.flags.push((name, value.unwrap_or_else(|| "true".to_owned())));
            } else if COMMON.contains(&name.as_str()) || valued.contains(&name.as_str()) {
                let Some(value) = value.or_else(|| typed.next()) else {
                    mistake.get_or_insert(Wrong::NoValue(name));
                    continue;
                };
                if name == "root" {
                    found.root = Some(value.into());
                } else {
                    found.flags.push((name, value));
                }
            } else {
                mistake.get_or_insert(Wrong::Undefined(name));
            }
        }
        match mistake {
            None => Ok(found),
            Some(mistake) => Err(Box::new((found, mistake))),
        }
    }

    /// The command, if it exists.
    pub(crate) fn known_command(&self) -> Option<Command> {
        self.command.as_deref().and_then(Command::named)
    }

    /// The value of `--exit-code`.
    pub(crate) fn exit_codes(&self) -> Result<ExitCodes, Wrong> {
        ExitCodes::read(self.value("exit-code"))
    }

    /// The value of a flag; the last value counts.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).last()
    }

    /// All values of a flag.
    pub(crate) fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let name = name.to_owned();
        self.flags.iter().filter(move |(flag, _)| *flag == name).map(|(_, value)| value.as_str())
    }

    /// Whether a flag without a value is set.
    pub(crate) fn given(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value != "false")
    }

    /// The command line of another command with the same settings.
    pub(crate) fn turned_into(&self, command: &str, flags: &[(&str, String)]) -> Self {
        let mut turned = Self { command: Some(command.to_owned()), ..self.clone() };
        turned.flags.extend(flags.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        turned
    }
}

/// A duration in jiff's format, such as `90s`, `1500ms`, `20m` or `1h 30m`; a number without a unit means
/// seconds.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    text.parse::<jiff::SignedDuration>().ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Arguments, Box<(Arguments, Wrong)>> {
        Arguments::read(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_flag_has_its_value_behind_a_sign_or_a_space_and_the_root_stands_anywhere() {
        for words in ["--root /r provision --nbc-cmd=P", "provision --nbc-cmd P --root=/r"] {
            let found = read(words).unwrap();
            assert_eq!(found.command.as_deref(), Some("provision"));
            assert_eq!(found.root.as_deref(), Some(std::path::Path::new("/r")));
            assert_eq!(found.value("nbc-cmd"), Some("P"));
        }
    }

    #[test]
    fn a_flag_that_does_not_exist_is_told_as_aks_node_controller_tells_it() {
        let (found, wrong) = *read("provision --nope --root /r").unwrap_err();
        assert_eq!(wrong.to_string(), "Incorrect Usage: flag provided but not defined: -nope");
        assert_eq!(found.root.as_deref(), Some(std::path::Path::new("/r")));
        let (found, _) = *read("wait --nope provision --exit-code legacy").unwrap_err();
        assert_eq!(found.command.as_deref(), Some("wait"));
        assert_eq!(found.exit_codes(), Ok(ExitCodes::Legacy));
    }

    #[test]
    fn a_failure_never_ends_with_0() {
        let propagated = [0, 211, 255, -1, 256, 512].map(|code| ExitCodes::Propagate.status(code));
        assert_eq!(propagated, [0, 211, 255, 255, 255, 255]);
        assert_eq!([0, 211, 256].map(|code| ExitCodes::Legacy.status(code)), [0, 1, 1]);
    }

    #[test]
    fn times_have_units() {
        let seconds = |text| duration(text).map(|time| time.as_millis());
        assert_eq!(
            ["90", "90s", "1500ms", "20m", "1h 30m", "x", "", "-1", "-1s", "1d"].map(seconds),
            [
                Some(90_000),
                Some(90_000),
                Some(1_500),
                Some(1_200_000),
                Some(5_400_000),
                None,
                None,
                None,
                None,
                None
            ]
        );
    }
}
