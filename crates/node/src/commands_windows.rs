//! The commands, on Windows.

use std::process::ExitCode;

use crate::args::Arguments;
use crate::extension;
use crate::output;
use crate::paths::Root;
use crate::sentinel;

const USAGE: &str = "\
Usage: bringup-node COMMAND [FLAGS]

  wait [--sentinel PATH]... [--timeout TIME] [--watch cloudbase-init|aks] (docs/node-wait.md)
  extension install|enable|update|disable|uninstall (docs/vm-extension.md)
  report [--json]
  version, help
";

/// What a wrong command ends with.
const WRONG: u8 = 64;

/// Does what was typed.
pub(crate) fn main() -> ExitCode {
    let typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let code = match Arguments::read(typed) {
        Ok(arguments) => run(&arguments),
        Err(mistake) => wrong(&mistake.1.to_string()),
    };
    code.into()
}

fn run(arguments: &Arguments) -> u8 {
    let root = Root::new(arguments.root.clone());
    let version = env!("CARGO_PKG_VERSION");
    match arguments.command.as_deref() {
        Some("wait") => sentinel::run(arguments, &root),
        Some("extension") => extension::run(arguments, &root),
        Some("report") => {
            let report = sentinel::report_path(&root);
            sentinel::print_newest(&[&report], arguments.given("json"))
        }
        Some("version") => said(&format!("{version}\n")),
        Some("--version") => said(&format!("bringup-node version {version}\n")),
        Some("help" | "--help" | "--h") => said(USAGE),
        Some(other) => wrong(&format!("unknown command: {other}")),
        None => wrong("missing command argument"),
    }
}

fn said(text: &str) -> u8 {
    output::answer(text);
    0
}

fn wrong(why: &str) -> u8 {
    output::remark(&format!("{why}\n{USAGE}"));
    WRONG
}
