//! Files: written so that nobody ever sees a part of one, or one that others may read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Writes a file as a whole, for root only: made beside its place, flushed, and renamed into it.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    directory_for(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = directory.join(format!(".{name}.{}", std::process::id()));
    let written = write_new(&beside, content).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
        return written;
    }
    File::open(directory)?.sync_all()
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Makes a directory. Our own are for root only; those of others are as others make them.
pub(crate) fn directory_for(directory: &Path) -> io::Result<()> {
    let ours = directory.ancestors().any(|part| part.ends_with("bringup-node"));
    let mode = if ours { 0o700 } else { 0o755 };
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

/// A pipe or device in the place of a file would make the reader wait for ever.
fn open_regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    File::open(path)
}

/// One line, without white space around it; nothing if it is empty or cannot be read.
pub(crate) fn line(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(4096).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Removes a file that may not be there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// How many sets of old results are kept.
const KEPT: usize = 3;

/// Moves files that are there into a new folder of `into`, which keeps the last three.
pub(crate) fn set_aside(files: &[PathBuf], into: &Path, name: &str) -> io::Result<()> {
    let folder = into.join(name);
    directory_for(&folder)?;
    for file in files.iter().filter(|file| file.symlink_metadata().is_ok()) {
        let target = folder.join(file.file_name().unwrap_or_default());
        // Another file system: /opt and /var may be two.
        if fs::rename(file, &target).is_err() {
            write(&target, &fs::read(file)?)?;
            fs::remove_file(file)?;
        }
    }
    let mut kept: Vec<PathBuf> =
        fs::read_dir(into)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    kept.sort();
    for old in kept.iter().rev().skip(KEPT) {
        fs::remove_dir_all(old)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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
