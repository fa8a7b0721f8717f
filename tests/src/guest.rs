//! The inside of a simulated VM: a folder that becomes the root of a machine with processes, a name and a
//! network of its own, in which the real boothook starts the real agent with stub scripts.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use bringup_testbed::requirement::skip;
use tempfile::TempDir;

/// The folder of the scripts that boot the machine.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/guest");
/// The folder of the agent and the scripts on images of AKS.
const HOME: &str = "/opt/azure/containers";

/// Whether machines can be booted here: some systems do not allow user namespaces. Otherwise prints why the
/// test of `requirement` is skipped.
pub fn can_boot(requirement: &str) -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    let works = *WORKS.get_or_init(|| {
        let tried = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "--pid", "--uts", "--net", "--ipc"])
            .args(["--fork", "true"])
            .output();
        tried.is_ok_and(|tried| tried.status.success())
    });
    if !works {
        skip(requirement, "this system has no user namespaces (unshare), which a guest needs");
    }
    works
}

/// A machine that has not booted yet.
#[derive(Debug)]
pub struct Guest {
    folder: TempDir,
}

impl Guest {
    /// A machine in the state of its image, with `agent` as its provisioner. `script` replaces its bootstrap
    /// scripts, and determines their result.
    pub fn new(agent: &Path, script: &str) -> Result<Self> {
        let guest = Self { folder: tempfile::tempdir().context("make the machine's folder")? };
        for folder in ["usr", "local/bin", "proc", "run", "dev", "tmp", "root", "var/log/azure/aks"]
        {
            std::fs::create_dir_all(guest.at(folder)).context("make a folder of the machine")?;
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            std::os::unix::fs::symlink(format!("usr/{name}"), guest.at(name))
                .context("link a folder of the machine")?;
        }
        // Programs that the image contains and this host may lack.
        for name in ["systemctl", "containerd", "runc", "python3", "jq", "nslookup", "nc"] {
            guest.program(&format!("local/bin/{name}"), "exit 0")?;
        }
        guest.file("boot/guest.sh", &std::fs::read_to_string(format!("{SCRIPTS}/guest.sh"))?)?;
        guest.file("etc/hostname", "aks-node\n")?;
        guest.file("etc/os-release", "ID=azurelinux\nVERSION_ID=\"3.0\"\n")?;
        guest.file("etc/resolv.conf", "nameserver 168.63.129.16\n")?;
        guest.file("sys/class/dmi/id/product_uuid", "5a0e3b7c-0000-4000-8000-000000000001\n")?;
        guest.file("opt/azure/vhd-install.complete", "")?;
        guest.file("opt/azure/components.json", "{}")?;
        guest.program(&format!("{HOME}/provision.sh"), "exit 0")?;
        guest.program(&format!("{HOME}/provision_start.sh"), script)?;
        std::fs::copy(agent, guest.at(&format!("{HOME}/aks-node-controller")))
            .with_context(|| format!("install {}", agent.display()))?;
        let unit = include_str!("../../crates/node/units/aks-node-controller.service");
        guest.file("etc/systemd/system/aks-node-controller.service", unit)?;
        let launcher = include_str!("../../crates/node/units/aks-node-controller-launcher.sh");
        guest.executable(&format!("{HOME}/aks-node-controller-launcher.sh"), launcher)?;
        Ok(guest)
    }

    /// The path on this host of a path in the machine.
    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    /// Writes a file in the machine.
    pub fn file(&self, path: &str, text: &str) -> Result<()> {
        let path = self.at(path);
        let folder = path.parent().context("a file is in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    }

    /// Writes a shell script in the machine.
    pub fn program(&self, path: &str, script: &str) -> Result<()> {
        self.executable(path, &format!("#!/bin/bash\n{script}\n"))
    }

    fn executable(&self, path: &str, text: &str) -> Result<()> {
        self.file(path, text)?;
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(0o755))
            .context("make it executable")
    }

    /// Gives the machine a /var of this size, such as `24m`.
    pub fn with_small_var(self, size: &str) -> Result<Self> {
        self.file("var-size", size)?;
        Ok(self)
    }

    /// The content of a file in the machine.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_default()
    }

    /// A scenario in which this machine boots for every VM.
    pub fn scenario(&self) -> String {
        let folder = self.folder.path().display();
        format!(
            "rules: [{{name: all, boot: {{script: {{runs: [bash, \"{SCRIPTS}/boot.sh\", \"{folder}\"]}}}}}}]"
        )
    }
}
