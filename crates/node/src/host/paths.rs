//! The paths of all files. `--root` is prepended to every built-in path; a path from a flag is used
//! unchanged.

use std::path::{Path, PathBuf};

/// The directory that is used as `/`.
#[derive(Debug, Clone)]
pub(crate) struct Root(Option<PathBuf>);

macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident = $path:literal;)*) => {
        impl Root {
            $($(#[$doc])* pub(crate) fn $name(&self) -> PathBuf { self.at($path) })*
        }
    };
}

paths! {
    /// The node configuration.
    configuration = "/opt/azure/containers/aks-node-controller-config.json";
    /// The ready-made command.
    nbc_command = "/opt/azure/containers/aks-node-controller-nbc-cmd.sh";
    /// Features: `KEY=VALUE` lines.
    features = "/opt/azure/containers/enabled_features.sh";
    /// The pointer to a newer agent.
    hotfix_pointer = "/opt/azure/containers/aks-node-controller-hotfix.json";
    /// The newer agent.
    hotfix_binary = "/opt/azure/containers/aks-node-controller-hotfix";
    /// The record of the newer agent's installation.
    hotfix_record = "/var/lib/bringup-node/hotfix.json";
    /// The folder of the scripts and the marks.
    containers = "/opt/azure/containers";
    /// Exists when the attempt is finished.
    complete = "/opt/azure/containers/provision.complete";
    /// Exists when the attempt succeeded.
    succeeded = "/opt/azure/containers/provision.succeeded";
    /// Exists when the attempt failed.
    failed = "/opt/azure/containers/provision.failed";
    /// Exists when only the base of an image was prepared.
    base_prep = "/opt/azure/containers/base_prep.complete";
    /// The result.
    result = "/var/log/azure/aks/provision.json";
    /// The result, if the disk is full.
    spare_result = "/run/bringup-node/result.json";
    /// The trace of the scripts.
    script_log = "/var/log/azure/cluster-provision.log";
    /// The log of the outbound test.
    outbound_log = "/var/log/azure/cluster-provision-cse-output.log";
    /// The log of this agent.
    log = "/var/log/azure/aks-node-controller.log";
    /// The events for the guest agent.
    events = "/var/log/azure/Microsoft.Azure.Extensions.CustomScript/events";
    /// The record of the current or last attempt.
    run = "/var/lib/bringup-node/run.json";
    /// Results of earlier attempts that no longer count.
    previous = "/var/lib/bringup-node/previous";
    /// The report of the last attempt.
    report = "/var/log/bringup-node/provision-report.json";
    /// The report of the last join.
    join_report = "/var/log/bringup-node/join-report.json";
    /// Tells programs that wait for any bootstrap that the bootstrap succeeded.
    joined_sentinel = "/run/cluster-api/bootstrap-success.complete";
    /// Tells the same programs that the bootstrap failed.
    failed_sentinel = "/run/cluster-api/bootstrap-failed.json";
    /// The lock that allows only one provisioner at a time.
    lock = "/run/bringup-node/provision.lock";
    /// The lock that allows only one run of the scripts at a time.
    scripts_lock = "/run/bringup-node/scripts.lock";
    /// The settings of this agent.
    settings = "/etc/bringup-node/config.toml";
    /// The components of the image, among them drivers.
    components = "/opt/azure/components.json";
    /// The name and version of the operating system.
    os_release = "/etc/os-release";
    /// The installed packages on Debian and Ubuntu.
    dpkg_status = "/var/lib/dpkg/status";
    /// Exists when the build of the image was completed.
    image_marker = "/opt/azure/vhd-install.complete";
    /// The name servers.
    resolv_conf = "/etc/resolv.conf";
    /// The intended name of this machine.
    hostname = "/etc/hostname";
    /// Changes with every boot.
    boot_id = "/proc/sys/kernel/random/boot_id";
    /// Differs between machines, also between copies of a disk.
    machine_id = "/sys/class/dmi/id/product_uuid";
    /// The instance that cloud-init sees.
    instance_id = "/var/lib/cloud/data/instance-id";
    /// The instance that cloud-init saw before.
    previous_instance_id = "/var/lib/cloud/data/previous-instance-id";
}

impl Root {
    /// `None` means `/`.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self(directory)
    }

    /// The directory, if it is not `/`.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// A path under the root.
    pub(crate) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        match &self.0 {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        }
    }

    /// A path for messages, without the root.
    pub(crate) fn told(&self, path: &Path) -> String {
        let inside = self.0.as_ref().and_then(|root| path.strip_prefix(root).ok());
        inside.map_or_else(|| path.display().to_string(), |inside| format!("/{}", inside.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_stands_before_built_in_paths_and_is_not_told() {
        let root = Root::new(Some("/tmp/x".into()));
        assert_eq!(root.lock(), Path::new("/tmp/x/run/bringup-node/provision.lock"));
        assert_eq!(root.told(&root.lock()), "/run/bringup-node/provision.lock");
        assert_eq!(
            Root::new(None).complete(),
            Path::new("/opt/azure/containers/provision.complete")
        );
    }
}
