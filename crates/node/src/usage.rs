//! What is printed about the commands themselves: help, version, and what is wrong with a command.

use std::ffi::OsStr;
use std::path::Path;

use crate::output;

/// What a wrong command ends with.
pub(crate) const EXIT: u8 = 64;

#[cfg(unix)]
const COMMANDS: &str = "\
  provision --provision-config PATH | --nbc-cmd PATH [--dry-run] [--preflight off|report|enforce]
            [--reject-v0] [--strict-required] [--mcr-repository-base REGISTRY]
  provision-wait [--timeout TIME] [--start-timeout TIME]
  wait [--sentinel PATH]... [--timeout TIME] [--watch cloud-init|unit=NAME|aks] (docs/node-wait.md)
  extension install|enable|update|disable|uninstall (docs/vm-extension.md)
  join --config PATH (docs/node-join.md)
  launch [--require-config] [--hostname-timeout TIME] [--preflight off|report|enforce]
         [--reject-v0] [--strict-required] [--mcr-repository-base REGISTRY]
  preflight [--json] [--only oras]
  postmortem
  report [--json]
  customdata FILE [--format boothook|cloud-config|ignition]
  check-hotfix, download-hotfix
  version, help

Every command takes
  --root DIR                            built-in paths are under DIR
  --exit-code propagate|legacy          legacy ends with 0 or 1 only

Commands for AKS nodes also take
  --own-code-base N                     where the agent's own codes begin (244)
  --code ERR_ORAS_BINARY_NOT_FOUND=N    the number of this name (232; 250 where 232 is taken)
";

#[cfg(windows)]
const COMMANDS: &str = "\
  wait [--sentinel PATH]... [--timeout TIME] [--watch cloudbase-init|aks] (docs/node-wait.md)
  extension install|enable|update|disable|uninstall (docs/vm-extension.md)
  report [--json]
  version, help

Every command takes
  --root DIR                      built-in paths are under DIR
  --exit-code propagate|legacy    legacy ends with 0 or 1 only
";

/// By which name the program was started.
#[derive(Debug)]
pub(crate) struct Program(String);

impl Program {
    /// The name of the file that was started.
    pub(crate) fn of(started: &OsStr) -> Self {
        let name = Path::new(started).file_name().unwrap_or(OsStr::new("bringup-node"));
        Self(name.to_string_lossy().into_owned())
    }
}

fn text(program: &Program) -> String {
    format!("Usage: {} COMMAND [FLAGS]\n\n{COMMANDS}", program.0)
}

/// Prints what is wrong with a command, and how commands look.
pub(crate) fn remark(program: &Program, why: &str) {
    output::remark(&format!("{why}\n{}", text(program)));
}

pub(crate) fn help(program: &Program) -> u8 {
    output::answer(&text(program));
    0
}

/// The version: an image sets its own date, `YYYYMM.DD.PATCH`, when it builds this.
pub(crate) const VERSION: &str = match option_env!("BRINGUP_NODE_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

pub(crate) fn version(program: Option<&Program>) -> u8 {
    match program {
        Some(program) => output::answer(&format!("{} version {VERSION}\n", program.0)),
        None => output::answer(&format!("{VERSION}\n")),
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};

    #[test]
    fn every_command_and_flag_in_the_help_exists() {
        let (commands, common) = COMMANDS.split_once("\n\n").unwrap();
        let mut helped = Vec::new();
        for line in commands.lines() {
            if line.starts_with("   ") {
                assert!(!helped.is_empty(), "{line}");
            } else if line.contains("[-") || line.contains(" --") || line.contains('|') {
                helped.push(line.split_whitespace().next().unwrap());
            } else {
                let words = line.split(['(', '[']).next().unwrap();
                helped.extend(words.split([',', ' ']).filter(|word| !word.is_empty()));
            }
            for flag in flags(line) {
                let typed = [*helped.last().unwrap(), flag, "x"].map(str::to_owned);
                assert!(Arguments::read(typed).is_ok(), "{line}: {flag}");
            }
        }
        for (name, command) in Command::ALL.iter().filter(|(name, _)| !name.starts_with('-')) {
            assert!(helped.contains(name), "the help does not mention {name}");
            for flag in flags(common) {
                let typed = [*name, flag, "x"].map(str::to_owned);
                assert!(Arguments::read(typed).is_ok(), "{command:?}: {flag}");
            }
        }
        for name in helped {
            assert!(Command::named(name).is_some(), "{name} is in the help and does not exist");
        }
    }

    fn flags(text: &str) -> Vec<&str> {
        let words = text.split_whitespace().map(|word| word.trim_matches(['[', ']', '.']));
        words.filter(|word| word.starts_with("--")).collect()
    }
}
