//! `bringup`: explains exit codes, and why a node did not come up.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs

mod args;
mod azure;
mod boot_log;
mod cluster;
mod controller;
mod diagnose;
mod docs;
mod explain;
mod explain_text;
mod failure;
mod flex;
mod images;
mod input;
mod machine_health_check;
mod manual;
mod nodeconfig;
mod output;
mod private_file;
mod program;
mod reports;
mod request;
mod safe;
mod signatures;
mod sniff;
mod stored;
mod table;
mod vm;
mod why;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::args::Arguments;
use crate::failure::{Exit, Failure};
use crate::program::Program;
use crate::request::Request;

fn main() -> ExitCode {
    // Before any client is created: rustls needs exactly one crypto provider. No other code has
    // installed one yet, so this cannot fail.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let program = Program::of(std::env::args_os().next().as_deref());
    let typed = program.named(Arguments::command()).try_get_matches();
    let arguments = match typed.and_then(|typed| Arguments::from_arg_matches(&typed)) {
        Ok(arguments) => arguments,
        Err(said) => {
            // clap returns help and version as errors, too.
            let exit = if said.use_stderr() { Exit::Usage } else { Exit::Fine };
            let _ = said.print();
            return exit.into();
        }
    };
    let done = Request::try_from(arguments).and_then(|request| run(request, program));
    let exit = done.unwrap_or_else(|failure| {
        output::failure(&failure);
        failure.exit
    });
    exit.into()
}

fn run(request: Request, program: Program) -> Result<Exit, Failure> {
    match request {
        Request::Explain(options) => explain::run(&options),
        Request::Diagnose(options) => diagnose::run(&options),
        Request::Why(options) => why::run(&options, program),
        Request::BootLog(typed) => boot_log::run(*typed, program),
        Request::Reports(options) => reports::list(&options, program),
        Request::Report(options) => reports::show(&options, program),
        Request::Controller(arguments) => controller::run(*arguments),
        Request::Flex(command) => flex::run(*command, program),
        Request::NodeConfig(command) => nodeconfig::run(&command),
        Request::MachineHealthCheck(arguments) => machine_health_check::run(&arguments),
        Request::Completions(shell) => manual::completions(shell),
        Request::Man(command) => manual::page(command.as_deref()),
        Request::Docs { directory } => docs::run(&directory),
    }
}
