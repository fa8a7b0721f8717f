//! Locks between processes, held as long as the file is open.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::host::system::files;

/// What is locked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    /// One command of the guest agent at a time.
    Commands,
    /// One process that waits.
    Waiter,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It is held as long as this lives.
    Held(#[expect(dead_code, reason = "it only has to live")] File),
    /// Another process has it.
    ByAnother,
    /// There can be no lock here; a full disk is no reason not to wait.
    Impossible,
}

/// Takes a lock, if its holder releases it in time.
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
