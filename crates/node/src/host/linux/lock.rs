//! The lock that allows only one provisioner at a time.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::clock::Moment;
use crate::crash_points;
use crate::host::linux::store;
use crate::host::paths::Root;

/// The smallest page size of a kernel.
const PIECE: usize = 4096;

/// How often a list is read that may be incomplete. On a busy machine, about one list in fifty is.
const LOOKS: usize = 5;

/// Takes the lock, which is held as long as the file is open; `None` if another process holds it.
pub(crate) fn take(root: &Root) -> io::Result<Option<File>> {
    take_at(&root.lock())
}

/// Takes a lock, if its holder releases it within the limit.
pub(crate) fn take_within(path: &Path, limit: Duration) -> io::Result<Option<File>> {
    let begun = Moment::now();
    loop {
        match take_at(path) {
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(20)),
            taken => return taken,
        }
    }
}

fn take_at(path: &Path) -> io::Result<Option<File>> {
    if let Some(directory) = path.parent() {
        store::directory_for(directory)?;
    }
    crash_points::reached("open a lock");
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut how = OpenOptions::new();
    how.write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link);
    let file = how.open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a process holds the lock. Reads the kernel's list of locks: trying to lock would take the lock for
/// a moment, in which a provisioner would believe that another one runs.
pub(crate) fn held(root: &Root) -> bool {
    let Ok(data) = root.lock().metadata() else { return false };
    is_listed(data.ino(), || std::fs::read_to_string("/proc/locks").unwrap_or_default())
}

/// The kernel returns the list in pieces of one page. If a lock from an earlier piece is released before the
/// next piece is read, the list misses another lock. A list of one piece is exact; a longer list without the
/// lock is read again.
fn is_listed(inode: u64, mut read: impl FnMut() -> String) -> bool {
    let mut look = || match read() {
        locks if lists(&locks, inode) => Some(true),
        locks if locks.len() < PIECE => Some(false),
        _ => None,
    };
    (0..LOOKS).find_map(|_| look()).unwrap_or(false)
}

fn lists(locks: &str, inode: u64) -> bool {
    let inode = inode.to_string();
    locks.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1) == Some(&"FLOCK")
            && words.get(5).and_then(|place| place.rsplit(':').next()) == Some(&inode)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_seen_without_being_touched() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(Some(folder.path().to_owned()));
        assert!(!held(&root));
        let taken = take(&root).unwrap();
        assert!(taken.is_some() && held(&root) && take(&root).unwrap().is_none());
        drop(taken);
        assert!(!held(&root));
    }

    #[test]
    fn a_long_list_without_the_lock_is_read_again() {
        let line = |inode: u64| format!("1: FLOCK  ADVISORY  WRITE 77 fe:00:{inode} 0 EOF\n");
        let long: String = (100..200).map(line).collect();
        assert!(long.len() > PIECE);
        let found = |lists: &[&str]| {
            let mut lists = lists.iter();
            let is_listed =
                is_listed(7, || lists.next().map(ToString::to_string).unwrap_or_default());
            (is_listed, lists.count())
        };
        let with = format!("{long}{}", line(7));
        assert_eq!(found(&[&with, "", ""]), (true, 2));
        assert_eq!(found(&[&long, &with, ""]), (true, 1));
        assert_eq!(found(&[&line(8), &with]), (false, 1));
        assert_eq!(found(&[long.as_str(); 9]), (false, 9 - LOOKS));
    }
}
