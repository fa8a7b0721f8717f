//! Wakes a wait: after a change in a directory, a signal, or one second.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::host::linux::watch::Watch;

/// Wakes a wait.
#[derive(Debug)]
pub(crate) struct Alarm {
    watch: Watch,
    signals: Option<UnixStream>,
    interrupted: bool,
}

impl Alarm {
    /// Starts to listen for signals.
    pub(crate) fn new() -> Self {
        Self { watch: Watch::on(&[]), signals: listen(), interrupted: false }
    }

    /// Watches directories, or their existing parents. Check files only after this call, so that no change is
    /// missed.
    pub(crate) fn arm(&mut self, directories: &[PathBuf]) {
        let directories: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
        self.watch.arm(&directories);
    }

    /// Waits for at most `limit`, and never longer than a second.
    pub(crate) fn wait(&mut self, limit: Duration) {
        self.watch.wait(self.signals.as_ref().map(|signals| signals.as_fd()), limit);
    }

    /// Whether this process received a signal to end.
    pub(crate) fn interrupted(&mut self) -> bool {
        let mut byte = [0];
        let told = |stream: &mut UnixStream| matches!(stream.read(&mut byte), Ok(1..));
        self.interrupted |= self.signals.as_mut().is_some_and(told);
        self.interrupted
    }
}

/// A stream that becomes readable when a signal arrives. Without the stream, signals end the process.
fn listen() -> Option<UnixStream> {
    let (ours, theirs) = UnixStream::pair().ok()?;
    ours.set_nonblocking(true).ok()?;
    for signal in [SIGTERM, SIGINT] {
        pipe::register(signal, theirs.try_clone().ok()?).ok()?;
    }
    Some(ours)
}
