//! The clock that limits how long this program waits for other programs.
//!
//! A test sets the time itself, so that a busy machine never causes a timeout: with
//! `BRINGUP_NODE_TEST_CLOCK=FILE` the clock stands still, a pause advances the clock without sleeping, and
//! the milliseconds in the file advance the clock too. A stub program that hangs writes that number. Only
//! test builds read the variable; a release contains none of this code.

use std::sync::LazyLock;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// A moment by this clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(Duration);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        now().saturating_sub(self.0)
    }
}

fn now() -> Duration {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    #[cfg(debug_assertions)]
    if let Some(file) = set::file() {
        return set::now(&file);
    }
    STARTED.elapsed()
}

/// A pause between two checks.
pub(crate) fn pause(length: Duration) {
    #[cfg(debug_assertions)]
    if set::file().is_some() {
        set::pause(length);
        return std::thread::yield_now();
    }
    std::thread::sleep(length);
}

/// Waits until a limit is over.
pub(crate) fn wait(limit: Duration) {
    #[cfg(debug_assertions)]
    if set::file().is_some() {
        let begun = Moment::now();
        while begun.elapsed() < limit {
            std::thread::sleep(set::LOOK);
        }
        return;
    }
    std::thread::sleep(limit);
}

/// The next value from another thread; `None` if the limit since `begun` ends first, or if the channel is
/// closed.
pub(crate) fn receive<T>(from: &Receiver<T>, begun: Moment, limit: Duration) -> Option<T> {
    #[cfg(debug_assertions)]
    if set::file().is_some() {
        loop {
            match from.recv_timeout(set::LOOK) {
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) if begun.elapsed() < limit => {}
                received => return received.ok(),
            }
        }
    }
    from.recv_timeout(limit.saturating_sub(begun.elapsed())).ok()
}

/// The longest wait for an answer over the network. The kernel measures this time by its own clock, so a test
/// sets a factor: `BRINGUP_NODE_TEST_PATIENCE=TIMES`.
pub(crate) fn network(usual: Duration) -> Duration {
    #[cfg(debug_assertions)]
    if let Some(times) =
        std::env::var("BRINGUP_NODE_TEST_PATIENCE").ok().and_then(|it| it.parse().ok())
    {
        return usual.saturating_mul(times);
    }
    usual
}

/// A time that a test has set.
#[cfg(debug_assertions)]
mod set {
    use std::cell::Cell;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    /// How often to check whether the test has advanced the clock.
    pub(super) const LOOK: Duration = Duration::from_millis(10);

    thread_local! {
        /// The sum of the pauses of this thread.
        static PAUSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    pub(super) fn file() -> Option<PathBuf> {
        #[cfg(test)]
        if let Some(file) = super::tests::followed() {
            return Some(file);
        }
        std::env::var_os("BRINGUP_NODE_TEST_CLOCK").map(PathBuf::from)
    }

    /// The file is empty for a moment while it is written; then no time has passed.
    pub(super) fn now(file: &Path) -> Duration {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let moved = Duration::from_millis(text.trim().parse().unwrap_or_default());
        moved.saturating_add(PAUSED.get())
    }

    pub(super) fn pause(length: Duration) {
        PAUSED.set(PAUSED.get().saturating_add(length));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc;

    use super::*;

    thread_local! {
        static FOLLOWED: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
    }

    pub(super) fn followed() -> Option<PathBuf> {
        FOLLOWED.with_borrow(Clone::clone)
    }

    /// For the rest of this test, this thread takes the time from the milliseconds in a file.
    pub(crate) fn follow(file: &Path) {
        FOLLOWED.set(Some(file.to_owned()));
    }

    #[test]
    fn a_clock_that_is_set_stands_still_until_it_is_moved() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("clock");
        follow(&file);
        let begun = Moment::now();
        assert_eq!(begun.elapsed(), Duration::ZERO);
        std::fs::write(&file, "7000\n").unwrap();
        assert_eq!(begun.elapsed(), Duration::from_secs(7));
        pause(Duration::from_hours(1));
        assert_eq!(begun.elapsed(), Duration::from_secs(3_607));
    }

    #[test]
    fn what_is_not_sent_before_the_limit_is_not_received() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("clock");
        follow(&file);
        let (sender, receiver) = mpsc::channel();
        sender.send(1).unwrap();
        let begun = Moment::now();
        assert_eq!(receive(&receiver, begun, Duration::from_secs(1)), Some(1));
        let moving = std::thread::spawn(move || std::fs::write(file, "5000").unwrap());
        assert_eq!(receive(&receiver, begun, Duration::from_secs(5)), None);
        moving.join().unwrap();
        drop(sender);
        assert_eq!(receive(&receiver, Moment::now(), Duration::from_secs(1_000)), None);
    }
}
