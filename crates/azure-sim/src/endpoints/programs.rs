//! Runs real programs in place of a VM's bootstrap, and reports how they ended.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::FusedFuture as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::task::{JoinHandle, JoinSet};

use crate::azure::{Azure, ProgramEnd, ProgramRun};
use crate::simulator::Simulator;

/// The number of bytes at the end of each stream that are stored: the end contains the reason of a failure.
const KEPT_OUTPUT: usize = 1024 * 1024;

/// How long, in wall time, output is read after the program has ended. A process that left the process group
/// may hold the streams open forever.
const GRACE_FOR_OUTPUT: Duration = Duration::from_secs(1);

/// The exit code of a program that has none.
const NO_EXIT_CODE: i32 = -1;

/// Runs the bootstrap programs of VMs.
///
/// # Guarantees
/// Each program leads a process group that is killed when the program ends, so no child process stays.
/// Dropping the runner kills all programs.
#[derive(Debug)]
pub struct ProgramRunner {
    runner: JoinHandle<()>,
}

impl ProgramRunner {
    /// Starts to run programs.
    pub fn start(simulator: Simulator) -> Self {
        Self { runner: tokio::spawn(keep_running(simulator)) }
    }
}

impl Drop for ProgramRunner {
    fn drop(&mut self) {
        self.runner.abort();
    }
}

async fn keep_running(simulator: Simulator) {
    let mut changes = simulator.changes();
    // Dropping the task drops this set, and with it every program.
    let mut running = JoinSet::new();
    loop {
        for wanted in simulator.with(Azure::programs_to_start) {
            running.spawn(async move { (wanted.run, run(wanted).await) });
        }
        tokio::select! {
            () = simulator.changed(&mut changes) => {}
            Some(Ok((run, end))) = running.join_next() => {
                simulator.with(|azure| azure.program_ended(run, end));
                simulator.step();
            }
        }
    }
}

/// Runs one program to its end. If the program cannot be started, the result contains the reason.
async fn run(wanted: ProgramRun) -> ProgramEnd {
    let Some((program, arguments)) = wanted.command.split_first() else {
        return not_started("the command is empty");
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(&wanted.environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    match command.spawn() {
        Ok(child) => follow(child).await,
        Err(error) => not_started(&format!("cannot start {program}: {error}")),
    }
}

async fn follow(mut child: Child) -> ProgramEnd {
    let group = Group::of(&child);
    let (mut stdout, mut stderr) = (Tail::default(), Tail::default());
    let (from_stdout, from_stderr) = (child.stdout.take(), child.stderr.take());
    let mut ended = pin!(async {
        let status = child.wait().await;
        drop(group);
        status
    });
    let mut reading =
        Box::pin(async { tokio::join!(stdout.read(from_stdout), stderr.read(from_stderr)) }.fuse());
    let status = tokio::select! {
        status = &mut ended => status,
        _ = &mut reading => ended.await,
    };
    if !reading.is_terminated() {
        let _ = tokio::time::timeout(GRACE_FOR_OUTPUT, &mut reading).await;
    }
    drop(reading);
    ProgramEnd {
        exit_code: exit_code(status),
        stdout: stdout.into_text(),
        stderr: stderr.into_text(),
    }
}

fn exit_code(status: io::Result<ExitStatus>) -> i32 {
    status.ok().and_then(|status| status.code()).unwrap_or(NO_EXIT_CODE)
}

fn not_started(why: &str) -> ProgramEnd {
    ProgramEnd { exit_code: NO_EXIT_CODE, stdout: String::new(), stderr: format!("{why}\n") }
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            self.0.extend(&buffer[..count]);
            self.0.drain(..self.0.len().saturating_sub(KEPT_OUTPUT));
        }
    }

    fn into_text(mut self) -> String {
        String::from_utf8_lossy(self.0.make_contiguous()).into_owned()
    }
}

/// A process group that is killed when this value is dropped.
struct Group {
    #[cfg(unix)]
    head: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let head = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        Self { head }
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        if let Some(head) = self.head {
            // Fails when the group is already empty, which is the goal.
            let _ = rustix::process::kill_process_group(head, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
impl Group {
    fn of(_: &Child) -> Self {
        Self {}
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    async fn shell(script: &str) -> ProgramEnd {
        let environment = BTreeMap::from([("BRINGUP_SIM_VM".to_owned(), "vm-a".to_owned())]);
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        run(ProgramRun { run: 1, command, environment }).await
    }

    #[tokio::test]
    async fn a_programs_output_and_exit_code_are_kept_apart() {
        let end = shell("echo to $BRINGUP_SIM_VM; echo trouble >&2; exit 50").await;
        assert_eq!(
            (end.exit_code, end.stdout.as_str(), end.stderr.as_str()),
            (50, "to vm-a\n", "trouble\n")
        );
    }

    #[tokio::test]
    async fn the_end_of_long_output_is_kept() {
        let end = shell("yes 0123456789abcdef | head -c 3000000; echo last").await;
        assert_eq!(end.stdout.len(), KEPT_OUTPUT);
        assert!(end.stdout.ends_with("last\n"));
    }

    #[tokio::test]
    async fn processes_that_a_program_leaves_running_end_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut alive = tokio::net::unix::pipe::OpenOptions::new().open_receiver(&pipe).unwrap();
        let end = shell(&format!("exec 3> {}; echo x >&3; sleep 1000 &", pipe.display())).await;
        assert_eq!(end.exit_code, 0);
        // The pipe ends when no process holds its other end.
        let mut all = Vec::new();
        alive.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"x\n");
    }

    #[tokio::test]
    async fn a_program_killed_by_a_signal_has_no_exit_code() {
        assert_eq!(shell("kill -TERM $$").await.exit_code, NO_EXIT_CODE);
    }

    #[tokio::test]
    async fn a_program_that_cannot_be_started_reports_why() {
        let command = vec!["no-such-program-anywhere".to_owned()];
        let end = run(ProgramRun { run: 1, command, environment: BTreeMap::new() }).await;
        assert_eq!(end.exit_code, NO_EXIT_CODE);
        assert!(
            end.stderr.starts_with("cannot start no-such-program-anywhere: "),
            "{}",
            end.stderr
        );
    }
}
