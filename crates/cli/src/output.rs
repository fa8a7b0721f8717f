//! The one place that prints.

use std::io::{self, ErrorKind, Write as _};

use anyhow::Context as _;

use crate::failure::Failure;
use crate::wrap::hang;

/// Prints an answer. A reader that has seen enough (`| head`) is no error.
pub(crate) fn answer(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to the standard output"),
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
