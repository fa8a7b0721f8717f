//! The only module that prints.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use anyhow::Context as _;

use crate::failure::Failure;
use bringup_explain::Explanation;
use bringup_explain::layout::hang;

/// Prints an answer. A reader that closes the pipe early (`| head`) is not an error.
pub(crate) fn answer(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// An explanation for the standard output: with colour on a terminal or with `CLICOLOR_FORCE`, plain
/// otherwise and with `NO_COLOR`.
pub(crate) fn explained(explanation: &Explanation) -> String {
    let is_set =
        |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    if (io::stdout().is_terminal() || is_set("CLICOLOR_FORCE")) && !is_set("NO_COLOR") {
        explanation.coloured()
    } else {
        explanation.text()
    }
}

/// Prints a note to standard error.
pub(crate) fn aside(text: &str) {
    let _ = io::stderr().lock().write_all(hang(text, "", "  ").as_bytes());
}

/// Prints an error. If printing fails, only the exit code remains.
pub(crate) fn failure(failure: &Failure) {
    let _ = io::stderr().lock().write_all(failure.text().as_bytes());
}
