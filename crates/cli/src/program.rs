//! The name by which the user runs the program.

use std::ffi::OsStr;
use std::path::Path;

use clap::builder::StyledStr;

/// How the program was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// As `bringup`.
    Bringup,
    /// As a plugin: kubectl runs `kubectl-bringup` when the user types `kubectl bringup`.
    Plugin,
}

impl Program {
    /// Determined by the name of the program file.
    pub(crate) fn of(started: Option<&OsStr>) -> Self {
        match started.map(Path::new).and_then(Path::file_stem).and_then(OsStr::to_str) {
            Some("kubectl-bringup" | "kubectl_bringup") => Self::Plugin,
            _ => Self::Bringup,
        }
    }

    /// The words that the user types.
    pub(crate) fn typed(self) -> &'static str {
        match self {
            Self::Bringup => "bringup",
            Self::Plugin => "kubectl bringup",
        }
    }

    /// The commands, with this name in usage and examples.
    pub(crate) fn named(self, commands: clap::Command) -> clap::Command {
        match self {
            Self::Bringup => commands,
            Self::Plugin => commands.bin_name(self.typed()).mut_subcommands(|command| {
                let examples = command.get_after_help().map(StyledStr::to_string);
                let examples = examples.unwrap_or_default();
                command.after_help(examples.replace("  bringup ", "  kubectl bringup "))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_starts_it_by_another_name() {
        let of = |path: &str| Program::of(Some(OsStr::new(path)));
        assert_eq!(of("/usr/local/bin/kubectl-bringup"), Program::Plugin);
        assert_eq!(of("kubectl-bringup.exe"), Program::Plugin);
        assert_eq!(of("target/debug/bringup"), Program::Bringup);
        assert_eq!(Program::of(None), Program::Bringup);
    }
}
