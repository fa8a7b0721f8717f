//! Programs under test: where they are, and one that can be killed and started again, whose log is
//! kept.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use bringup_testbed::ControlPlane;
use bringup_testbed::wait::in_time;
use tokio::sync::watch;

/// How many lines of the log are shown when something went wrong.
const SHOWN: usize = 60;

/// A program that runs, or could.
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
    /// A program that is not started yet. `command` says how.
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

    /// Starts it. It ends with the control plane, however that ends.
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

    /// Keeps what it writes; ends with the process.
    fn keep(&self, stream: impl Read + Send + 'static, is_log: bool) {
        let log = self.log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                log.send_modify(|log| log.lines.push(line));
            }
            log.send_modify(|log| log.ends += usize::from(is_log));
        });
    }

    /// Ends it at once, as SIGKILL does.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Asks it to end, as the kubelet does, and waits for its exit code.
    pub(crate) fn terminate(&self) -> Result<Option<i32>> {
        let mut child = self.child().take().context("it runs")?;
        let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let id = id.context("a process has an id")?;
        rustix::process::kill_process(id, rustix::process::Signal::TERM)
            .with_context(|| format!("send SIGTERM to {}", self.name))?;
        Ok(child.wait().with_context(|| format!("wait for the end of {}", self.name))?.code())
    }

    /// Its process id, while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    /// Whether it has been started and has not ended.
    pub(crate) fn is_running(&self) -> Result<bool> {
        let mut child = self.child();
        let Some(child) = child.as_mut() else { return Ok(false) };
        Ok(child.try_wait().with_context(|| format!("look at {}", self.name))?.is_none())
    }

    /// The number of lines in its log, over all its starts.
    pub(crate) fn lines(&self) -> usize {
        self.log.borrow().lines.len()
    }

    /// Waits for a line that `is` accepts behind the first `from` lines. Its number and its text.
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

    /// The last lines of its log.
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

/// A program of ours: the one that a variable names, or else the one that was built with this.
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
