//! Files on Linux.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::host::linux::store::write_new;
pub(crate) use crate::host::linux::store::{directory_for as directory, head};

/// Replaces a file with another one.
pub(crate) fn replace(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Opens a log to append to it; does not follow a link.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    crate::host::linux::store::append(path, 0o644)
}

/// Writes a file atomically, readable for root only. Several waits may write the file at once, so each uses a
/// temporary name of its own.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    self::directory(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = directory.join(format!(".{name}.{}", std::process::id()));
    let written = write_new(&beside, content, 0o600).and_then(|file| file.sync_all());
    let written = written.and_then(|()| replace(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
        return written;
    }
    File::open(directory)?.sync_all()
}
