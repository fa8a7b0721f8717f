//! Programs under test: where they are, and one that can be killed and started again; what it says
//! is kept.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bringup_testbed::ControlPlane;
use tokio::sync::watch;

/// The end of a wait that only a broken program reaches.
const FOREVER: Duration = Duration::from_mins(5);
/// How much of the log is shown when something went wrong.
const SHOWN: usize = 60;

/// A program that runs, or could.
pub(crate) struct Process {
    name: &'static str,
    command: Box<dyn Fn() -> Command + Send + Sync>,
    child: Mutex<Option<Child>>,
    log: Arc<watch::Sender<Vec<String>>>,
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
            log: Arc::new(watch::Sender::new(Vec::new())),
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
        self.keep(child.stdout.take().context("its output")?);
        self.keep(child.stderr.take().context("its log")?);
        *self.child() = Some(child);
        Ok(())
    }

    /// Keeps what it says; ends with the process.
    fn keep(&self, stream: impl Read + Send + 'static) {
        let log = self.log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                log.send_modify(|lines| lines.push(line));
            }
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

    /// How many lines it has said, over all its lives.
    pub(crate) fn lines(&self) -> usize {
        self.log.borrow().len()
    }

    /// Waits for a line with this text behind the first `from` lines.
    pub(crate) async fn said(&self, from: usize, text: &str) -> Result<()> {
        let mut log = self.log.subscribe();
        let said = log.wait_for(|lines| lines.iter().skip(from).any(|line| line.contains(text)));
        match tokio::time::timeout(FOREVER, said).await {
            Ok(Ok(_)) => Ok(()),
            _ => anyhow::bail!("waited in vain for `{text}` of {}\n{}", self.name, self.told()),
        }
    }

    /// The end of what it said.
    pub(crate) fn told(&self) -> String {
        let log = self.log.borrow();
        let from = log.len().saturating_sub(SHOWN);
        format!("--- {}\n{}", self.name, log[from..].join("\n"))
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
