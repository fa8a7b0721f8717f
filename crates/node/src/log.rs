//! The log: JSON lines, in the log file of aks-node-controller. An error of logging never stops a command.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::crash_points;
use crate::host::linux::store;
use crate::host::paths::Root;
use crate::secrets::Secrets;

/// The longest line.
const LINE: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Log {
    file: Option<Arc<File>>,
    secrets: Secrets,
}

/// The severity of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    Info,
    /// A warning.
    Warn,
    /// A failure.
    Error,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

impl Log {
    /// Opens the log, or a log in the working directory if that fails.
    pub(crate) fn open(root: &Root) -> Self {
        let append = |path: &Path| {
            if let Some(directory) = path.parent().filter(|part| !part.as_os_str().is_empty()) {
                store::directory_for(directory)?;
            }
            store::append(path, 0o644)
        };
        let fallback = || append(Path::new("aks-node-controller.log")).ok();
        let file = append(&root.log()).ok();
        let file = file.or_else(|| if root.directory().is_none() { fallback() } else { None });
        Self { file: file.map(Arc::new), secrets: Secrets::default() }
    }

    /// A log that discards everything.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// The same log, which also removes these secrets.
    pub(crate) fn knowing(&self, secrets: &Secrets) -> Self {
        Self { file: self.file.clone(), secrets: secrets.clone() }
    }

    pub(crate) fn line(&self, level: Level, message: &str, more: &[(&str, &str)]) {
        let Some(mut file) = self.file.as_deref() else { return };
        let mut object = Map::new();
        object.insert("time".to_owned(), Timestamp::now().to_string().into());
        object.insert("level".to_owned(), level.word().into());
        let texts = [("msg", message)].into_iter().chain(more.iter().copied());
        for (key, text) in texts {
            let text = self.secrets.redact(text).truncated(LINE / (more.len() + 1)).into_string();
            object.insert(key.to_owned(), text.into());
        }
        crash_points::reached("write the log");
        let _ = file.write_all(format!("{}\n", Value::Object(object)).as_bytes());
    }

    pub(crate) fn info(&self, message: &str) {
        self.line(Level::Info, message, &[]);
    }

    pub(crate) fn warn(&self, message: &str) {
        self.line(Level::Warn, message, &[]);
    }
}
