//! The simulated insides of flex machines: each VM boots by running the real `bringup-node join` in a folder
//! of its own, with the stub programs that the tests of the join use too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::downloads::Downloads;
use super::registration::Registration;

/// The script that boots a machine.
const BOOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/guest/join.sh");
/// The version that the shared stubs report.
const STUB_VERSION: &str = "1.34.2";

macro_rules! stub {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../crates/node/tests/join_common/", $name, ".sh")))
    };
}

/// Programs of the image.
const PROGRAMS: [(&str, &str); 9] = [
    stub!("apt-get"),
    stub!("systemctl"),
    stub!("iptables"),
    stub!("sysctl"),
    ("curl", "exec /usr/bin/curl --noproxy '*' \"$@\""),
    ("tar", "exec env PATH=/usr/bin:/bin tar \"$@\""),
    (
        "modprobe",
        "[ ! -e $R/no-modules ] || { echo \"modprobe: ERROR: could not insert '$1': Key was rejected by service\" >&2; exit 1; }",
    ),
    ("swapoff", "head -n 1 $R/proc/swaps >$R/proc/swaps.new; mv $R/proc/swaps.new $R/proc/swaps"),
    ("journalctl", "true"),
];

/// Files of the image.
const FILES: [(&str, &str); 11] = [
    ("etc/os-release", "ID=ubuntu\nVERSION_ID=\"22.04\"\n"),
    ("proc/swaps", "Filename Type Size\n/swapfile file 1\n"),
    ("proc/sys/kernel/random/boot_id", "0123456789abcdef\n"),
    ("sys/class/dmi/id/product_uuid", "AAAA-1\n"),
    ("etc/fstab", "UUID=1 / ext4 defaults 0 1\n/swapfile none swap sw 0 0\n"),
    ("etc/resolv.conf", "nameserver 127.0.0.53\n"),
    ("run/systemd/resolve/resolv.conf", "nameserver 168.63.129.16\n"),
    ("rules/filter", "-P INPUT ACCEPT\n-P FORWARD DROP\n-A FORWARD -j DOCKER\n"),
    ("rules/nat", "-P OUTPUT ACCEPT\n"),
    ("rules/mangle", ""),
    ("dev/console", ""),
];

/// A defective image: the kernel loads no modules, and the join reports that.
pub const NO_MODULES: &str = "no-modules";

/// The simulated insides of all machines of a test bed.
#[derive(Debug)]
pub struct Guests {
    image: PathBuf,
    machines: PathBuf,
    downloads: Downloads,
    /// Versions and checksums of the downloads, by name.
    served: BTreeMap<String, (String, String)>,
}

impl Guests {
    /// Prepares the image and the downloads in `folder`, for a cluster of this version, with `agent` as the
    /// real agent.
    pub async fn prepare(folder: &Path, agent: &Path, version: &str) -> Result<Self> {
        let version = version.trim_start_matches('v');
        let (image, machines) = (folder.join("image"), folder.join("machines"));
        fs::create_dir_all(&machines).context("make the folder of the machines")?;
        for (path, text) in FILES {
            write(&image.join(path), text, 0o644)?;
        }
        for (name, body) in PROGRAMS {
            write(&image.join("usr/bin").join(name), &script(body), 0o755)?;
        }
        write(&image.join("kubeadm-does"), include_str!("../../guest/kubeadm-join.sh"), 0o644)?;
        let files = served(folder, agent, version)?;
        let named = files
            .iter()
            .map(|(name, (version, bytes))| (name.clone(), (version.clone(), sha256(bytes))));
        let served = named.collect();
        let files = files.into_iter().map(|(name, (_, bytes))| (name, bytes)).collect();
        Ok(Self { image, machines, downloads: Downloads::serve(files).await?, served })
    }

    /// How a VM of a scenario boots from the image, or from a defective image such as [`NO_MODULES`]: the
    /// fields of `boot`.
    pub fn boot(&self, flaw: Option<&str>) -> String {
        let command: Vec<Value> = ["bash", BOOT]
            .into_iter()
            .map(Value::from)
            .chain([&self.image, &self.machines].map(|path| path.display().to_string().into()))
            .chain(flaw.map(Value::from))
            .collect();
        // The join determines whether a Node appears; `registration` checks that.
        format!(
            "agentReadyAfter: 1s, goneAfter: 3s, bootstrap: custom-data, node: {{joinsAfter: 0s}}, script: {{runs: {}}}",
            Value::from(command)
        )
    }

    /// The content of the `--flex-join` file.
    pub fn join_settings(&self, server: &str, authority: &[u8]) -> Value {
        let artifact = |name: &str| {
            let (version, sha256) = self.served.get(name).cloned().unwrap_or_default();
            json!({ "version": version, "url": self.downloads.url(name), "sha256": sha256 })
        };
        let names = ["containerd", "runc", "kubeadm", "kubelet", "kubectl"];
        let artifacts: BTreeMap<&str, Value> =
            names.into_iter().map(|name| (name, artifact(name))).collect();
        let agent = artifact("bringup-node");
        json!({
            "server": server,
            "certificateAuthorityData": STANDARD.encode(authority),
            "agent": { "url": agent["url"], "sha256": agent["sha256"] },
            "artifacts": artifacts,
        })
    }

    /// The registration of a VM's kubelet, if its join succeeded.
    pub fn registration(&self, vm: &str) -> Option<Registration> {
        let machine = self.machines.join(vm);
        if !machine.join("run/cluster-api/bootstrap-success.complete").exists() {
            return None;
        }
        Registration::read(&fs::read(machine.join("seen/join.json")).ok()?)
    }

    /// The folder of a machine, for tests that inspect it.
    pub fn machine(&self, vm: &str) -> PathBuf {
        self.machines.join(vm)
    }
}

/// The downloads, each with its version and its bytes.
fn served(
    folder: &Path,
    agent: &Path,
    version: &str,
) -> Result<BTreeMap<String, (String, Vec<u8>)>> {
    let (_, containerd) = stub!("containerd");
    let (_, kubeadm) = stub!("kubeadm");
    let ctr = "printf 'TYPE ID PLATFORMS STATUS\\nio.containerd.grpc.v1 cri - ok\\n'";
    let made = folder.join("made");
    write(&made.join("bin/containerd"), &script(containerd), 0o755)?;
    write(&made.join("bin/ctr"), &script(ctr), 0o755)?;
    let archive = folder.join("containerd.tar.gz");
    let packed =
        Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(&made).arg("bin").status();
    ensure!(packed.context("run tar")?.success(), "tar could not pack containerd");
    let archive = fs::read(&archive).context("read the archive of containerd")?;
    // The real agent, with the folder of its machine as an argument.
    let agent = format!(
        "#!/bin/sh\nroot=${{0%/usr/*}}\nexec '{}' --root \"$root\" \"$1\" \"$2\" \"$root$3\"\n",
        agent.display()
    );
    let text = |version: &str, text: String| (version.to_owned(), text.into_bytes());
    Ok(BTreeMap::from([
        ("containerd".to_owned(), ("2.1.4".to_owned(), archive)),
        ("runc".to_owned(), text("1.3.0", script("echo 'runc version 1.3.0'"))),
        ("kubeadm".to_owned(), text(version, script(&kubeadm.replace(STUB_VERSION, version)))),
        ("kubelet".to_owned(), text(version, script(&format!("echo 'Kubernetes v{version}'")))),
        (
            "kubectl".to_owned(),
            text(version, script(&format!("echo 'Client Version: v{version}'"))),
        ),
        ("bringup-node".to_owned(), text("", agent)),
    ]))
}

/// A stub program. `$R` is the folder of its machine.
fn script(body: &str) -> String {
    format!("#!/bin/bash\nR=${{0%/usr/*}}\n{body}\n")
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let folder = path.parent().context("a file is in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("set the mode of {}", path.display()))
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
