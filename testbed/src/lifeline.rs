//! Binds processes and a directory to the life of this process.

use std::{
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{Error, Result};

/// Waits for the end of its input. Nothing is ever written to it.
const ANCHOR: &str = "while read -r _; do :; done";

/// Waits for the end of its input like the anchor, then kills the process group `$1` and deletes the
/// directory `$2`.
///
/// A killed process may finish one last write, hence the retries.
const REAPER: &str = r#"
while read -r _; do :; done
kill -s KILL -- "-$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$2" && break
    sleep 0.1
done
"#;

/// A temporary directory and a process group that end with this value, or with this process, however the
/// process ends.
///
/// Two small shells read from pipes that this process holds open and never writes to. When this process ends,
/// the kernel closes the pipes, and the *reaper* kills the group and deletes the directory. The *anchor* is
/// the group's first member: it makes the group exist, and known to the reaper, before the first program is
/// started. Dropping the value has the same effect: it closes the reaper's pipe and waits.
///
/// Why not `PR_SET_PDEATHSIG`: the signal is sent when the *thread* that started a program ends, which can be
/// any time in an asynchronous test; it exists on Linux only; and it does not delete the directory.
#[derive(Debug)]
pub(crate) struct Lifeline {
    reaper: Child,
    anchor: Child,
    directory: TempDir,
}

impl Lifeline {
    pub(crate) fn new() -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("bringup-testbed-")
            .tempdir()
            .map_err(Error::file("create", std::env::temp_dir()))?;
        // Both shells get the directory as an argument, so that the process list shows their control plane.
        let anchor = shell("anchor", ANCHOR, [directory.path()])?;
        let group = anchor.id().to_string();
        let reaper = shell("reaper", REAPER, [Path::new(group.as_str()), directory.path()])?;
        Ok(Self { reaper, anchor, directory })
    }

    /// The directory, which is deleted at the end.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts a program, which is killed at the end.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let group = i32::try_from(self.anchor.id()).map_err(io::Error::other)?;
        command.process_group(group).spawn()
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        drop(self.reaper.stdin.take());
        // A failure here has no remedy, and the directory's own drop tries again.
        let _ = self.reaper.wait();
        let _ = self.anchor.wait();
    }
}

fn shell<const N: usize>(name: &'static str, script: &str, arguments: [&Path; N]) -> Result<Child> {
    Command::new("sh")
        .args(["-c", script, name])
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|source| Error::Spawn { program: name, source })
}
