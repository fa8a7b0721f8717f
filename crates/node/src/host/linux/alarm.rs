//! What wakes a wait: a change in a directory, a signal, or a second that is over.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::host::linux::watch::Watch;

/// What wakes a wait.
#[derive(Debug)]
pub(crate) struct Alarm {
    watch: Watch,
    signals: Option<UnixStream>,
    interrupted: bool,
}

impl Alarm {
    /// Listens from now on.
    pub(crate) fn new() -> Self {
        Self { watch: Watch::on(&[]), signals: listen(), interrupted: false }
    }

    /// Watches directories, or what is there of the way to them. Look only after this.
    pub(crate) fn arm(&mut self, directories: &[PathBuf]) {
        let directories: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
        self.watch.arm(&directories);
    }

    /// Waits, at most `limit` and never long.
    pub(crate) fn wait(&mut self, limit: Duration) {
        self.watch.wait(self.signals.as_ref().map(|signals| signals.as_fd()), limit);
    }

    /// Whether this process was asked to end.
    pub(crate) fn interrupted(&mut self) -> bool {
        let mut byte = [0];
        let told = |stream: &mut UnixStream| matches!(stream.read(&mut byte), Ok(1..));
        self.interrupted |= self.signals.as_mut().is_some_and(told);
        self.interrupted
    }
}

/// A stream that can be read when a signal has come. Without it, signals end the process.
fn listen() -> Option<UnixStream> {
    let (ours, theirs) = UnixStream::pair().ok()?;
    ours.set_nonblocking(true).ok()?;
    for signal in [SIGTERM, SIGINT] {
        pipe::register(signal, theirs.try_clone().ok()?).ok()?;
    }
    Some(ours)
}
