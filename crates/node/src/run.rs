//! `run.json`: the record of the current attempt, or of the last one.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::host::linux::process::Process;
use crate::host::linux::store;
use crate::host::paths::Root;

/// The record of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    v: u8,
    /// The name of the attempt.
    #[serde(rename = "run_id")]
    pub(crate) id: String,
    /// The boot in which the attempt began.
    pub(crate) boot_id: Option<String>,
    /// The machine of the attempt.
    pub(crate) machine_id: Option<String>,
    pub(crate) state: State,
    pid: Option<u32>,
    pid_start: Option<u64>,
    child_pid: Option<u32>,
    child_start: Option<u64>,
    /// When the attempt began.
    pub(crate) started: Timestamp,
    /// When the attempt ended.
    pub(crate) finished: Option<Timestamp>,
    /// The digest of the file that the attempt was made from.
    pub(crate) config_sha256: Option<String>,
    pub(crate) exit: Option<i32>,
    pub(crate) name: Option<String>,
    /// The files that the attempt was made from: a command that reports on the attempt must know their
    /// secrets.
    #[serde(default)]
    pub(crate) given: Vec<PathBuf>,
}

/// The progress of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Preflight,
    Running,
    Succeeded,
    Failed,
    /// The attempt was killed.
    Died,
}

/// The current time, by the clock that dates files: a file that is written later never has an earlier date.
pub(crate) fn now() -> Timestamp {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let nanoseconds = i32::try_from(time.tv_nsec).unwrap_or_default();
    Timestamp::new(time.tv_sec, nanoseconds).unwrap_or_else(|_| Timestamp::now())
}

/// The identity of this machine, and the boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Changes with every boot.
    pub(crate) boot: Option<String>,
    /// Differs between machines.
    pub(crate) machine: Option<String>,
    /// cloud-init saw another instance before: the disk was copied.
    pub(crate) copied: bool,
}

impl Identity {
    pub(crate) fn observe(root: &Root) -> Self {
        let instance = store::line(&root.instance_id());
        let previous = store::line(&root.previous_instance_id());
        // cloud-init writes NO_PREVIOUS_INSTANCE_ID when there was none.
        let copied = match (instance, previous) {
            (Some(instance), Some(previous)) => {
                previous != instance && previous != "NO_PREVIOUS_INSTANCE_ID"
            }
            _ => false,
        };
        Self {
            boot: store::line(&root.boot_id()),
            machine: store::line(&root.machine_id()).map(|id| id.to_ascii_lowercase()),
            copied,
        }
    }

    /// The beginning of the boot ID.
    pub(crate) fn boot_short(&self) -> Option<String> {
        self.boot.as_ref().map(|boot| boot.chars().take(8).collect())
    }
}

impl Run {
    /// A new attempt of this process.
    pub(crate) fn begin(
        identity: &Identity,
        now: Timestamp,
        config_sha256: Option<String>,
    ) -> Self {
        let this = Process::this();
        let id = store::line(std::path::Path::new("/proc/sys/kernel/random/uuid"));
        Self {
            v: 1,
            id: id.map_or_else(
                || format!("{:x}-{:x}", now.as_nanosecond(), std::process::id()),
                |id| id.chars().filter(char::is_ascii_hexdigit).take(16).collect(),
            ),
            boot_id: identity.boot.clone(),
            machine_id: identity.machine.clone(),
            state: State::Preflight,
            pid: this.map(|this| this.pid),
            pid_start: this.map(|this| this.start),
            child_pid: None,
            child_start: None,
            started: now,
            finished: None,
            config_sha256,
            exit: None,
            name: None,
            given: Vec::new(),
        }
    }

    /// The stored record, if it can be read.
    pub(crate) fn load(root: &Root) -> Option<Self> {
        serde_json::from_str(&store::head(&root.run(), 64 * 1024).ok()?).ok()
    }

    pub(crate) fn save(&self, root: &Root) -> std::io::Result<()> {
        store::write(&root.run(), serde_json::to_string(self)?.as_bytes())
    }

    /// The agent that began the attempt.
    pub(crate) fn agent(&self) -> Option<Process> {
        Some(Process { pid: self.pid?, start: self.pid_start? })
    }

    /// The process of the scripts.
    pub(crate) fn child(&self) -> Option<Process> {
        Some(Process { pid: self.child_pid?, start: self.child_start? })
    }

    /// Records that the scripts run.
    pub(crate) fn running(&mut self, child: Process) {
        self.state = State::Running;
        self.child_pid = Some(child.pid);
        self.child_start = Some(child.start);
    }

    /// Records the end of the attempt.
    pub(crate) fn ended(&mut self, exit: i32, name: &str, now: Timestamp) {
        self.state = if exit == 0 { State::Succeeded } else { State::Failed };
        self.finished = Some(now);
        self.exit = Some(exit);
        self.name = Some(name.to_owned());
    }

    /// Whether the attempt belongs to this boot of this machine: its processes may still run.
    pub(crate) fn is_of(&self, identity: &Identity) -> bool {
        let same = |ours: &Option<String>, theirs: &Option<String>| match (ours, theirs) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        same(&self.boot_id, &identity.boot) && same(&self.machine_id, &identity.machine)
    }

    /// Whether the attempt belongs to this boot of this machine and has not ended.
    pub(crate) fn open(&self, identity: &Identity) -> bool {
        matches!(self.state, State::Preflight | State::Running) && self.is_of(identity)
    }

    /// Another agent continues the attempt.
    pub(crate) fn taken_over(self) -> Self {
        let this = Process::this();
        Self { pid: this.map(|this| this.pid), pid_start: this.map(|this| this.start), ..self }
    }
}
