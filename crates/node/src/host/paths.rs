//! Where everything is. `--root` stands before every built-in path; a path that was given as a
//! flag is taken as it is.

use std::path::{Path, PathBuf};

/// The directory that stands for `/`.
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
    /// `KEY=VALUE` lines.
    features = "/opt/azure/containers/enabled_features.sh";
    /// The pointer to a newer agent.
    hotfix_pointer = "/opt/azure/containers/aks-node-controller-hotfix.json";
    /// The newer agent.
    hotfix_binary = "/opt/azure/containers/aks-node-controller-hotfix";
    /// What was installed as the newer agent.
    hotfix_record = "/var/lib/bringup-node/hotfix.json";
    /// Where the scripts and the marks are.
    containers = "/opt/azure/containers";
    /// The attempt is finished.
    complete = "/opt/azure/containers/provision.complete";
    /// The attempt succeeded.
    succeeded = "/opt/azure/containers/provision.succeeded";
    /// The attempt failed.
    failed = "/opt/azure/containers/provision.failed";
    /// Only the base of an image was prepared.
    base_prep = "/opt/azure/containers/base_prep.complete";
    /// The result.
    result = "/var/log/azure/aks/provision.json";
    /// The result, when the disk takes none.
    spare_result = "/run/bringup-node/result.json";
    /// The trace of the scripts.
    script_log = "/var/log/azure/cluster-provision.log";
    /// The outbound test.
    outbound_log = "/var/log/azure/cluster-provision-cse-output.log";
    /// Our log.
    log = "/var/log/azure/aks-node-controller.log";
    /// What the guest agent picks up.
    events = "/var/log/azure/Microsoft.Azure.Extensions.CustomScript/events";
    /// What is known of the attempt.
    run = "/var/lib/bringup-node/run.json";
    /// Results that do not count any more.
    previous = "/var/lib/bringup-node/previous";
    /// The report of the last attempt.
    report = "/var/log/bringup-node/provision-report.json";
    /// The report of the last join.
    join_report = "/var/log/bringup-node/join-report.json";
    /// A bootstrap succeeded, for programs that wait for one of any make.
    joined_sentinel = "/run/cluster-api/bootstrap-success.complete";
    /// A bootstrap failed.
    failed_sentinel = "/run/cluster-api/bootstrap-failed.json";
    /// One provisioner at a time.
    lock = "/run/bringup-node/provision.lock";
    /// One run of the scripts at a time.
    scripts_lock = "/run/bringup-node/scripts.lock";
    /// Our settings.
    settings = "/etc/bringup-node/config.toml";
    /// The drivers that the image has.
    components = "/opt/azure/components.json";
    /// Which system this is.
    os_release = "/etc/os-release";
    /// The packages of Debian's kind.
    dpkg_status = "/var/lib/dpkg/status";
    /// The image was built to the end.
    image_marker = "/opt/azure/vhd-install.complete";
    /// The name servers.
    resolv_conf = "/etc/resolv.conf";
    /// The name that this machine is to have.
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
    /// `None` is the machine itself.
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

    /// A path without the root, as it is to be told.
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
