//! Windows: processes, services, files, clocks, cloudbase-init.

mod alarm;
pub(crate) mod api;
pub(crate) mod background;
mod bootstrap;
pub(crate) mod files;
mod logs;

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use jiff::Timestamp;

pub(crate) use self::alarm::Alarm;
pub(crate) use self::bootstrap::Observer;
use crate::capi::memory::{Identity, Now};
use crate::capi::settings::Watched;
use crate::host::paths::Root;

/// The system, as the diagnosis names it.
pub(crate) const OS: bringup_contract::Os = bringup_contract::Os::Windows;

/// The longest wait for a console that does not accept a line.
const CONSOLE: Duration = Duration::from_secs(2);

/// The paths that `wait` and `extension` use.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    root: Root,
    pub(crate) settings: PathBuf,
    /// The state of a wait.
    pub(crate) state: PathBuf,
    pub(crate) report: PathBuf,
    /// The folder for the state of the VM extension.
    pub(crate) extension: PathBuf,
    pub(crate) sentinel: PathBuf,
    /// Exists when the scripts of AKS have ended.
    pub(crate) aks_complete: PathBuf,
    /// The result of the scripts of AKS, which is in the same file.
    pub(crate) aks_result: PathBuf,
    /// The log of the scripts of AKS.
    pub(crate) aks_log: PathBuf,
    cloudbase_log: PathBuf,
    user_data: PathBuf,
    kubelet_settings: PathBuf,
}

impl Places {
    pub(crate) fn under(root: &Root) -> Self {
        let at = |path: &str| on_system_disk(root, path);
        Self {
            settings: at(r"ProgramData\bringup-node\wait.toml"),
            state: at(r"ProgramData\bringup-node\wait.json"),
            report: at(r"ProgramData\bringup-node\report.json"),
            extension: at(r"ProgramData\bringup-node\ext"),
            sentinel: at(r"run\cluster-api\bootstrap-success.complete"),
            aks_complete: at(r"AzureData\provision.complete"),
            aks_result: at(r"AzureData\provision.complete"),
            aks_log: at(r"AzureData\CustomDataSetupScript.log"),
            cloudbase_log: at(
                r"Program Files\Cloudbase Solutions\Cloudbase-Init\log\cloudbase-init.log",
            ),
            user_data: at(r"AzureData\CustomData.bin"),
            kubelet_settings: at(r"etc\kubernetes\kubelet.conf"),
            root: root.clone(),
        }
    }

    /// The path for messages, without the root.
    pub(crate) fn told(&self, path: &Path) -> String {
        let inside = self.root.directory().and_then(|root| path.strip_prefix(root).ok());
        inside.map_or_else(
            || path.display().to_string(),
            |inside| format!(r"C:\{}", inside.display()),
        )
    }

    /// Directories in which a file may appear that ends a bootstrap.
    pub(crate) fn watched(&self, watched: &Watched) -> Vec<PathBuf> {
        let file = match watched {
            Watched::Aks => &self.aks_complete,
            Watched::CloudbaseInit => &self.cloudbase_log,
            Watched::CloudInit | Watched::Unit(_) => return Vec::new(),
        };
        file.parent().map(Path::to_owned).into_iter().collect()
    }
}

fn on_system_disk(root: &Root, path: &str) -> PathBuf {
    root.directory().unwrap_or(Path::new(r"C:\")).join(path)
}

/// The accounts that may write a sentinel: SYSTEM and Administrators; under a root, the owner of
/// that directory.
#[derive(Debug, Clone)]
pub(crate) struct Owner(Vec<String>);

impl Owner {
    pub(crate) fn of(root: &Root) -> Self {
        Self(match root.directory() {
            Some(folder) => api::owner(folder).into_iter().collect(),
            None => ["S-1-5-18", "S-1-5-32-544"].map(str::to_owned).to_vec(),
        })
    }

    /// Whether the owner wrote a file.
    pub(crate) fn wrote(&self, path: &Path, _data: &Metadata) -> bool {
        api::owner(path).is_some_and(|owner| self.0.contains(&owner))
    }
}

/// Whether a file survives a reboot: every file does.
pub(crate) fn on_disk(_path: &Path) -> bool {
    true
}

/// The default value of `--watch`.
pub(crate) fn usual_watch() -> Watched {
    Watched::CloudbaseInit
}

/// Whether this bootstrap program is installed.
pub(crate) fn can_watch(watched: &Watched) -> bool {
    match watched {
        Watched::CloudbaseInit | Watched::Aks => true,
        Watched::CloudInit | Watched::Unit(_) => false,
    }
}

/// The identity of this machine. A generalised image gets a new computer name.
pub(crate) fn identity(root: &Root) -> Identity {
    let name = || api::registry_text(r"SOFTWARE\Microsoft\Cryptography", "MachineGuid");
    let machine = if root.directory().is_none() { name() } else { None };
    Identity { machine, instance: None }
}

/// The readings of the clocks. Windows counts its boots.
pub(crate) fn now(_root: &Root) -> Now {
    let boots = api::registry_number(
        r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters",
        "BootId",
    );
    Now {
        clock: api::unbiased_time(),
        up: api::uptime(),
        wall: Timestamp::now(),
        boot: boots.map(|boots| format!("boot-{boots}")),
    }
}

/// Whether a process is another `wait`; Windows does not check this.
pub(crate) fn waits_as(_pid: u32) -> bool {
    false
}

/// The number of free bytes on the disk of logs and state.
pub(crate) fn disk_free(root: &Root) -> Option<u64> {
    api::disk_free(&on_system_disk(root, ""))
}

/// Windows does not show the host's clock.
pub(crate) fn clock_skew_ms(_root: &Root) -> Option<i64> {
    None
}

/// Writes a line to the first serial port. Does not wait for a port that accepts no data.
pub(crate) fn write_to_console(root: &Root, line: &str) -> io::Result<()> {
    // Even under a root, COM1 would be the port: the name is reserved in every directory.
    let port =
        root.directory().map_or_else(|| PathBuf::from(r"\\.\COM1"), |root| root.join("console"));
    let line = format!("\r\n{line}\r\n");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let port = OpenOptions::new().append(true).open(port);
        let _ = sender.send(port.and_then(|mut port| port.write_all(line.as_bytes())));
    });
    receiver.recv_timeout(CONSOLE).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
