//! One running program of the control plane.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{Error, LogTail, Result, lifeline::Lifeline};

/// The number of lines at the end of a log that are quoted.
const TAIL_LINES: usize = 12;
const TAIL_BYTES: u64 = 16 * 1024;

/// A started program. The program is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    child: Mutex<Child>,
    log: PathBuf,
}

impl Program {
    /// Starts `command`, with its output in a log in the lifeline's directory.
    pub(crate) fn start(
        name: &'static str,
        mut command: Command,
        lifeline: &Lifeline,
    ) -> Result<Self> {
        let log = lifeline.directory().join(name).with_extension("log");
        let output = File::create(&log).map_err(Error::file("create", &log))?;
        let errors = output.try_clone().map_err(Error::file("write", &log))?;
        command
            .current_dir(lifeline.directory())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let child = lifeline
            .spawn(&mut command)
            .map_err(|source| Error::Spawn { program: name, source })?;
        Ok(Self { name, child: Mutex::new(child), log })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child().id()
    }

    /// Fails if the program is no longer running.
    pub(crate) fn check(&self) -> Result<()> {
        let state = self.child().try_wait();
        match state {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.exited(status)),
            Err(source) => Err(Error::Spawn { program: self.name, source }),
        }
    }

    /// Kills the program and waits for its end.
    pub(crate) fn kill(&self) {
        let mut child = self.child();
        // Both calls fail only if the program has already ended.
        let _ = child.kill();
        let _ = child.wait();
    }

    /// The last lines of the program's log; empty if the log cannot be read.
    pub(crate) fn log_tail(&self) -> LogTail {
        read_tail(&self.log).unwrap_or_default()
    }

    fn exited(&self, status: ExitStatus) -> Error {
        Error::Exited { program: self.name, status, log: self.log_tail() }
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_tail(log: &Path) -> io::Result<LogTail> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;

    let end = String::from_utf8_lossy(&end);
    let lines: Vec<&str> = end.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    Ok(LogTail(tail.iter().map(ToString::to_string).collect()))
}
