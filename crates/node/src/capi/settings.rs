//! The settings of `wait`: a flag takes precedence over a variable, a variable over wait.toml, the file over
//! the default.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::verdict::{JoinedPolicy, Limits};
use crate::args::{Arguments, Command, ExitCodes, Wrong, duration};
use crate::host::system::{self, Owner, Places, files};
use crate::settings_file;

/// The guest agent stops an extension after 90 minutes; a longer wait could never report its result.
const LONGEST: Duration = Duration::from_mins(85);

/// The longest summary without its evidence, in bytes.
const FEWEST_BYTES: usize = 600;

/// More than the handler of any extension stores.
const MOST_BYTES: usize = 64 * 1024;

#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Success sentinels; one is enough.
    pub(crate) sentinels: Vec<PathBuf>,
    /// The path of the failure sentinel.
    pub(crate) failure: PathBuf,
    /// The time limits.
    pub(crate) limits: Limits,
    /// The event from which the limit counts.
    pub(crate) deadline_from: DeadlineFrom,
    /// What to do when the node joined and the bootstrap did not write the sentinel.
    pub(crate) joined: JoinedPolicy,
    /// The program that bootstraps.
    pub(crate) watch: Watched,
    /// Whether to query kubelet's health.
    pub(crate) probe: bool,
    /// Whether to print the whole report too.
    pub(crate) print_report: bool,
    /// Whether to write the summary to the console too.
    pub(crate) console: bool,
    /// Whether a node that joined without a sentinel ends with 3 instead of 0.
    pub(crate) strict: bool,
    /// The exit codes of the process.
    pub(crate) exit_codes: ExitCodes,
    /// The longest summary line in bytes, with its line break.
    pub(crate) max_bytes: usize,
}

/// The event from which the limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadlineFrom {
    /// From the first start of this wait.
    Extension,
    /// From the start of the machine.
    Boot,
    /// From the first sign of the bootstrap.
    BootstrapStart,
}

/// The bootstrap program, whose end can be observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Watched {
    CloudInit,
    CloudbaseInit,
    /// A systemd unit.
    Unit(String),
    /// The scripts of AKS.
    Aks,
}

impl Watched {
    fn read(value: &str) -> Option<Self> {
        Some(match value {
            "cloud-init" => Self::CloudInit,
            "cloudbase-init" => Self::CloudbaseInit,
            "aks" => Self::Aks,
            other => {
                let name = other.strip_prefix("unit=").filter(|name| is_unit_name(name))?;
                let suffix = if name.contains('.') { "" } else { ".service" };
                Self::Unit(format!("{name}{suffix}"))
            }
        })
    }

    /// The value as typed on the command line.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::CloudInit => "cloud-init".to_owned(),
            Self::CloudbaseInit => "cloudbase-init".to_owned(),
            Self::Unit(name) => format!("unit={name}"),
            Self::Aks => "aks".to_owned(),
        }
    }
}

/// The name becomes an argument of a program: it must not begin with a dash or contain shell characters.
fn is_unit_name(name: &str) -> bool {
    !name.starts_with('-')
        && (1..=200).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@._-\\:".contains(&byte))
}

/// The sources of the settings.
struct Given<'a> {
    arguments: &'a Arguments,
    file: BTreeMap<String, String>,
}

impl Given<'_> {
    fn find(&self, name: &str) -> Option<String> {
        let variable = || std::env::var(variable(name)).ok();
        let typed = self.arguments.value(name).map(str::to_owned);
        typed.or_else(variable).or_else(|| self.file.get(name).cloned())
    }

    fn time(&self, name: &str, default: Duration) -> Result<Duration, Wrong> {
        let Some(value) = self.find(name) else { return Ok(default) };
        duration(&value).ok_or_else(|| wrong(name, &value, "not a duration"))
    }

    fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
        why: &'static str,
    ) -> Result<T, Wrong> {
        let Some(value) = self.find(name) else { return Ok(words[0].1) };
        let found = words.iter().find(|(word, _)| *word == value);
        found.map(|(_, meant)| *meant).ok_or_else(|| wrong(name, &value, why))
    }

    fn truth(&self, name: &str) -> Result<bool, Wrong> {
        let words = [("false", false), ("true", true), ("0", false), ("1", true)];
        self.word(name, &words, "neither true nor false")
    }

    /// A list: a repeated flag, a variable with separators, or an array in the file.
    fn paths(&self, name: &str) -> Vec<PathBuf> {
        let typed: Vec<PathBuf> = self.arguments.values(name).map(PathBuf::from).collect();
        if !typed.is_empty() {
            return typed;
        }
        if let Some(value) = std::env::var_os(variable(name)) {
            return std::env::split_paths(&value).collect();
        }
        let Some(value) = self.file.get(name) else { return Vec::new() };
        serde_json::from_str(value).unwrap_or_else(|_| vec![value.into()])
    }
}

fn variable(name: &str) -> String {
    format!("BRINGUP_NODE_WAIT_{}", name.to_uppercase().replace('-', "_"))
}

fn wrong(name: &str, value: &str, why: &'static str) -> Wrong {
    Wrong::BadValue(name.to_owned(), value.to_owned(), why)
}

impl Settings {
    /// Reads the settings.
    pub(crate) fn read(
        arguments: &Arguments,
        places: &Places,
        owner: &Owner,
    ) -> Result<Self, Wrong> {
        if let Some(word) = arguments.rest.first() {
            return Err(wrong("wait", word, "it takes no arguments"));
        }
        // On Windows, any user may write to the folder of this file.
        if places.settings.metadata().is_ok_and(|data| !owner.wrote(&places.settings, &data)) {
            let path = places.told(&places.settings);
            return Err(wrong("settings", &path, "the file belongs to another user"));
        }
        let text = files::head(&places.settings, 64 * 1024).unwrap_or_default();
        let file = settings_file::read(&places.settings, &text, &Command::Wait.settings())?;
        let given = Given { arguments, file };
        let mut sentinels = given.paths("sentinel");
        if sentinels.is_empty() {
            sentinels.push(places.sentinel.clone());
        }
        let failure = given.paths("failure-sentinel").pop();
        let failure =
            failure.unwrap_or_else(|| sentinels[0].with_file_name("bootstrap-failed.json"));
        let from = [
            ("extension", DeadlineFrom::Extension),
            ("boot", DeadlineFrom::Boot),
            ("bootstrap-start", DeadlineFrom::BootstrapStart),
        ];
        let joined = [("warn", JoinedPolicy::Warn), ("fail", JoinedPolicy::Fail)];
        Ok(Self {
            failure,
            limits: limits(&given)?,
            deadline_from: given.word(
                "deadline-from",
                &from,
                "none of extension, boot, bootstrap-start",
            )?,
            joined: given.word("on-joined-without-sentinel", &joined, "neither warn nor fail")?,
            watch: watched(&given)?,
            probe: given.word("probe", &[("", false), ("kubelet", true)], "not kubelet")?,
            print_report: given.word("report", &[("", false), ("json", true)], "not json")?,
            console: given.truth("console")?,
            strict: given.truth("strict")?,
            exit_codes: ExitCodes::read(given.find("exit-code").as_deref())?,
            max_bytes: max_bytes(&given)?,
            sentinels,
        })
    }
}

fn limits(given: &Given<'_>) -> Result<Limits, Wrong> {
    let limits = Limits {
        timeout: given.time("timeout", Duration::from_mins(20))?,
        start_timeout: given.time("start-timeout", Duration::from_mins(5))?,
        settle: given.time("settle", Duration::from_secs(5))?,
        post_commands: given.truth("post-commands")?,
    };
    let too_long = limits.timeout.max(limits.start_timeout) > LONGEST;
    if too_long && !given.truth("unsafe")? {
        let name = if limits.timeout > LONGEST { "timeout" } else { "start-timeout" };
        let why =
            "more than 85m: the guest agent ends an extension after 90 min; --unsafe allows it";
        return Err(wrong(name, &given.find(name).unwrap_or_default(), why));
    }
    Ok(limits)
}

fn watched(given: &Given<'_>) -> Result<Watched, Wrong> {
    let Some(value) = given.find("watch") else { return Ok(system::usual_watch()) };
    let watched = Watched::read(&value).ok_or_else(|| {
        wrong("watch", &value, "none of cloud-init, cloudbase-init, unit=NAME, aks")
    })?;
    if system::can_watch(&watched) {
        Ok(watched)
    } else {
        Err(wrong("watch", &value, "there is none on this system"))
    }
}

fn max_bytes(given: &Given<'_>) -> Result<usize, Wrong> {
    let Some(value) = given.find("max-bytes") else { return Ok(3_500) };
    let number = value.parse().ok().filter(|bytes| (FEWEST_BYTES..=MOST_BYTES).contains(bytes));
    number.ok_or_else(|| wrong("max-bytes", &value, "not a number from 600 to 65536"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::paths::Root;

    fn read(words: &str, file: &str) -> Result<Settings, Wrong> {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(Some(folder.path().to_owned()));
        let places = Places::under(&root);
        std::fs::create_dir_all(places.settings.parent().unwrap()).unwrap();
        std::fs::write(&places.settings, file).unwrap();
        let typed = words.split_whitespace().map(str::to_owned);
        let typed = ["wait".to_owned()].into_iter().chain(typed);
        Settings::read(&Arguments::read(typed).unwrap(), &places, &Owner::of(&root))
    }

    #[test]
    fn the_defaults_are_those_of_cluster_api() {
        let settings = read("", "").unwrap();
        assert!(settings.sentinels[0].ends_with("run/cluster-api/bootstrap-success.complete"));
        assert!(settings.failure.ends_with("run/cluster-api/bootstrap-failed.json"));
        assert_eq!(settings.limits.timeout, Duration::from_mins(20));
        assert_eq!(settings.limits.start_timeout, Duration::from_mins(5));
        assert_eq!(settings.limits.settle, Duration::from_secs(5));
        assert_eq!((settings.max_bytes, settings.joined), (3_500, JoinedPolicy::Warn));
    }

    #[test]
    fn a_flag_beats_the_file_and_the_file_beats_the_default() {
        let file =
            "timeout = \"8m\"\nsettle = \"2s\"\nsentinel = [\"/a\", \"/b\"]\nstrict = true\n";
        let settings = read("--timeout 90s", file).unwrap();
        assert_eq!(settings.limits.timeout, Duration::from_secs(90));
        assert_eq!(settings.limits.settle, Duration::from_secs(2));
        assert_eq!(settings.sentinels, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(settings.failure, PathBuf::from("/bootstrap-failed.json"));
        assert!(settings.strict);
        let quoted = read("", r"sentinel = 'C:\run\x'").unwrap();
        assert_eq!(quoted.sentinels, [PathBuf::from(r"C:\run\x")]);
    }

    #[test]
    fn more_than_85_minutes_must_be_wanted() {
        assert!(read("--timeout 85m", "").is_ok());
        let refused = read("--timeout 86m", "").unwrap_err().to_string();
        assert!(refused.contains("85m") && refused.contains("--unsafe"), "{refused}");
        assert!(read("--timeout 86m --unsafe", "").is_ok());
        assert!(read("--start-timeout 86m", "").is_err());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for words in [
            "--timeout x",
            "--watch nothing",
            "--watch unit=--help",
            "--watch unit=",
            "--deadline-from x",
            "--probe dns",
            "--report xml",
            "--max-bytes 10",
            "--on-joined-without-sentinel x",
            "more",
        ] {
            assert!(read(words, "").is_err(), "{words}");
        }
    }

    #[test]
    fn a_unit_needs_no_suffix() {
        assert_eq!(
            Watched::read("unit=kubeadm"),
            Some(Watched::Unit("kubeadm.service".to_owned()))
        );
        assert_eq!(Watched::read("unit=a.target"), Some(Watched::Unit("a.target".to_owned())));
    }
}
