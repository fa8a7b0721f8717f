//! The log of the extension, in the folder that the guest agent names. An error of logging never stops a
//! command.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bringup_diagnosis::redaction::redact;
use jiff::Timestamp;

use super::handler::Handler;
use crate::host::system::files;

/// The size at which a new log begins; the previous log is preserved.
const LENGTH: u64 = 1 << 20;

/// The longest line.
const LINE: usize = 4_000;

#[derive(Debug, Clone)]
pub(crate) struct Log(Option<PathBuf>);

impl Log {
    pub(crate) fn of(handler: &Path) -> Self {
        Self(Handler::read(handler).ok().and_then(|handler| handler.log))
    }

    /// A log that discards everything.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn line(&self, text: &str) {
        let Some(folder) = &self.0 else { return };
        let path = folder.join("extension.log");
        if path.symlink_metadata().is_ok_and(|data| data.len() > LENGTH) {
            let _ = fs::rename(&path, folder.join("extension.log.1"));
        }
        let _ = fs::create_dir_all(folder);
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let line = format!("{} {}\n", Timestamp::now(), redact(&text).text.truncated(LINE));
        let file = files::append(&path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
