//! Writes files so that no reader ever sees a partial file, or a file that other users may read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::crash_points;

/// Writes a file atomically, readable for root only: the new file is created beside the old one, flushed, and
/// renamed.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    directory_for(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The temporary name is always the same: the next writer removes the file of a killed writer.
    let beside = directory.join(format!(".{name}.new"));
    let written = write_new(&beside, content, 0o600).and_then(|file| {
        crash_points::reached(format_args!("flush {}", beside.display()));
        file.sync_all()?;
        rename(&beside, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&beside);
        return written;
    }
    flush(directory)
}

/// Creates a file with a mode that no umask changes; fails if the file exists.
pub(crate) fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<File> {
    let _ = fs::remove_file(path);
    crash_points::reached(format_args!("make {}", path.display()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    crash_points::reached(format_args!("write {}", path.display()));
    file.write_all(content)?;
    Ok(file)
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    crash_points::reached(format_args!("rename to {}", to.display()));
    fs::rename(from, to)
}

/// Ensures that names in a directory survive a power failure.
fn flush(directory: &Path) -> io::Result<()> {
    crash_points::reached(format_args!("flush {}", directory.display()));
    File::open(directory)?.sync_all()
}

/// Creates a directory. Our own directories are for root only; others get the usual mode.
pub(crate) fn directory_for(directory: &Path) -> io::Result<()> {
    let ours = directory.ancestors().any(|part| part.ends_with("bringup-node"));
    let mode = if ours { 0o700 } else { 0o755 };
    if directory.is_dir() {
        return Ok(());
    }
    crash_points::reached(format_args!("make {}", directory.display()));
    DirBuilder::new().recursive(true).mode(mode).create(directory)
}

/// The last `limit` bytes of a file as text.
pub(crate) fn tail(path: &Path, limit: u64) -> io::Result<String> {
    let mut file = open_regular(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A small file as text; `limit` bytes at most.
pub(crate) fn head(path: &Path, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A whole file; an error if it has more than `limit` bytes.
pub(crate) fn bytes(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let large = |length: u64| length > limit as u64;
    let mut bytes = Vec::new();
    if large(file.metadata()?.len()) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // The file may grow while it is read.
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if large(bytes.len() as u64) { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// A pipe or device in place of a file would block the reader forever. If one appears at this very moment,
/// opening it does not block, and the check below detects it.
fn open_regular(path: &Path) -> io::Result<File> {
    let regular = |data: &fs::Metadata| match data.file_type() {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        _ => Err(io::Error::other("not a regular file")),
    };
    regular(&fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(at_once()).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Opens a file to append to it. Does not follow a link and refuses a file of another user or a special file:
/// a user who can write to the folder could have created it.
pub(crate) fn append(path: &Path, mode: u32) -> io::Result<File> {
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut how = OpenOptions::new();
    how.append(true).create(true).mode(mode).custom_flags(at_once() | no_link);
    let file = how.open(path)?;
    let data = file.metadata()?;
    if data.is_file() && data.uid() == rustix::process::geteuid().as_raw() {
        Ok(file)
    } else {
        Err(io::Error::other("not a file of ours"))
    }
}

/// The flag that prevents `open` from blocking, whatever the path is.
pub(crate) fn at_once() -> i32 {
    i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default()
}

/// The content of a file with one line, trimmed; `None` if it is empty or cannot be read.
pub(crate) fn line(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    open_regular(path).ok()?.take(4096).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Removes a file; a missing file is not an error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    crash_points::reached(format_args!("remove {}", path.display()));
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The number of sets of old results that are preserved.
const KEPT: usize = 3;

/// Moves existing files into a new folder of `into`, which preserves the last three folders.
pub(crate) fn set_aside(files: &[PathBuf], into: &Path, name: &str) -> io::Result<()> {
    let folder = into.join(name);
    directory_for(&folder)?;
    for file in files.iter().filter(|file| file.symlink_metadata().is_ok()) {
        let target = folder.join(file.file_name().unwrap_or_default());
        // `rename` fails across file systems: /opt and /var may be on two.
        if rename(file, &target).is_err() {
            write(&target, &fs::read(file)?)?;
            remove(file)?;
        }
        flush(file.parent().unwrap_or(into))?;
    }
    flush(&folder)?;
    let mut kept: Vec<PathBuf> =
        fs::read_dir(into)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    kept.sort();
    for old in kept.iter().rev().skip(KEPT) {
        crash_points::reached(format_args!("remove {}", old.display()));
        fs::remove_dir_all(old)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_for_root_only_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bringup-node/a/run.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let parent = path.parent().unwrap();
        assert_eq!(fs::metadata(parent).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(parent).unwrap().count(), 1);
    }

    #[test]
    fn a_log_is_not_opened_through_a_link_nor_where_something_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        append(&at("log"), 0o644).unwrap().write_all(b"one ").unwrap();
        append(&at("log"), 0o644).unwrap().write_all(b"two").unwrap();
        assert_eq!(fs::read(at("log")).unwrap(), b"one two");
        fs::write(at("target"), "mine").unwrap();
        std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("absent"), at("dangling")).unwrap();
        for name in ["link", "dangling"] {
            assert!(append(&at(name), 0o644).is_err(), "{name}");
        }
        assert!(append(Path::new("/dev/null"), 0o644).is_err(), "a device");
        assert_eq!(fs::read(at("target")).unwrap(), b"mine");
        assert!(!at("absent").exists());
    }

    #[test]
    fn the_last_three_sets_of_old_results_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (file, into) = (folder.path().join("result"), folder.path().join("previous"));
        for name in ["1", "2", "3", "4"] {
            fs::write(&file, name).unwrap();
            set_aside(&[file.clone(), folder.path().join("absent")], &into, name).unwrap();
        }
        assert!(!file.exists() && !into.join("1").exists());
        assert_eq!(fs::read_to_string(into.join("4/result")).unwrap(), "4");
        assert_eq!(fs::read_dir(&into).unwrap().count(), 3);
    }

    #[test]
    fn a_long_log_is_read_from_its_end_whatever_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, [b"long ago ".as_slice(), &[0xff, b'o', b'k']].concat()).unwrap();
        assert_eq!(tail(&path, 3).unwrap(), "\u{fffd}ok");
    }
}
