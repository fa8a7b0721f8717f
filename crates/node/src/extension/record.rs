//! `state.json`: what the extension remembers between its commands and over reboots and updates.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::capi::Identity;
use crate::host::system::files;

/// A record is not longer than this.
const LENGTH: u64 = 1 << 20;

/// What is known of the wait for one number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The form of this record.
    pub(crate) v: u8,
    /// The number of its settings.
    pub(crate) number: u64,
    /// The machine it belongs to.
    pub(crate) machine: Identity,
    /// The boot in which it began.
    pub(crate) boot: Option<String>,
    /// The first `enable` of this number.
    pub(crate) first_enable: Timestamp,
    /// When it is to be over; not known of settings that cannot be read.
    pub(crate) deadline: Option<Timestamp>,
    /// How far it is.
    pub(crate) phase: Phase,
    /// What it ended with.
    pub(crate) exit: Option<u8>,
    /// The status that was last written for good.
    pub(crate) status: Option<String>,
    /// How often its process was killed.
    pub(crate) deaths: u32,
    /// The folder of the handler.
    pub(crate) handler: PathBuf,
}

/// How far a wait is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// It is waited.
    Waiting,
    /// It is over.
    Done,
}

impl Record {
    /// Of a wait that begins.
    pub(crate) fn begin(
        number: u64,
        machine: Identity,
        boot: Option<String>,
        first_enable: Timestamp,
        deadline: Option<Timestamp>,
    ) -> Self {
        Self {
            v: 1,
            number,
            machine,
            boot,
            first_enable,
            deadline,
            phase: Phase::Waiting,
            exit: None,
            status: None,
            deaths: 0,
            handler: PathBuf::new(),
        }
    }

    /// The same, when it is over.
    pub(crate) fn over(self, exit: u8, status: &str) -> Self {
        Self { phase: Phase::Done, exit: Some(exit), status: Some(status.to_owned()), ..self }
    }

    fn path(folder: &Path) -> PathBuf {
        folder.join("state.json")
    }

    /// What is written, if it can be read.
    pub(crate) fn load(folder: &Path) -> Option<Self> {
        let record: Self =
            serde_json::from_str(&files::head(&Self::path(folder), LENGTH).ok()?).ok()?;
        Some(record).filter(|record| record.v == 1)
    }

    /// Writes it.
    pub(crate) fn save(&self, folder: &Path) -> io::Result<()> {
        files::write(&Self::path(folder), serde_json::to_string(self)?.as_bytes())
    }

    /// Keeps the record of another machine out of the way.
    pub(crate) fn set_aside(folder: &Path) -> io::Result<()> {
        std::fs::rename(Self::path(folder), folder.join("state.json.other-machine"))
    }
}

/// Where the wait for a number remembers.
pub(crate) fn memory(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("wait-{number}.json"))
}
