//! Locks between processes, held as long as the file is open.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::host::system::files;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    /// Only one command of the guest agent runs at a time.
    Commands,
    /// Only one process waits.
    Waiter,
}

/// The result of taking a lock.
#[derive(Debug)]
pub(crate) enum Taken {
    /// The lock is held as long as this value lives.
    Held(#[expect(dead_code, reason = "it only has to live")] File),
    /// Another process holds the lock.
    ByAnother,
    /// The lock cannot be created; a full disk must not prevent the wait.
    Impossible,
}

/// Takes a lock, if its holder releases it within the limit.
pub(crate) fn take(folder: &Path, lock: Lock, limit: Duration) -> Taken {
    let name = match lock {
        Lock::Commands => "commands.lock",
        Lock::Waiter => "waiter.lock",
    };
    let _ = files::directory(folder);
    let mut how = OpenOptions::new();
    let Ok(file) = how.write(true).create(true).truncate(false).open(folder.join(name)) else {
        return Taken::Impossible;
    };
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Taken::Held(file),
            Err(std::fs::TryLockError::Error(_)) => return Taken::Impossible,
            Err(std::fs::TryLockError::WouldBlock) if begun.elapsed() >= limit => {
                return Taken::ByAnother;
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
