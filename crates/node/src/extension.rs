//! `extension`: this program as a VM extension of its own. The guest agent calls five commands; `enable`
//! starts a process that waits for the bootstrap like `wait`, and returns.
//!
//! ```text
//! guest agent ─▶ enable ─▶ guard ─▶ wait ─▶ N.status ─▶ guest agent ─▶ Azure
//!                  │         └ restarts the waiter when it is killed
//!                  └ state.json: number of the settings, start, result
//! ```
//!
//! [`decision`], [`settings`] and [`status`] decide and use neither files nor processes; [`linux`] and
//! [`windows`] start and stop processes; [`commands`] and [`waiter`] combine them.

mod commands;
mod decision;
pub(crate) mod exit;
pub(crate) mod guard;
mod handler;
mod locks;
mod log;
mod protected;
pub(crate) mod record;
mod settings;
mod status;
mod waiter;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::handler::Handler;
use self::log::Log;
use crate::args::Arguments;
use crate::host::paths::Root;
use crate::host::system::{Places, background};
use crate::output;

/// The folders of the installed extension, and its log.
#[derive(Debug)]
pub(crate) struct Installation<'a> {
    pub(crate) root: &'a Root,
    /// The folder for the state of the extension.
    pub(crate) folder: PathBuf,
    pub(crate) handler: PathBuf,
    pub(crate) log: Log,
}

/// The roles of background processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Restarts the waiter when it is killed.
    Guard,
    /// Waits for the bootstrap.
    Wait,
}

impl Role {
    pub(crate) const ALL: [Self; 2] = [Self::Guard, Self::Wait];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Wait => "wait",
        }
    }
}

/// Runs the command that was typed.
pub(crate) fn run(arguments: &Arguments, root: &Root) -> u8 {
    let handler = Handler::folder(arguments);
    let log = Log::of(&handler);
    let installation = Installation { root, folder: Places::under(root).extension, handler, log };
    let [command] = arguments.rest.as_slice() else { return wrong() };
    let number = arguments.value("number").and_then(|number| number.parse().ok());
    let done = catch_unwind(AssertUnwindSafe(|| match (command.as_str(), number) {
        ("install", None) => commands::install(&installation),
        ("enable", None) => commands::enable(&installation),
        ("update", None) => commands::update(&installation),
        ("disable", None) => commands::disable(&installation),
        ("uninstall", None) => commands::uninstall(&installation),
        #[cfg(unix)]
        ("detach", Some(number)) => background::detach(&installation, number),
        ("guard", Some(number)) => guard::run(&installation, number),
        ("wait", Some(number)) => waiter::run(&installation, number),
        #[cfg(windows)]
        ("service", None) => background::serve(&installation),
        _ => wrong(),
    }));
    // Removal must succeed, whatever else fails in this program.
    let always = matches!(command.as_str(), "update" | "disable" | "uninstall");
    done.unwrap_or(if always { exit::DONE } else { exit::INTERNAL })
}

fn wrong() -> u8 {
    output::remark("Usage: bringup-node extension install|enable|update|disable|uninstall\n");
    exit::USAGE
}

impl Installation<'_> {
    /// The command line that makes this program run another command for the same handler.
    pub(crate) fn words(&self, command: &str, number: u64) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(root) = self.root.directory() {
            words.extend(["--root".into(), root.into()]);
        }
        words.extend(["extension".into(), command.into(), "--handler".into()]);
        words.extend([self.handler.clone().into(), "--number".into(), number.to_string().into()]);
        words
    }
}

/// A background process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) role: Role,
    pub(crate) number: u64,
    pub(crate) handler: PathBuf,
}

impl Running {
    /// Parses the command line of a process.
    pub(crate) fn read(words: Vec<String>, root: Option<&Path>) -> Option<Self> {
        let typed = Arguments::read(words).ok()?;
        let ours = typed.command.as_deref() == Some("extension") && typed.root.as_deref() == root;
        let role = Role::ALL.into_iter().find(|role| typed.rest == [role.word()]);
        Some(Self {
            role: role.filter(|_| ours)?,
            number: typed.value("number")?.parse().ok()?,
            handler: typed.value("handler")?.into(),
        })
    }
}

/// A duration that tests can shorten; a release cannot.
fn lasting(usual: Duration) -> Duration {
    #[cfg(debug_assertions)]
    if let Some(given) = std::env::var_os("BRINGUP_NODE_TEST_PAUSE") {
        let given = given.to_string_lossy().parse().map(Duration::from_millis);
        return given.map_or(usual, |given| given.min(usual));
    }
    usual
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_recognised_by_the_words_it_was_started_with() {
        let root = Root::new(Some("/r".into()));
        let (folder, handler) = (PathBuf::new(), PathBuf::from("/a b/h-1"));
        let installation =
            Installation { root: &root, folder, handler: handler.clone(), log: Log::none() };
        let words: Vec<String> = installation
            .words("wait", 7)
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let running = Running { role: Role::Wait, number: 7, handler };
        assert_eq!(Running::read(words.clone(), Some(Path::new("/r"))), Some(running));
        assert_eq!(Running::read(words.clone(), None), None);
        assert_eq!(Running::read(words[..3].to_vec(), Some(Path::new("/r"))), None);
    }
}
