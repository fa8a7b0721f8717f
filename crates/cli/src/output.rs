//! The one place that prints.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use anyhow::Context as _;

use crate::failure::Failure;
use bringup_explain::Explanation;
use bringup_explain::layout::hang;

/// Prints an answer. A reader that has seen enough (`| head`) is no error.
pub(crate) fn answer(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// An explanation as the standard output wants it: with colour on a terminal or with `CLICOLOR_FORCE`, plain
/// elsewhere and with `NO_COLOR`.
pub(crate) fn explained(explanation: &Explanation) -> String {
    let is_set =
        |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    if (io::stdout().is_terminal() || is_set("CLICOLOR_FORCE")) && !is_set("NO_COLOR") {
        explanation.coloured()
    } else {
        explanation.text()
    }
}

/// Prints what is no part of the answer, beside it.
pub(crate) fn aside(text: &str) {
    let _ = io::stderr().lock().write_all(hang(text, "", "  ").as_bytes());
}

/// Prints why there is no answer. Where even that fails, the exit code is left.
pub(crate) fn failure(failure: &Failure) {
    let _ = io::stderr().lock().write_all(failure.text().as_bytes());
}
