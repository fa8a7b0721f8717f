//! `bringup`: says what an exit code means, and why a node did not come up.

mod args;
mod controller;
mod diagnose;
mod docs;
mod excerpt;
mod explain;
mod explain_text;
mod failure;
mod input;
mod manual;
mod output;
mod report;
mod request;
mod sniff;
mod stored;
mod wrap;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Arguments;
use crate::failure::{Exit, Failure};
use crate::request::Request;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(said) => {
            // Help and version come this way as well, and are no errors.
            let exit = if said.use_stderr() { Exit::Usage } else { Exit::Fine };
            let _ = said.print();
            return exit.into();
        }
    };
    let done = Request::try_from(arguments).and_then(run);
    let exit = done.unwrap_or_else(|failure| {
        output::failure(&failure);
        failure.exit
    });
    exit.into()
}

fn run(request: Request) -> Result<Exit, Failure> {
    match request {
        Request::Explain(options) => explain::run(&options),
        Request::Diagnose(options) => diagnose::run(&options),
        Request::Controller(arguments) => controller::run(*arguments),
        Request::Completions(shell) => manual::completions(shell),
        Request::Man(command) => manual::page(command.as_deref()),
        Request::Docs { directory, rules } => docs::run(&directory, &rules),
    }
}
