//! The guest agent's files about the handler: its folders, and the current settings.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::protected;
use super::settings::{Meant, PassedSettings, Unusable};
use crate::args::Arguments;
use crate::host::system::{background, files};

/// The longest retry: a read may find a file that the guest agent is still writing.
const PATIENCE: Duration = Duration::from_secs(1);

/// The largest file of the guest agent that is read.
const LENGTH: u64 = 1 << 20;

/// The folders of the handler, as the guest agent created them.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    /// The folder of the handler itself.
    pub(crate) root: PathBuf,
    /// The folder of the settings.
    pub(crate) settings: PathBuf,
    /// The folder of the status files.
    pub(crate) status: PathBuf,
    /// The folder of the logs.
    pub(crate) log: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    handler_environment: Environment,
}

#[derive(Debug, Deserialize)]
struct Environment {
    #[serde(rename = "logFolder")]
    log: Option<PathBuf>,
    #[serde(rename = "configFolder")]
    settings: Option<PathBuf>,
    #[serde(rename = "statusFolder")]
    status: Option<PathBuf>,
}

/// Why the handler's folders or settings are unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unknown {
    /// The guest agent's file does not exist or is incomplete.
    #[error("HandlerEnvironment.json cannot be read")]
    Environment,
    /// The guest agent's file does not name this folder.
    #[error("HandlerEnvironment.json has no {0}")]
    Folder(&'static str),
    /// The number of the current settings is unknown.
    #[error("there is no number of settings")]
    Number,
}

impl Handler {
    /// The folder of the handler: from the command line, else from the guest agent, else the folder of this
    /// program.
    pub(crate) fn folder(arguments: &Arguments) -> PathBuf {
        let told = || std::env::var_os("AZURE_GUEST_AGENT_EXTENSION_PATH").map(PathBuf::from);
        let typed = arguments.value("handler").map(PathBuf::from);
        typed.or_else(told).or_else(|| std::env::current_dir().ok()).unwrap_or_default()
    }

    /// Reads the guest agent's file.
    pub(crate) fn read(root: &Path) -> Result<Self, Unknown> {
        let path = root.join("HandlerEnvironment.json");
        let text =
            patiently(|| files::head(&path, LENGTH).ok().and_then(|text| environment(&text)));
        let found = text.ok_or(Unknown::Environment)?;
        Ok(Self {
            root: root.to_owned(),
            settings: found.settings.ok_or(Unknown::Folder("configFolder"))?,
            status: found.status.ok_or(Unknown::Folder("statusFolder"))?,
            log: found.log,
        })
    }

    /// The number of the current settings.
    pub(crate) fn number(&self) -> Result<u64, Unknown> {
        let told = std::env::var("ConfigSequenceNumber").ok();
        let told = told.and_then(|number| number.trim().parse().ok());
        let registered = || background::registered_number(&self.root);
        told.or_else(registered).or_else(|| self.newest()).ok_or(Unknown::Number)
    }

    /// The settings with the latest modification time: sequence numbers do not only grow.
    fn newest(&self) -> Option<u64> {
        let entries = fs::read_dir(&self.settings).ok()?.filter_map(Result::ok);
        let dated = entries.filter_map(|entry| {
            let path = entry.path();
            let number: u64 = path.file_stem()?.to_str()?.parse().ok()?;
            let is_one = path.extension().is_some_and(|it| it == "settings");
            Some((entry.metadata().ok()?.modified().ok()?, number)).filter(|_| is_one)
        });
        dated.max().map(|(_, number)| number)
    }

    /// The meaning of the settings with this number.
    pub(crate) fn meant(&self, number: u64) -> Result<Meant, Unusable> {
        let path = self.settings.join(format!("{number}.settings"));
        let read = || PassedSettings::read(&files::head(&path, LENGTH).unwrap_or_default());
        let handed = patiently(|| match read() {
            Err(Unusable::Broken(_)) => None,
            read => Some(read),
        });
        let handed = handed.unwrap_or_else(read)?;
        let opened =
            handed.protected().map(|(text, key)| protected::open(text, key, &self.settings));
        let opened = opened.transpose().map_err(Unusable::Protected)?;
        handed.meant(opened.as_deref())
    }
}

fn environment(text: &str) -> Option<Environment> {
    let items: Vec<Item> = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    items.into_iter().next().map(|item| item.handler_environment)
}

fn patiently<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let found = look();
        if found.is_some() || begun.elapsed() >= PATIENCE {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_are_where_the_guest_agent_says_whatever_else_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let text = "\u{feff}[{\"version\":1.0,\"name\":\"x\",\"handlerEnvironment\":{\"configFolder\":\"/c\",\"statusFolder\":\"/s\",\"heartbeatFile\":\"/h\",\"more\":1}}]";
        fs::write(folder.path().join("HandlerEnvironment.json"), text).unwrap();
        let handler = Handler::read(folder.path()).unwrap();
        assert_eq!((handler.settings, handler.status), ("/c".into(), "/s".into()));
        assert_eq!(handler.log, None);
    }

    #[test]
    fn without_a_number_the_settings_written_last_count() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        for (name, age) in
            [("7.settings", 20), ("3.settings", 10), ("9.status", 0), ("x.settings", 0)]
        {
            let file = fs::File::create(root.join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        let handler = Handler { settings: root.clone(), status: root.clone(), log: None, root };
        assert_eq!(handler.newest(), Some(3));
    }
}
