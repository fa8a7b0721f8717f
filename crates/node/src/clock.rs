//! The clock by which this program limits how long it waits for other programs.
//!
//! A test sets the time itself, so that no limit is reached because the machine is busy: with
//! `BRINGUP_NODE_TEST_CLOCK=FILE` the clock stands still, a pause moves it on without sleeping, and
//! the milliseconds in the file move it on too. A stub program that hangs writes that number.
//! Only builds for tests look; nothing of it is in a release.

use std::sync::LazyLock;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// A moment by this clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// This moment.
    pub(crate) fn now() -> Self {
        Self(now())
    }

    /// How long ago it was.
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

/// A pause between two looks at something.
pub(crate) fn pause(length: Duration) {
    #[cfg(debug_assertions)]
    if set::file().is_some() {
        set::pause(length);
        return std::thread::yield_now();
    }
    std::thread::sleep(length);
}

/// Waits until a limit is over, and nothing else.
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

/// What another thread sends; nothing if the limit since `begun` is over first, or nothing can come
/// any more.
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

/// How long an answer over the network may take. The kernel measures that by its own clock, so a
/// test sets how much longer it is than usual: `BRINGUP_NODE_TEST_PATIENCE=TIMES`.
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

    /// How often is looked whether the test has moved the clock.
    pub(super) const LOOK: Duration = Duration::from_millis(10);

    thread_local! {
        /// The pauses that this thread has made.
        static PAUSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    pub(super) fn file() -> Option<PathBuf> {
        #[cfg(test)]
        if let Some(file) = super::tests::followed() {
            return Some(file);
        }
        std::env::var_os("BRINGUP_NODE_TEST_CLOCK").map(PathBuf::from)
    }

    /// A file that is being written has no number for a moment; then no time has passed.
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

    /// For the rest of this test, this thread goes by the milliseconds in a file.
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
