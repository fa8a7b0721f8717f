//! `state.json`: the state of the extension between its commands and across reboots and updates.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::capi::Identity;
use crate::host::system::files;

/// The largest record that is read.
const LENGTH: u64 = 1 << 20;

/// The record of the wait for one sequence number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The version of the format.
    pub(crate) v: u8,
    /// The sequence number of the settings.
    pub(crate) number: u64,
    /// The machine that wrote the record.
    pub(crate) machine: Identity,
    /// The boot in which the wait began.
    pub(crate) boot: Option<String>,
    /// The first `enable` of this number.
    pub(crate) first_enable: Timestamp,
    /// The deadline of the wait; `None` for settings that cannot be read.
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) phase: Phase,
    /// The exit code of the wait.
    pub(crate) exit: Option<u8>,
    /// The last final status.
    pub(crate) status: Option<String>,
    /// How often the waiter was killed.
    pub(crate) deaths: u32,
    pub(crate) handler: PathBuf,
}

/// The state of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// The wait continues.
    Waiting,
    /// The wait is over.
    Done,
}

impl Record {
    /// The record of a new wait.
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

    /// The same record after the wait is over.
    pub(crate) fn over(self, exit: u8, status: &str) -> Self {
        Self { phase: Phase::Done, exit: Some(exit), status: Some(status.to_owned()), ..self }
    }

    fn path(folder: &Path) -> PathBuf {
        folder.join("state.json")
    }

    /// The stored record, if it can be read.
    pub(crate) fn load(folder: &Path) -> Option<Self> {
        let record: Self =
            serde_json::from_str(&files::head(&Self::path(folder), LENGTH).ok()?).ok()?;
        Some(record).filter(|record| record.v == 1)
    }

    pub(crate) fn save(&self, folder: &Path) -> io::Result<()> {
        files::write(&Self::path(folder), serde_json::to_string(self)?.as_bytes())
    }

    /// Moves the record of another machine away.
    pub(crate) fn set_aside(folder: &Path) -> io::Result<()> {
        std::fs::rename(Self::path(folder), folder.join("state.json.other-machine"))
    }
}

/// The file for the state of the wait for a sequence number.
pub(crate) fn memory(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("wait-{number}.json"))
}
