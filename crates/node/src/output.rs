//! The one place that prints. Where even that fails, the exit code is left.

use std::io::{self, Write as _};

/// The result.
pub(crate) fn answer(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// What is said beside it.
pub(crate) fn remark(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
