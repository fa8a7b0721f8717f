//! Ties processes and a directory to the life of this process.

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

/// Waits in the same way, then ends the process group `$1` and removes the directory `$2`.
///
/// A process that is being killed may finish one last write, hence the retries.
const REAPER: &str = r#"
while read -r _; do :; done
kill -s KILL -- "-$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$2" && break
    sleep 0.1
done
"#;

/// A temporary directory and a process group that end with this value, or with
/// this process, however that ends.
///
/// Two small shells read from pipes that we hold open and never write to. When
/// this process ends, the kernel closes them, and the *reaper* kills the group
/// and removes the directory. The *anchor* is the group's first member: there is
/// a group to join, and the reaper knows it, before the first program is started.
/// Dropping the value goes the same way: it closes the reaper's pipe and waits.
///
/// Why not `PR_SET_PDEATHSIG`: it fires when the *thread* that started a program
/// ends, which in an asynchronous test can be any time; it is Linux only; and it
/// leaves the directory behind.
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
        // The directory is named to both, so that the process list shows which control plane they belong to.
        let anchor = shell("anchor", ANCHOR, [directory.path()])?;
        let group = anchor.id().to_string();
        let reaper = shell("reaper", REAPER, [Path::new(group.as_str()), directory.path()])?;
        Ok(Self { reaper, anchor, directory })
    }

    /// The directory that is removed in the end.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts a program that is killed in the end.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let group = i32::try_from(self.anchor.id()).map_err(io::Error::other)?;
        command.process_group(group).spawn()
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        drop(self.reaper.stdin.take());
        // Nothing can be done about a failure here, and the directory's own drop tries again.
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
