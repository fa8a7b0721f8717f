//! Checks sentinels. A sentinel is an empty file that any user could create, so it counts only if it is a
//! regular file of the right owner in its own directory, and not a file of an earlier boot.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::verdict::Mark;
use crate::host::system::{Owner, on_disk};

/// The tolerance when a file's time is compared with the boot: file systems store times more coarsely than
/// clocks, and the time of the boot is computed.
const COARSE: Duration = Duration::from_secs(2);

/// Checks files and remembers the files that did not exist.
#[derive(Debug)]
pub(crate) struct Marks {
    owner: Owner,
    booted: Option<SystemTime>,
    missed: BTreeSet<PathBuf>,
}

impl Marks {
    /// `owner` is the user that may write a sentinel.
    pub(crate) fn new(owner: Owner, booted: Option<SystemTime>) -> Self {
        Self { owner, booted, missed: BTreeSet::new() }
    }

    /// Checks a file.
    pub(crate) fn look(&mut self, path: &Path) -> Mark {
        let mark = match fs::symlink_metadata(path) {
            Ok(_) => self.judge(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Mark::Denied,
            Err(_) => Mark::Absent,
        };
        if mark == Mark::Absent {
            self.missed.insert(path.to_owned());
        }
        mark
    }

    /// Checks several files of which one is enough: returns the oldest that counts, else the one that comes
    /// closest to counting.
    pub(crate) fn look_at_any(&mut self, paths: &[PathBuf]) -> Mark {
        let marks: Vec<Mark> = paths.iter().map(|path| self.look(path)).collect();
        let closest = |mark: &Mark| match mark {
            Mark::There(since) => (0, Some(*since)),
            Mark::Denied => (1, None),
            Mark::Ignored(_) => (2, None),
            Mark::Absent => (3, None),
        };
        marks.into_iter().min_by_key(closest).unwrap_or(Mark::Absent)
    }

    /// Whether a file is of this boot, as far as this can be determined.
    pub(crate) fn is_fresh(&self, path: &Path) -> bool {
        let modified = fs::metadata(path).and_then(|data| data.modified());
        modified.is_ok_and(|modified| self.is_of_this_boot(modified))
    }

    /// Whether the path is a link of this boot that the owner made; the target does not matter.
    #[cfg(unix)]
    pub(crate) fn has_link(&self, path: &Path) -> bool {
        let Ok(data) = fs::symlink_metadata(path) else { return false };
        let fresh = || data.modified().is_ok_and(|modified| self.is_of_this_boot(modified));
        let in_memory = path.parent().is_some_and(|folder| !on_disk(folder));
        data.is_symlink() && self.owner.wrote(path, &data) && (in_memory || fresh())
    }

    /// Whether the owner wrote this file, in any boot.
    pub(crate) fn belongs_to_owner(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|data| data.is_file() && self.owner.wrote(path, &data))
    }

    fn judge(&self, path: &Path) -> Mark {
        let ignored = |why: &str| Mark::Ignored(format!("{} is ignored: {why}", path.display()));
        if !stays_inside(path) {
            return ignored("it is a link out of its directory, or to nothing");
        }
        let Ok(data) = fs::metadata(path) else { return ignored("it cannot be looked at") };
        if !data.is_file() {
            return ignored("it is not a regular file");
        }
        if !self.owner.wrote(path, &data) {
            return ignored("it belongs to another user");
        }
        let Ok(modified) = data.modified() else { return ignored("it has no time") };
        // A file that appears during the wait is new, whatever its time: the file may have been moved here,
        // and the clock may have been set since the boot.
        let appeared = self.missed.contains(path);
        if !appeared && on_disk(path) && !self.is_of_this_boot(modified) {
            return ignored("it is older than this boot");
        }
        Mark::There(modified)
    }

    fn is_of_this_boot(&self, modified: SystemTime) -> bool {
        self.booted.is_none_or(|booted| {
            modified.checked_add(COARSE).is_none_or(|modified| modified >= booted)
        })
    }
}

/// Whether the target of a path is in the directory of the path. Comparing canonical paths detects every kind
/// of link.
fn stays_inside(path: &Path) -> bool {
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    let target = fs::canonicalize(path).ok();
    target.zip(folder).is_some_and(|(target, folder)| target.starts_with(folder))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::host::paths::Root;

    fn marks(folder: &Path, booted: Option<SystemTime>) -> Marks {
        Marks::new(Owner::of(&Root::new(Some(folder.to_owned()))), booted)
    }

    /// A folder on disk and not in memory, provided that the build folder is on disk.
    fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
    }

    fn ignored(mark: &Mark, why: &str) -> bool {
        matches!(mark, Mark::Ignored(text) if text.contains(why))
    }

    #[test]
    fn only_a_regular_file_counts_and_a_link_only_inside_its_directory() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("in")).unwrap();
        fs::write(at("out"), "").unwrap();
        fs::write(at("in/file"), "").unwrap();
        fs::create_dir(at("in/folder")).unwrap();
        symlink("file", at("in/near")).unwrap();
        symlink("../out", at("in/far")).unwrap();
        symlink("nowhere", at("in/lost")).unwrap();
        let mut marks = marks(folder.path(), None);
        assert!(matches!(marks.look(&at("in/file")), Mark::There(_)));
        assert!(matches!(marks.look(&at("in/near")), Mark::There(_)));
        assert!(ignored(&marks.look(&at("in/far")), "a link out of its directory"));
        assert!(ignored(&marks.look(&at("in/lost")), "a link"));
        assert!(ignored(&marks.look(&at("in/folder")), "not a regular file"));
        assert_eq!(marks.look(&at("in/absent")), Mark::Absent);
        assert_eq!(marks.look(&at("out/below")), Mark::Absent);
    }

    #[test]
    fn a_file_of_another_owner_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sentinel");
        fs::write(&path, "").unwrap();
        let mut marks = Marks::new(Owner::other_than(&path), None);
        assert!(ignored(&marks.look(&path), "another user"));
    }

    #[test]
    fn a_file_of_an_earlier_boot_is_ignored_unless_it_appeared_meanwhile() {
        let folder = folder();
        let path = folder.path().join("sentinel");
        let booted = SystemTime::now() - Duration::from_mins(1);
        let write_old = || {
            File::create(&path).unwrap().set_modified(booted - Duration::from_hours(1)).unwrap();
        };
        write_old();
        assert!(on_disk(&path), "the build is on a disk");
        let mut marks = marks(folder.path(), Some(booted));
        assert!(ignored(&marks.look(&path), "older than this boot"));
        fs::remove_file(&path).unwrap();
        assert_eq!(marks.look(&path), Mark::Absent);
        write_old();
        assert!(matches!(marks.look(&path), Mark::There(_)));
    }

    #[test]
    fn of_several_one_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let mut marks = marks(folder.path(), None);
        let both = [first, second.clone()];
        assert_eq!(marks.look_at_any(&both), Mark::Absent);
        fs::write(&second, "").unwrap();
        assert!(matches!(marks.look_at_any(&both), Mark::There(_)));
    }
}
