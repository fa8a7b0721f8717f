//! Files on Windows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::windows::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::api;

/// The time that another process needs to finish reading one of our files.
const OTHERS_READ: Duration = Duration::from_secs(2);

/// Writes a file atomically, in a directory that only SYSTEM and Administrators may read. Several waits may
/// write the file at once, so each uses a temporary name of its own.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    self::directory(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = directory.join(format!(".{name}.{}", std::process::id()));
    let written = write_new(&beside, content).and_then(|()| replace(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Replaces a file with another one. Windows refuses this as long as another process reads the old file.
pub(crate) fn replace(from: &Path, to: &Path) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match fs::rename(from, to) {
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && begun.elapsed() < OTHERS_READ =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}

/// Creates our directory and our directories above it, for SYSTEM and Administrators only.
pub(crate) fn directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    match directory.parent() {
        Some(parent) if parent.ends_with("bringup-node") => self::directory(parent)?,
        Some(parent) => fs::create_dir_all(parent)?,
        None => {}
    }
    api::create_private_directory(directory)
}

/// Opens a file to append to it; does not follow a link.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
    let mut how = OpenOptions::new();
    how.append(true).create(true).custom_flags(OPEN_REPARSE_POINT);
    let file = how.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a file of ours")) }
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// The last `limit` bytes of a file as text.
pub(crate) fn tail(path: &Path, limit: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    text(file, limit)
}

/// A small file as text; `limit` bytes at most.
pub(crate) fn head(path: &Path, limit: u64) -> io::Result<String> {
    text(File::open(path)?, limit)
}

fn text(file: File, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
