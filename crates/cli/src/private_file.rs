//! Writes files that only their owner may read.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

const MODE: u32 = 0o600;

/// Writes a file that only its owner may read, even if the file exists with a wider mode. A symbolic link to
/// a file is refused: in a folder that others may write to, the link could point anywhere.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    // A pipe or a terminal, such as /dev/stdout, keeps its own mode and owner.
    if fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir()) {
        return fs::write(path, content);
    }
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut how = OpenOptions::new();
    how.write(true).create(true).truncate(false).mode(MODE).custom_flags(no_link);
    let mut file = how.open(path).map_err(|error| match path.symlink_metadata() {
        Ok(data) if data.is_symlink() => io::Error::other("it is a symbolic link"),
        _ => error,
    })?;
    // Set before the content is written. This call fails on a file of another user, who could read it.
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.set_len(0)?;
    file.write_all(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn stored_evidence_is_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let (new, wide) = (folder.path().join("new"), folder.path().join("wide"));
        fs::write(&wide, "something longer that was there before").unwrap();
        fs::set_permissions(&wide, Permissions::from_mode(0o666)).unwrap();
        for path in [&new, &wide] {
            write(path, b"evidence").unwrap();
            assert_eq!(fs::read(path).unwrap(), b"evidence");
            assert_eq!(mode(path), 0o600, "{}", path.display());
        }
    }

    #[test]
    fn a_link_to_a_file_is_not_followed_and_a_pipe_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "mine").unwrap();
        for to in [&target, &folder.path().join("absent")] {
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(to, &link).unwrap();
            let refused = write(&link, b"evidence").unwrap_err();
            assert!(refused.to_string().contains("symbolic link"), "{refused}");
        }
        assert_eq!(fs::read(&target).unwrap(), b"mine");
        write(Path::new("/dev/null"), b"evidence").unwrap();
    }
}
