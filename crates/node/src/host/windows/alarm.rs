//! Wakes a wait: after a change in a directory, an interruption, or one second.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::api::{self, Notification};

/// The interval for checks without a notification.
const POLL: Duration = Duration::from_secs(1);

/// Wakes a wait.
#[derive(Debug)]
pub(crate) struct Alarm(Vec<(PathBuf, Notification)>);

impl Alarm {
    /// Starts to listen for interruptions.
    pub(crate) fn new() -> Self {
        api::listen_for_interruptions();
        Self(Vec::new())
    }

    /// Watches directories, or their existing parents. Check files only after this call, so that no change is
    /// missed.
    pub(crate) fn arm(&mut self, directories: &[PathBuf]) {
        let there = |directory: &PathBuf| {
            directory.ancestors().find(|part| part.is_dir()).map(Path::to_owned)
        };
        let mut wanted: Vec<PathBuf> = directories.iter().filter_map(there).collect();
        wanted.sort();
        wanted.dedup();
        self.0.retain(|(directory, _)| wanted.contains(directory));
        for directory in wanted {
            if self.0.iter().any(|(known, _)| *known == directory) {
                continue;
            }
            if let Some(notification) = Notification::of(&directory) {
                self.0.push((directory, notification));
            }
        }
    }

    /// Waits for at most `limit`, and never longer than a second.
    pub(crate) fn wait(&mut self, limit: Duration) {
        let notifications: Vec<&Notification> = self.0.iter().map(|(_, told)| told).collect();
        let limit = limit.min(POLL).max(Duration::from_millis(1));
        api::wait_for_change(&notifications, limit);
    }

    /// Whether this process was interrupted.
    #[expect(clippy::unused_self, reason = "on Linux it is told")]
    pub(crate) fn interrupted(&mut self) -> bool {
        api::interrupted()
    }
}
