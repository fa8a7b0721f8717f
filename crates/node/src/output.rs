//! The only module that prints. If printing fails, only the exit code remains.

use std::io::{self, Write as _};

/// Prints the result to the standard output.
pub(crate) fn answer(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints a message to the standard error.
pub(crate) fn remark(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
