use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixSocket};

use super::error::ListenError;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 128;
/// The mode of the socket's file: only processes of the same user may connect.
const MODE: u32 = 0o600;

/// The file of a socket. Dropping this value removes the file, unless another process has replaced it.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// The file's device and inode numbers.
    identity: Option<(u64, u64)>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            // The next process that starts replaces a remaining file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Listens on a socket for processes of the same user. Replaces a socket on which no process listens any
/// more.
pub(super) fn listen(path: &Path) -> Result<(UnixListener, SocketFile), ListenError> {
    clear(path)?;
    let failed = |source| ListenError::Bind { address: path.display().to_string(), source };
    let socket = UnixSocket::new_stream().map_err(failed)?;
    socket.bind(path).map_err(failed)?;
    let file = SocketFile { path: path.to_owned(), identity: identity(path) };
    // Set before any client can connect, which is possible from `listen` on.
    fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(failed)?;
    let listener = socket.listen(BACKLOG).map_err(failed)?;
    Ok((listener, file))
}

fn clear(path: &Path) -> Result<(), ListenError> {
    let failed = |source| ListenError::Bind { address: path.display().to_string(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(ListenError::NotASocket { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(_) => Err(ListenError::Occupied { path: path.to_owned() }),
    }
}
