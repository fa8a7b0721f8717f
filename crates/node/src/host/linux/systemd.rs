//! The state of systemd units, from systemd's own programs. The programs are found in PATH, under the root,
//! and run with a time limit.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::host::linux::subprocess::ask;
use crate::host::paths::Root;

/// The longest wait for a program.
const LIMIT: Duration = Duration::from_secs(2);

/// The state of a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    /// `active`, `activating`, `failed`, …
    pub(crate) active: String,
    sub: String,
    result: String,
    /// How often systemd restarted the unit.
    pub(crate) restarts: Option<u32>,
    began: bool,
}

/// The activity of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// The unit has not been started.
    Idle,
    /// The unit runs, or will be restarted.
    Running,
    /// The unit ended successfully.
    Done,
    /// The unit failed.
    Failed,
}

impl Unit {
    /// Queries systemd.
    pub(crate) fn ask(root: &Root, name: &str) -> Option<Self> {
        let wanted =
            "--property=ActiveState,SubState,Result,NRestarts,ExecMainStartTimestampMonotonic";
        let answer = answer(root, "systemctl", &["show", "--no-pager", wanted, "--", name])?;
        Some(Self::read(&answer)).filter(|unit| !unit.active.is_empty())
    }

    fn read(answer: &str) -> Self {
        let value = |name: &str| {
            let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().trim().to_owned()
        };
        Self {
            active: value("ActiveState"),
            sub: value("SubState"),
            result: value("Result"),
            restarts: value("NRestarts").parse().ok(),
            began: !matches!(value("ExecMainStartTimestampMonotonic").as_str(), "" | "0"),
        }
    }

    pub(crate) fn doing(&self) -> Doing {
        match (self.active.as_str(), self.sub.as_str()) {
            ("failed", _) => Doing::Failed,
            ("active", "exited") => Doing::Done,
            ("inactive", _) if !matches!(self.result.as_str(), "" | "success") => Doing::Failed,
            ("inactive", _) if self.began => Doing::Done,
            ("inactive", _) => Doing::Idle,
            _ => Doing::Running,
        }
    }

    /// The failure result of the unit, in systemd's words.
    pub(crate) fn result(&self) -> &str {
        &self.result
    }
}

/// The last lines that a unit logged in this boot.
pub(crate) fn journal(root: &Root, unit: &str, lines: u32) -> Option<String> {
    let lines = format!("--lines={lines}");
    let unit = format!("--unit={unit}");
    answer(root, "journalctl", &["--no-pager", "--boot", "--output=cat", &lines, &unit])
}

fn answer(root: &Root, program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(find(root, program)?);
    ask(command.args(arguments).env("LC_ALL", "C"), LIMIT).ok()
}

fn find(root: &Root, program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut there = std::env::split_paths(&path).map(|folder| root.at(folder).join(program));
    there.find(|path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_unit_does_follows_from_its_states() {
        let doing = |active: &str, sub: &str, result: &str, began: bool| {
            let unit = Unit {
                active: active.to_owned(),
                sub: sub.to_owned(),
                result: result.to_owned(),
                restarts: None,
                began,
            };
            unit.doing()
        };
        assert_eq!(doing("inactive", "dead", "success", false), Doing::Idle);
        assert_eq!(doing("activating", "start", "success", true), Doing::Running);
        assert_eq!(doing("activating", "auto-restart", "exit-code", true), Doing::Running);
        assert_eq!(doing("inactive", "dead", "success", true), Doing::Done);
        assert_eq!(doing("active", "exited", "success", true), Doing::Done);
        assert_eq!(doing("failed", "failed", "exit-code", true), Doing::Failed);
        assert_eq!(doing("inactive", "dead", "timeout", true), Doing::Failed);
    }

    #[test]
    fn an_answer_of_systemd_is_read() {
        let unit = Unit::read(
            "ActiveState=failed\nSubState=failed\nResult=exit-code\nNRestarts=3\nExecMainStartTimestampMonotonic=42\n",
        );
        assert_eq!(
            (unit.doing(), unit.restarts, unit.result()),
            (Doing::Failed, Some(3), "exit-code")
        );
    }
}
