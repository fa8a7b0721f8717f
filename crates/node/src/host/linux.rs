//! Linux: processes, files, clocks, systemd, cloud-init.

mod alarm;
pub(crate) mod background;
mod bootstrap;
mod cloud_init;
pub(crate) mod drain;
pub(crate) mod files;
pub(crate) mod lock;
mod logs;
pub(crate) mod process;
pub(crate) mod store;
pub(crate) mod subprocess;
mod systemd;
pub(crate) mod watch;

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rustix::fs::OFlags;
use rustix::time::{ClockId, DynamicClockId, clock_gettime, clock_gettime_dynamic};

pub(crate) use self::alarm::Alarm;
pub(crate) use self::bootstrap::Observer;
use crate::capi::memory::{Identity, Now};
use crate::capi::settings::Watched;
use crate::host::paths::Root;
use crate::run;

/// The system, as the diagnosis names it.
pub(crate) const OS: bringup_contract::Os = bringup_contract::Os::Linux;

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
    /// The result of the scripts of AKS.
    pub(crate) aks_result: PathBuf,
    /// The log of the scripts of AKS.
    pub(crate) aks_log: PathBuf,
    cloud_init_status: PathBuf,
    cloud_init_result: PathBuf,
    user_data: PathBuf,
    runcmd: PathBuf,
    output_log: PathBuf,
    cloud_init_log: PathBuf,
    kubelet_settings: PathBuf,
}

impl Places {
    pub(crate) fn under(root: &Root) -> Self {
        Self {
            settings: root.at("/etc/bringup-node/wait.toml"),
            state: root.at("/var/lib/bringup-node/wait.json"),
            report: root.at("/var/log/bringup-node/report.json"),
            extension: root.at("/var/lib/bringup-node/ext"),
            sentinel: root.at("/run/cluster-api/bootstrap-success.complete"),
            aks_complete: root.complete(),
            aks_result: root.result(),
            aks_log: root.script_log(),
            cloud_init_status: root.at("/run/cloud-init/status.json"),
            cloud_init_result: root.at("/run/cloud-init/result.json"),
            user_data: root.at("/var/lib/cloud/instance/user-data.txt"),
            runcmd: root.at("/var/lib/cloud/instance/scripts/runcmd"),
            output_log: root.at("/var/log/cloud-init-output.log"),
            cloud_init_log: root.at("/var/log/cloud-init.log"),
            kubelet_settings: root.at("/etc/kubernetes/kubelet.conf"),
            root: root.clone(),
        }
    }

    /// The path for messages, without the root.
    pub(crate) fn told(&self, path: &Path) -> String {
        self.root.told(path)
    }

    /// Directories in which a file may appear that ends a bootstrap.
    pub(crate) fn watched(&self, watched: &Watched) -> Vec<PathBuf> {
        let file = match watched {
            Watched::CloudInit => &self.cloud_init_result,
            Watched::Aks => &self.aks_complete,
            Watched::Unit(_) | Watched::CloudbaseInit => return Vec::new(),
        };
        file.parent().map(Path::to_owned).into_iter().collect()
    }
}

/// The user that may write a sentinel: root; under a root, the owner of that directory.
#[derive(Debug, Clone)]
pub(crate) struct Owner(u32);

impl Owner {
    pub(crate) fn of(root: &Root) -> Self {
        let uid = root.directory().and_then(|folder| fs::metadata(folder).ok());
        Self(uid.map_or(0, |data| data.uid()))
    }

    /// Whether the owner wrote a file.
    pub(crate) fn wrote(&self, _path: &Path, data: &Metadata) -> bool {
        data.uid() == self.0
    }

    /// A user other than the owner of a file.
    #[cfg(test)]
    pub(crate) fn other_than(path: &Path) -> Self {
        Self(fs::metadata(path).unwrap().uid() + 1)
    }
}

/// Whether a file survives a reboot: every file does that is not in memory.
pub(crate) fn on_disk(path: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    let kind = rustix::fs::statfs(path).map(|file_system| file_system.f_type);
    !matches!(kind, Ok(TMPFS | RAMFS))
}

/// The default value of `--watch`.
pub(crate) fn usual_watch() -> Watched {
    Watched::CloudInit
}

/// Whether this bootstrap program is installed.
pub(crate) fn can_watch(watched: &Watched) -> bool {
    match watched {
        Watched::CloudInit | Watched::Unit(_) | Watched::Aks => true,
        Watched::CloudbaseInit => false,
    }
}

pub(crate) fn identity(root: &Root) -> Identity {
    Identity {
        machine: run::Identity::observe(root).machine,
        instance: store::line(&root.instance_id()),
    }
}

pub(crate) fn now(root: &Root) -> Now {
    let clock = clock_gettime(ClockId::Boottime);
    let clock = Duration::try_from(clock).unwrap_or_default();
    let counted = store::line(&root.at("/proc/uptime"))
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let up = counted.unwrap_or(clock);
    Now { clock, up, wall: Timestamp::now(), boot: store::line(&root.boot_id()) }
}

/// Whether a process is another `wait`.
pub(crate) fn waits_as(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pid != std::process::id() && line.split(|byte| *byte == 0).any(|word| word == b"wait")
}

/// The number of free bytes on the disk of logs and state.
pub(crate) fn disk_free(root: &Root) -> Option<u64> {
    let space = rustix::fs::statvfs(root.at("/var")).or_else(|_| rustix::fs::statvfs(root.at("/")));
    space.ok().map(|space| space.f_bavail.saturating_mul(space.f_frsize))
}

/// How far this clock is ahead of the host's clock, which Hyper-V provides without any network.
pub(crate) fn clock_skew_ms(root: &Root) -> Option<i64> {
    if root.directory().is_some() {
        return None;
    }
    let device = fs::File::open("/dev/ptp_hyperv").ok()?;
    let host =
        clock_gettime_dynamic(DynamicClockId::Dynamic(std::os::fd::AsFd::as_fd(&device))).ok()?;
    let host = Duration::try_from(host).ok()?;
    let ours = SystemTime::UNIX_EPOCH.elapsed().ok()?;
    let milliseconds = |time: Duration| i64::try_from(time.as_millis()).ok();
    Some(milliseconds(ours)? - milliseconds(host)?)
}

/// Writes a line to the console. Does not wait for a console that accepts no data.
pub(crate) fn write_to_console(root: &Root, line: &str) -> io::Result<()> {
    let patient = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(patient.bits()).map_err(io::Error::other)?;
    let console = root.at("/dev/console");
    let mut console = OpenOptions::new().append(true).custom_flags(flags).open(console)?;
    // The console may already show a part of another program's line.
    console.write_all(format!("\n{line}\n").as_bytes())
}
