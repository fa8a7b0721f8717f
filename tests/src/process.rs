//! Programs under test: finds them, and runs a program that can be killed and restarted, with a log in
//! memory.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use bringup_testbed::ControlPlane;
use bringup_testbed::wait::in_time;
use tokio::sync::watch;

/// The number of log lines that are shown after a failure.
const SHOWN: usize = 60;

/// A program under test, running or not.
pub(crate) struct Process {
    name: &'static str,
    command: Box<dyn Fn() -> Command + Send + Sync>,
    child: Mutex<Option<Child>>,
    log: Arc<watch::Sender<Log>>,
}

#[derive(Default)]
struct Log {
    lines: Vec<String>,
    /// How often the program was started, and how often it has ended.
    starts: usize,
    ends: usize,
}

impl Process {
    /// A program that is not started yet. `command` returns its command line.
    pub(crate) fn new(
        name: &'static str,
        command: impl Fn() -> Command + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            command: Box::new(command),
            child: Mutex::new(None),
            log: Arc::new(watch::Sender::default()),
        }
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the program, which ends with the control plane, however the control plane ends.
    pub(crate) fn start(&self, control_plane: &ControlPlane) -> Result<()> {
        let mut command = (self.command)();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = control_plane.spawn(&mut command);
        let mut child = child.with_context(|| format!("start {}", self.name))?;
        self.log.send_modify(|log| log.starts += 1);
        self.keep(child.stdout.take().context("its output")?, false);
        self.keep(child.stderr.take().context("its log")?, true);
        *self.child() = Some(child);
        Ok(())
    }

    /// Stores the output of the program; ends with the process.
    fn keep(&self, stream: impl Read + Send + 'static, is_log: bool) {
        let log = self.log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                log.send_modify(|log| log.lines.push(line));
            }
            log.send_modify(|log| log.ends += usize::from(is_log));
        });
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            // The process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends the signal with which a kubelet stops a container, and waits for the exit code.
    pub(crate) fn terminate(&self) -> Result<Option<i32>> {
        let mut child = self.child().take().context("it runs")?;
        let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let id = id.context("a process has an id")?;
        rustix::process::kill_process(id, rustix::process::Signal::TERM)
            .with_context(|| format!("send SIGTERM to {}", self.name))?;
        Ok(child.wait().with_context(|| format!("wait for the end of {}", self.name))?.code())
    }

    /// The process ID, while the process runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    /// Whether it has been started and has not ended.
    pub(crate) fn is_running(&self) -> Result<bool> {
        let mut child = self.child();
        let Some(child) = child.as_mut() else { return Ok(false) };
        Ok(child.try_wait().with_context(|| format!("look at {}", self.name))?.is_none())
    }

    /// The number of log lines, over all starts.
    pub(crate) fn lines(&self) -> usize {
        self.log.borrow().lines.len()
    }

    /// Waits for a line after the first `from` lines that `is` accepts. Returns its number and its text.
    pub(crate) async fn logged(
        &self,
        from: usize,
        what: &str,
        is: impl Fn(&str) -> bool,
    ) -> Result<(usize, String)> {
        let (mut log, mut next, mut found) = (self.log.subscribe(), from, None);
        let awaited = format!("`{what}` in the log of {}", self.name);
        let logged = log.wait_for(|log| {
            while let (None, Some(line)) = (&found, log.lines.get(next)) {
                found = is(line).then(|| (next, line.clone()));
                next += 1;
            }
            found.is_some() || log.starts == log.ends
        });
        let logged = in_time(&awaited, logged).await.map(drop);
        logged.with_context(|| self.recent_log())?;
        found.with_context(|| format!("it ended without {awaited}\n{}", self.recent_log()))
    }

    /// The last lines of the log.
    pub(crate) fn recent_log(&self) -> String {
        let lines = &self.log.borrow().lines;
        let from = lines.len().saturating_sub(SHOWN);
        format!("--- {}\n{}", self.name, lines[from..].join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The path of a program of this project: the value of a variable, or the program that was built with this
/// test.
pub fn built(variable: &str, name: &str) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return Ok(path.into());
    }
    let this = std::env::current_exe().context("find this program")?;
    let built = this.parent().map(|folder| match folder.file_name().and_then(OsStr::to_str) {
        Some("deps") => folder.with_file_name(name),
        _ => folder.join(name),
    });
    let built = built.context("this program is in a folder")?;
    ensure!(built.exists(), "{} is not built: build it, or set {variable}", built.display());
    Ok(built)
}
