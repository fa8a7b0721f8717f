//! The last step before the node is reported as ready: checks again everything that other programs may have
//! changed since its step, and installs a watch for later changes.

use super::containerd;
use super::kubeadm;
use super::task::{Failure, Task};
use super::units;

const WATCH: &str = "bringup-containerd.path";

const WATCH_UNIT: &str = "\
[Unit]
Description=Watches the configuration of containerd, which operators of GPUs rewrite

[Path]
PathChanged=/etc/containerd/conf.d
PathChanged=/etc/containerd/config.toml
TriggerLimitIntervalSec=60
TriggerLimitBurst=10

[Install]
WantedBy=multi-user.target
";

/// The number of lines that are read from a journal.
const LINES: &str = "--lines=200";

pub(super) fn run(task: &mut Task<'_>) -> Result<(), Failure> {
    watch(task)?;
    blank_path(task);
    containerd::settle(task)?;
    kubeadm::kubelet(task)
}

fn watch(task: &mut Task<'_>) -> Result<(), Failure> {
    let folder = task.root().at("/etc/containerd/conf.d");
    crate::host::linux::store::directory_for(&folder)
        .map_err(|error| Failure::of_file(task.root(), &folder, &error))?;
    let program = std::env::current_exe().map_or_else(
        |_| "/usr/local/bin/bringup-node".to_owned(),
        |path| path.display().to_string(),
    );
    let service = format!(
        "[Unit]\nDescription=Corrects the configuration of containerd\n\n[Service]\nType=oneshot\nExecStart={program} join --repair-containerd\n"
    );
    let path = format!("/etc/systemd/system/{WATCH}");
    let mut written = task.put(&path, WATCH_UNIT.as_bytes(), 0o644)?;
    written |=
        task.put("/etc/systemd/system/bringup-containerd.service", service.as_bytes(), 0o644)?;
    units::enabled(task, WATCH, written)?;
    if !units::Unit::ask(task, WATCH).is_active() {
        task.have("systemctl", &["start", WATCH])?;
    }
    Ok(())
}

/// Whether pods have failed because of a blank path of network plugins. This evidence is recorded before the
/// path is corrected.
fn blank_path(task: &mut Task<'_>) {
    for unit in ["containerd.service", "kubelet.service"] {
        let said = task
            .ask("journalctl", &["--no-pager", "--boot", "--output=cat", LINES, "--unit", unit]);
        let line = said.out.lines().rfind(|line| is_blank_path(line));
        if let Some(line) = line {
            let line = line[..line.floor_char_boundary(300)].to_owned();
            task.saw(format!("{unit} had no path of network plugins: {line}"));
        }
    }
}

fn is_blank_path(line: &str) -> bool {
    line.contains("failed to find plugin") && line.contains("in path []")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_52_a_plugin_that_is_looked_for_nowhere_is_recognised() {
        assert!(is_blank_path(
            "plugin type=\"azure-vnet\": failed to find plugin \"azure-vnet\" in path []"
        ));
        assert!(!is_blank_path("failed to find plugin \"azure-vnet\" in path [/opt/cni/bin]"));
    }
}
