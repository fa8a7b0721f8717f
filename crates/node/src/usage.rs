//! The texts about the commands themselves: help, version, and mistakes on the command line.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use crate::output;

/// The exit code for a mistake on the command line.
pub(crate) const EXIT: u8 = 64;

const ABOUT: &str = "Bootstrap a node, wait for its bootstrap, and explain why it failed.";

#[cfg(unix)]
const COMMANDS: &str = "\
  provision --provision-config PATH | --nbc-cmd PATH
            [--dry-run] [--preflight off|report|enforce] [--reject-v0]
            [--strict-required] [--mcr-repository-base REGISTRY]
      Run the bootstrap scripts of an AKS node (docs/node-agent.md).
  provision-wait [--timeout TIME] [--start-timeout TIME]
      Wait for the result of provision and print it.
  wait [--sentinel PATH]... [--timeout TIME] [--watch cloud-init|unit=NAME|aks]
      Wait for the bootstrap of a Cluster API Machine (docs/node-wait.md).
  extension install|enable|update|disable|uninstall
      Run wait as a VM extension (docs/vm-extension.md).
  join --config PATH
      Install the node components and join a cluster (docs/node-join.md).
  launch [--require-config] [--hostname-timeout TIME]
         [--preflight off|report|enforce] [--reject-v0] [--strict-required]
         [--mcr-repository-base REGISTRY]
      Wait for the host name, then run provision with the delivered files.
  preflight [--json] [--only oras]
      Check what the bootstrap scripts need; change nothing.
  postmortem
      Diagnose the last provision, and store and print a report.
  report [--json]
      Print the newest report of provision, join or wait.
  customdata FILE [--format boothook|cloud-config|ignition]
      Print the CustomData that delivers a configuration.
  check-hotfix
      Do nothing; exists for compatibility with aks-node-controller.
  download-hotfix
      Install a newer bringup-node, if the node's hotfix file names one.
  version, help

Every command takes
  --root DIR                            prefix of all built-in paths
  --exit-code propagate|legacy          legacy: the exit code is only 0 or 1

Commands for AKS nodes also take
  --own-code-base N                     lowest exit code of the agent (244)
  --code ERR_ORAS_BINARY_NOT_FOUND=N    exit code of this error (232; 250 where
                                        232 has another meaning)
";

#[cfg(windows)]
const COMMANDS: &str = "\
  wait [--sentinel PATH]... [--timeout TIME] [--watch cloudbase-init|aks]
      Wait for the bootstrap of a Cluster API Machine (docs/node-wait.md).
  extension install|enable|update|disable|uninstall
      Run wait as a VM extension (docs/vm-extension.md).
  report [--json]
      Print the newest report of wait.
  version, help

Every command takes
  --root DIR                      prefix of all built-in paths
  --exit-code propagate|legacy    legacy: the exit code is only 0 or 1
";

/// Examples; each line follows the name of the program.
#[cfg(unix)]
const EXAMPLES: &[&str] = &[
    "preflight",
    "provision --provision-config config.json",
    "provision-wait --timeout 14m",
    "wait --timeout 8m",
    "report --json",
];

#[cfg(windows)]
const EXAMPLES: &[&str] = &["wait --timeout 8m", "report", "report --json"];

/// The name under which the program was started.
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
    let Program(name) = program;
    let mut text = format!("{ABOUT}\n\nUsage: {name} COMMAND [FLAGS]\n\n{COMMANDS}\nExamples:\n");
    for example in EXAMPLES {
        let _ = writeln!(text, "  {name} {example}");
    }
    text
}

/// Prints a mistake on the command line, then the help.
pub(crate) fn remark(program: &Program, why: &str) {
    output::remark(&format!("{why}\n{}", text(program)));
}

pub(crate) fn help(program: &Program) -> u8 {
    output::answer(&text(program));
    0
}

/// The version: the build of an image sets its own date, `YYYYMM.DD.PATCH`.
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

    #[test]
    fn every_example_can_be_typed_and_fits_the_terminal() {
        let help = text(&Program("bringup-node".to_owned()));
        assert!(help.lines().all(|line| line.len() < 80), "{help}");
        assert!((2..=5).contains(&EXAMPLES.len()));
        for example in EXAMPLES {
            let typed = Arguments::read(example.split(' ').map(str::to_owned)).expect(example);
            assert!(typed.known_command().is_some() && typed.rest.is_empty(), "{example}");
        }
    }

    fn flags(text: &str) -> Vec<&str> {
        let words = text.split_whitespace().map(|word| word.trim_matches(['[', ']', '.']));
        words.filter(|word| word.starts_with("--")).collect()
    }
}
