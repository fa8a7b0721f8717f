//! Waits for a change in a directory, for readable data, or for one second.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

/// The interval for checks without a notification: not every file system reports changes, and no file changes
/// when a process ends.
const POLL: Duration = Duration::from_secs(1);

/// The same interval, unless a test checks that a change causes a notification. A release contains none of
/// this code.
fn poll_at_most() -> Duration {
    #[cfg(debug_assertions)]
    if std::env::var_os("BRINGUP_NODE_TEST_NO_POLL").is_some() {
        return Duration::from_hours(1);
    }
    POLL
}

/// A watch on directories. If the kernel provides none, only the interval remains.
#[derive(Debug)]
pub(crate) struct Watch(Option<OwnedFd>);

impl Watch {
    /// Watches directories, or their existing parents. Check files only after this call, so that no change is
    /// missed.
    pub(crate) fn on(directories: &[&Path]) -> Self {
        let made = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let watch = Self(made);
        watch.arm(directories);
        watch
    }

    /// Renews the watches: a directory may have appeared.
    pub(crate) fn arm(&self, directories: &[&Path]) {
        let what = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ONLYDIR;
        let Some(fd) = &self.0 else { return };
        for directory in directories {
            let mut there = directory.ancestors();
            there.find(|part| inotify::add_watch(fd, *part, what).is_ok());
        }
    }

    pub(crate) fn wait(&self, other: Option<BorrowedFd<'_>>, limit: Duration) {
        let fds = self.0.as_ref().map(|fd| fd.as_fd()).into_iter().chain(other);
        let mut fds: Vec<PollFd<'_>> =
            fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let most = if self.0.is_some() { poll_at_most() } else { POLL };
        let limit = limit.min(most).max(Duration::from_millis(1));
        let limit = Timespec::try_from(limit).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let _ = poll(&mut fds, Some(&limit));
        let Some(fd) = &self.0 else { return };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(fd, &mut buffer);
        while events.next().is_ok() {}
    }
}
