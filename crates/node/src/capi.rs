//! `wait`: waits for the sentinel of any bootstrap, and diagnoses a bootstrap that ends without one. For
//! machines of Cluster API and others; on Linux and Windows.
//!
//! [`verdict`] decides and uses neither files nor clocks; [`linux`] and [`windows`] observe and know nothing
//! of verdicts; [`waiter`] combines them.

pub(crate) mod aks;
#[cfg(any(windows, test))]
pub(crate) mod cloudbase;
mod conclusion;
mod exit;
mod failure;
mod findings;
pub(crate) mod kubeadm;
mod kubelet;
pub(crate) mod mark;
pub(crate) mod memory;
mod report;
mod sentence;
pub(crate) mod settings;
mod signatures;
pub(crate) mod verdict;
mod waiter;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::exit::Exit;
pub(crate) use self::memory::Identity;
use self::memory::Remembered;
use self::settings::Settings;
pub(crate) use self::waiter::Progress;
use crate::args::{Arguments, Wrong};
use crate::host::paths::Root;
use crate::host::system::{self, Owner, Places};
use crate::output;
use crate::summary::Summary;

/// Waits and prints the result; returns the exit code of the process.
pub(crate) fn run(arguments: &Arguments, root: &Root) -> u8 {
    match wait(arguments, root, None, &mut |_| {}) {
        Ok(ended) => {
            ended.print();
            let exit = if ended.is_well() { Exit::Succeeded.number() } else { ended.exit() };
            ended.settings.exit_codes.status(exit.into())
        }
        Err(wrong) => {
            output::remark(&format!("{wrong}\n"));
            arguments.exit_codes().unwrap_or_default().status(Exit::Usage.number().into())
        }
    }
}

/// Waits and prints nothing. `memory` is the file for the state of the wait, if not the default one; `tell`
/// is called with the progress at least every second.
pub(crate) fn wait(
    arguments: &Arguments,
    root: &Root,
    memory: Option<&Path>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Ended, Wrong> {
    let mut places = Places::under(root);
    let settings = Settings::read(arguments, &places, &Owner::of(root))?;
    if let Some(memory) = memory {
        memory.clone_into(&mut places.state);
    }
    let waited = catch_unwind(AssertUnwindSafe(|| waiter::wait(&settings, root, &places, tell)));
    let mut outcome = waited.unwrap_or_else(|_| broken());
    if settings.console {
        let line = report::summary_line(&outcome.summary, settings.max_bytes);
        if let Err(error) = system::write_to_console(root, line.trim_end()) {
            outcome.summary.warn.push(format!("the console takes nothing: {error}"));
        }
    }
    Ok(Ended { outcome, settings })
}

/// The time limit of a wait with these settings, or the error in the settings.
pub(crate) fn time_limit(arguments: &Arguments, root: &Root) -> Result<Duration, Wrong> {
    let settings = Settings::read(arguments, &Places::under(root), &Owner::of(root))?;
    Ok(settings.limits.timeout)
}

/// How a wait ended.
#[derive(Debug)]
pub(crate) struct Ended {
    outcome: Remembered,
    settings: Settings,
}

impl Ended {
    /// The exit code.
    pub(crate) fn exit(&self) -> u8 {
        self.outcome.exit
    }

    /// Whether the wait succeeded. A node that joined without a sentinel counts as a success, unless `strict`
    /// is set.
    pub(crate) fn is_well(&self) -> bool {
        let joined = self.exit() == Exit::JoinedWithoutSentinel.number() && !self.settings.strict;
        joined || self.exit() == Exit::Succeeded.number()
    }

    /// Whether the wait was only interrupted and will continue later.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.exit() == Exit::Interrupted.number()
    }

    /// The line for human readers.
    pub(crate) fn human_line(&self) -> String {
        report::human_line(self.exit(), &self.outcome.sentence)
    }

    /// The line for programs, in at most `limit` bytes.
    pub(crate) fn summary_line(&self, limit: usize) -> String {
        report::summary_line(&self.outcome.summary, limit.min(self.settings.max_bytes))
    }

    /// The cause in one word, else the name of the exit code.
    pub(crate) fn blamed(&self) -> String {
        let summary = &self.outcome.summary;
        summary.cause.map_or_else(|| summary.name.clone(), |cause| cause.reason().to_owned())
    }

    /// The log line that proves the cause, if any.
    pub(crate) fn proof(&self) -> Option<&str> {
        self.outcome.summary.ev.first().map(bringup_diagnosis::redaction::Redacted::as_str)
    }

    fn print(&self) {
        let mut text = String::new();
        if self.settings.print_report {
            text = format!("{}\n", crate::summary::safe(&self.outcome.report.to_string()));
        }
        text.push_str(&self.summary_line(usize::MAX));
        output::remark(&self.human_line());
        output::answer(&text);
    }
}

/// The result when this program has a defect.
fn broken() -> Remembered {
    let mut summary = Summary::new(i32::from(Exit::Internal.number()), Exit::Internal.name());
    summary.kind = Some("wait".to_owned());
    Remembered {
        exit: Exit::Internal.number(),
        summary,
        sentence: "bringup-node has a defect; nothing is known of the bootstrap".to_owned(),
        report: serde_json::Value::Null,
    }
}

/// Writes a line to the console, where boot diagnostics show it without a guest agent.
#[cfg(unix)]
pub(crate) fn write_to_console(root: &Root, line: &str) -> std::io::Result<()> {
    system::write_to_console(root, line)
}

/// The path of the report of a wait.
pub(crate) fn report_path(root: &Root) -> PathBuf {
    Places::under(root).report
}

/// `report`: prints the newest of several reports; returns exit code 66 if there is none.
pub(crate) fn print_newest(reports: &[&Path], in_one_line: bool) -> u8 {
    let age = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let newest = reports.iter().filter_map(|path| Some((age(path)?, *path))).max();
    let text = newest.and_then(|(_, path)| system::files::head(path, 4 << 20).ok());
    let Some(text) = text else {
        output::remark("no report found\n");
        return 66;
    };
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let text =
        if in_one_line { Ok(value.to_string()) } else { serde_json::to_string_pretty(&value) };
    output::answer(&format!("{}\n", text.unwrap_or_default()));
    0
}
