//! `wait`: waits until a bootstrap of any make is over, by its sentinel, and says why when none
//! comes. For machines of Cluster API and others; on Linux and Windows.
//!
//! [`verdict`] decides and knows neither files nor clocks; [`linux`] and [`windows`] look and know
//! nothing of verdicts; [`waiter`] brings them together.

mod aks;
#[cfg(any(windows, test))]
mod cloudbase;
mod conclusion;
mod exit;
mod failure;
mod findings;
mod kubeadm;
mod kubelet;
#[cfg(unix)]
mod linux;
mod mark;
mod memory;
mod report;
mod sentence;
mod settings;
mod signatures;
mod verdict;
mod waiter;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use linux as system;
#[cfg(windows)]
use windows as system;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use self::exit::Exit;
use self::memory::Remembered;
use self::settings::Settings;
use self::system::{Owner, Places};
use crate::args::Arguments;
use crate::output;
use crate::paths::Root;
use crate::summary::Summary;

/// Waits and prints; the code is what the process ends with.
pub(crate) fn run(arguments: &Arguments, root: &Root) -> u8 {
    let places = Places::under(root);
    let settings = match Settings::read(arguments, &places, &Owner::of(root)) {
        Ok(settings) => settings,
        Err(wrong) => {
            output::remark(&format!("{wrong}\n"));
            return Exit::Usage.number();
        }
    };
    let waited = catch_unwind(AssertUnwindSafe(|| waiter::wait(&settings, root, &places)));
    let mut outcome = waited.unwrap_or_else(|_| broken());
    if settings.console {
        let line = report::summary_line(&outcome.summary, settings.max_bytes);
        if let Err(error) = system::write_to_console(root, line.trim_end()) {
            outcome.summary.warn.push(format!("the console takes nothing: {error}"));
        }
    }
    print(&outcome, &settings);
    let harmless = outcome.exit == Exit::JoinedWithoutSentinel.number() && !settings.strict;
    if harmless { Exit::Succeeded.number() } else { outcome.exit }
}

fn print(outcome: &Remembered, settings: &Settings) {
    let mut text = String::new();
    if settings.print_report {
        text = format!("{}\n", crate::summary::safe(&outcome.report.to_string()));
    }
    text.push_str(&report::summary_line(&outcome.summary, settings.max_bytes));
    output::remark(&report::human_line(outcome.exit, &outcome.sentence));
    output::answer(&text);
}

/// What is said when this program has a defect.
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

/// Where a wait puts its report.
pub(crate) fn report_path(root: &Root) -> PathBuf {
    Places::under(root).report
}

/// `report`: prints the newest of some reports; 66 if there is none.
pub(crate) fn print_newest(reports: &[&Path], in_one_line: bool) -> u8 {
    let age = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let newest = reports.iter().filter_map(|path| Some((age(path)?, *path))).max();
    let text = newest.and_then(|(_, path)| system::files::head(path, 4 << 20).ok());
    let Some(text) = text else {
        output::remark("there is no report\n");
        return 66;
    };
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let text =
        if in_one_line { Ok(value.to_string()) } else { serde_json::to_string_pretty(&value) };
    output::answer(&format!("{}\n", text.unwrap_or_default()));
    0
}
