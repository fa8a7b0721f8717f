//! systemd units: written, enabled, and queried.

use super::task::{Failure, Task};
use crate::clock::{self, Moment};

const KUBELET: &str = "\
[Unit]
Description=kubelet
Wants=network-online.target
After=network-online.target containerd.service

[Service]
ExecStart=/usr/local/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
";

/// The name that packages use, so that this file replaces theirs.
const KUBELET_SETTINGS: &str = "\
[Service]
Environment=\"KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf\"
Environment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml\"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS
";

const CONTAINERD: &str = "\
[Unit]
Description=containerd
After=network.target local-fs.target

[Service]
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
";

/// The state of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    /// `active`, `activating`, `failed`, ...
    pub(super) active: String,
    /// How often systemd restarted the unit.
    pub(super) restarts: String,
}

impl Unit {
    /// Queries systemd.
    pub(super) fn ask(task: &Task<'_>, name: &str) -> Self {
        let said = task.ask("systemctl", &["show", "--property=ActiveState,NRestarts", "--", name]);
        let value = |key: &str| {
            let line = said.out.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_default().trim().to_owned()
        };
        Self { active: value("ActiveState"), restarts: value("NRestarts") }
    }

    pub(super) fn is_active(&self) -> bool {
        self.active == "active"
    }
}

/// Writes the unit of kubelet; kubeadm starts the unit.
pub(super) fn kubelet(task: &mut Task<'_>) -> Result<(), Failure> {
    let drop_in = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf";
    let mut written = task.put("/etc/systemd/system/kubelet.service", KUBELET.as_bytes(), 0o644)?;
    written |= task.put(drop_in, KUBELET_SETTINGS.as_bytes(), 0o644)?;
    enabled(task, "kubelet.service", written)
}

/// Writes the unit of containerd. Returns true if the file changed.
pub(super) fn containerd(task: &mut Task<'_>) -> Result<bool, Failure> {
    let path = "/etc/systemd/system/containerd.service";
    let written = task.put(path, CONTAINERD.as_bytes(), 0o644)?;
    enabled(task, "containerd.service", written)?;
    Ok(written)
}

/// Makes systemd load the unit file as written, and enables the unit.
pub(super) fn enabled(task: &mut Task<'_>, unit: &str, written: bool) -> Result<(), Failure> {
    if written {
        task.have("systemctl", &["daemon-reload"])?;
        task.did(format!("{unit} is written"));
    }
    let state = task.ask("systemctl", &["is-enabled", unit]).out.trim().to_owned();
    if state == "masked" {
        task.have("systemctl", &["unmask", unit])?;
    }
    if state != "enabled" {
        task.have("systemctl", &["enable", unit])?;
        task.did(format!("{unit} is enabled"));
    }
    Ok(())
}

/// Waits until a unit is active and stays active for a while: systemd restarts a unit that ends at once again
/// and again, and such a unit is active in between.
pub(super) fn wait_until_active(
    task: &mut Task<'_>,
    name: &str,
    limit: std::time::Duration,
) -> Result<(), Failure> {
    let begun = Moment::now();
    let pause = task.pause().min(std::time::Duration::from_secs(1));
    let mut before: Option<Unit> = None;
    loop {
        let unit = Unit::ask(task, name);
        if unit.is_active() && before.as_ref() == Some(&unit) {
            return Ok(());
        }
        if begun.elapsed() >= limit || task.left().is_zero() {
            let seconds = begun.elapsed().as_secs();
            let Unit { active, restarts } = unit;
            let error = format!(
                "{name} is not active after {seconds} s: {active}, started again {restarts} times"
            );
            return Err(Failure { late: true, ..Failure::unexplained(error) });
        }
        before = Some(unit);
        clock::pause(pause);
    }
}
