//! What was typed.

use std::path::PathBuf;
use std::time::Duration;

/// What was typed, sorted.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The command, if there is one.
    pub(crate) command: Option<String>,
    /// `--root`.
    pub(crate) root: Option<PathBuf>,
    flags: Vec<(String, String)>,
    /// What is neither a command nor a flag.
    pub(crate) rest: Vec<String>,
}

/// What was typed and cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Wrong {
    /// A flag that the command does not have.
    #[error("Incorrect Usage: flag provided but not defined: -{0}")]
    Undefined(String),
    /// A flag without its value.
    #[error("Incorrect Usage: flag needs an argument: -{0}")]
    NoValue(String),
    /// A value that does not fit.
    #[error("Incorrect Usage: invalid value \"{1}\" for flag -{0}: {2}")]
    BadValue(String, String, &'static str),
}

/// Flags with a value that every command takes.
const COMMON: &[&str] = &["root", "exit-code", "own-code-base", "code"];

/// The flags of a command: with a value, and without.
fn flags_of(command: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match command {
        "provision" => (
            &["provision-config", "nbc-cmd", "preflight", "mcr-repository-base"],
            &["dry-run", "reject-v0", "strict-required"],
        ),
        "provision-wait" => (&["timeout", "start-timeout"], &[]),
        "launch" => (
            &["preflight", "hostname-timeout", "mcr-repository-base"],
            &["require-config", "reject-v0", "strict-required"],
        ),
        "join" => (&["config"], &["repair-containerd"]),
        "customdata" => (&["provision-config", "format"], &[]),
        "preflight" => (&["only"], &["json"]),
        "wait" => (
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
        "extension" => (&["handler", "number"], &[]),
        "report" | "postmortem" => (&[], &["json"]),
        _ => (&[], &[]),
    }
}

impl Arguments {
    /// Sorts what was typed. On an error, what was sorted so far comes with it.
    pub(crate) fn read(
        typed: impl IntoIterator<Item = String>,
    ) -> Result<Self, Box<(Self, Wrong)>> {
        let mut found = Self::default();
        let mut typed = typed.into_iter();
        while let Some(word) = typed.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                if found.command.is_none() {
                    found.command = Some(word);
                } else {
                    found.rest.push(word);
                }
                continue;
            };
            if matches!(flag, "help" | "h" | "version") && found.command.is_none() {
                found.command = Some(format!("--{flag}"));
                continue;
            }
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (flag.to_owned(), None),
            };
            let (valued, bare) = flags_of(found.command.as_deref().unwrap_or_default());
            if bare.contains(&name.as_str()) {
                found.flags.push((name, value.unwrap_or_else(|| "true".to_owned())));
            } else if COMMON.contains(&name.as_str()) || valued.contains(&name.as_str()) {
                let Some(value) = value.or_else(|| typed.next()) else {
                    return Err(Box::new((found, Wrong::NoValue(name))));
                };
                if name == "root" {
                    found.root = Some(value.into());
                } else {
                    found.flags.push((name, value));
                }
            } else {
                // Where the results of this mistake go is still read.
                let mut rest = typed.skip_while(|word| word != "--root");
                found.root = found.root.or_else(|| rest.nth(1).map(PathBuf::from));
                return Err(Box::new((found, Wrong::Undefined(name))));
            }
        }
        Ok(found)
    }

    /// The value of a flag; the last one counts.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).last()
    }

    /// All values of a flag.
    pub(crate) fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let name = name.to_owned();
        self.flags.iter().filter(move |(flag, _)| *flag == name).map(|(_, value)| value.as_str())
    }

    /// Whether a flag without a value was given.
    pub(crate) fn given(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value != "false")
    }

    /// A command made by another one, with the same settings.
    pub(crate) fn turned_into(&self, command: &str, flags: &[(&str, String)]) -> Self {
        let mut turned = Self { command: Some(command.to_owned()), ..self.clone() };
        turned.flags.extend(flags.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        turned
    }
}

/// `90`, `90s`, `1500ms`, `20m`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => match text.strip_suffix('m') {
            Some(number) => (number, 60_000),
            None => (text.strip_suffix('s').unwrap_or(text), 1_000),
        },
    };
    number.parse::<u64>().ok()?.checked_mul(unit).map(Duration::from_millis)
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
    }

    #[test]
    fn times_have_units() {
        let seconds = |text| duration(text).map(|time| time.as_millis());
        assert_eq!(
            ["90", "90s", "1500ms", "20m", "x", "-1"].map(seconds),
            [Some(90_000), Some(90_000), Some(1_500), Some(1_200_000), None, None]
        );
    }
}
