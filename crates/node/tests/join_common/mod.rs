//! A plain image in a folder: stub programs that behave like the real programs, as far as a join observes
//! them. `/calls` records their arguments.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

#[path = "../common/mod.rs"]
pub(crate) mod common;

use common::{Ended, Machine};

pub(crate) const TOKEN: &str = "qwerty.zyxw9876vuts5432";
pub(crate) const CONFIG: &str = "/etc/bringup-node/join.json";

/// Programs of the image.
const STUBS: &[(&str, &str)] = &[
    ("apt-get", include_str!("apt-get.sh")),
    ("systemctl", include_str!("systemctl.sh")),
    ("curl", include_str!("curl.sh")),
    ("iptables", include_str!("iptables.sh")),
    ("tar", "exec env PATH=/usr/bin:/bin tar \"$@\""),
    (
        "modprobe",
        "[ ! -e $R/no-modules ] || { echo \"modprobe: ERROR: could not insert '$1': Key was rejected by service\" >&2; exit 1; }",
    ),
    ("sysctl", include_str!("sysctl.sh")),
    ("swapoff", "head -n 1 $R/proc/swaps >$R/proc/swaps.new; mv $R/proc/swaps.new $R/proc/swaps"),
    ("journalctl", "cat $R/journal 2>/dev/null || true"),
];

/// A checksum in the format of configurations.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

pub(crate) struct Plain {
    pub(crate) machine: Machine,
    pub(crate) config: Value,
}

impl Plain {
    /// An image that needs every step.
    pub(crate) fn new() -> Self {
        let machine = Machine::new();
        for name in ["jq", "containerd", "runc", "oras"] {
            machine.remove(&format!("/usr/bin/{name}"));
        }
        for (path, text) in [
            ("/etc/os-release", "ID=ubuntu\nVERSION_ID=\"22.04\"\n"),
            ("/proc/swaps", "Filename Type Size\n/swapfile file 1\n"),
            ("/etc/fstab", "UUID=1 / ext4 defaults 0 1\n/swapfile none swap sw 0 0\n"),
            ("/etc/resolv.conf", "nameserver 127.0.0.53\n"),
            ("/run/systemd/resolve/resolv.conf", "nameserver 168.63.129.16\n"),
            ("/rules/filter", "-P INPUT ACCEPT\n-P FORWARD DROP\n-A FORWARD -j DOCKER\n"),
            ("/rules/nat", "-P OUTPUT ACCEPT\n"),
            ("/rules/mangle", ""),
            ("/dev/console", ""),
            ("/calls", ""),
        ] {
            machine.file(path, text);
        }
        let mut plain = Self { machine, config: Value::Null };
        for (name, body) in STUBS {
            plain.stub(&format!("/usr/bin/{name}"), body);
        }
        plain.serve_all();
        plain
    }

    /// Writes a stub program. `$R` is the folder of the machine.
    pub(crate) fn stub(&self, path: &str, body: &str) -> PathBuf {
        let name = path.rsplit('/').next().unwrap();
        let root = self.machine.at("/").display().to_string();
        let root = root.trim_end_matches('/');
        let text = format!("#!/bin/bash\nR='{root}'\necho \"{name} $*\" >>$R/calls\n{body}\n");
        let path = self.machine.file(path, &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Creates all downloads, and a configuration that refers to them.
    fn serve_all(&mut self) {
        let containerd = include_str!("containerd.sh");
        let ctr = "[ -e $R/no-cri ] && { echo TYPE; exit 0; }; printf 'TYPE ID PLATFORMS STATUS\\nio.containerd.grpc.v1 cri - ok\\n'";
        self.stub("/made/bin/containerd", containerd);
        self.stub("/made/bin/ctr", ctr);
        fs::create_dir_all(self.machine.at("/served")).unwrap();
        let archive = self.machine.at("/served/containerd");
        let packed = Command::new("tar")
            .arg("-czf")
            .arg(&archive)
            .arg("-C")
            .arg(self.machine.at("/made"))
            .arg("bin")
            .status();
        assert!(packed.unwrap().success());
        self.stub("/served/runc", "echo 'runc version 1.3.0'");
        self.stub("/served/kubelet", "echo 'Kubernetes v1.34.2'");
        self.stub("/served/kubectl", "echo 'Client Version: v1.34.2'");
        self.stub("/served/kubeadm", include_str!("kubeadm.sh"));
        let artifact = |name: &str, version: &str| {
            let bytes = fs::read(self.machine.at("/served").join(name)).unwrap();
            let sha256 = sha256(&bytes);
            json!({"version": version, "url": format!("https://dl.example/{name}?sig=SeCrEt123"), "sha256": sha256})
        };
        self.config = json!({
            "cluster": {
                "server": "https://api.example.io:443",
                "certificateAuthorityData": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCng=",
                "version": "1.34.4"
            },
            "token": TOKEN,
            "node": {
                "name": "gpu-1", "ip": "10.0.0.5", "providerId": "azure-flex:///subscriptions/s/vm",
                "maxPods": 60,
                "labels": {"kubernetes.azure.com/managed": "false", "kubernetes.io/role": "agent"},
                "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]
            },
            "kubernetesVersion": "1.34.2",
            "artifacts": {
                "containerd": artifact("containerd", "2.1.4"),
                "runc": artifact("runc", "1.3.0"),
                "kubeadm": artifact("kubeadm", "1.34.2"),
                "kubelet": artifact("kubelet", "1.34.2"),
                "kubectl": artifact("kubectl", "1.34.2")
            },
            // These limits determine the pauses of the steps.
            "limits": {"containerd": 30, "runtime": 30, "join": 30, "ready": 30}
        });
    }

    /// Writes the configuration to its standard path.
    pub(crate) fn deliver(&self) -> PathBuf {
        let path = self.machine.file(CONFIG, &self.config.to_string());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    pub(crate) fn command(&self) -> Command {
        let path = self.machine.at(CONFIG);
        let mut command = self.machine.command(&["join", "--config"]);
        command.arg(path).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Writes the configuration and joins.
    pub(crate) fn join(&self) -> Ended {
        self.deliver();
        self.join_again()
    }

    /// Joins with the existing files.
    pub(crate) fn join_again(&self) -> Ended {
        Ended::of_child(self.command().spawn().unwrap())
    }

    pub(crate) fn report(&self) -> Value {
        self.machine.json("/var/log/bringup-node/join-report.json")
    }

    /// The report of a step.
    pub(crate) fn step(&self, name: &str) -> Value {
        let report = self.report();
        let steps = report["steps"].as_array().unwrap().clone();
        steps.into_iter().find(|step| step["step"] == name).unwrap_or_default()
    }

    /// How often a program was called with these words.
    pub(crate) fn calls(&self, begin: &str) -> usize {
        self.machine.read("/calls").lines().filter(|line| line.starts_with(begin)).count()
    }

    pub(crate) fn forget_calls(&self) {
        self.machine.file("/calls", "");
    }

    /// Checks that the join failed in this step with this exit code and cause, and that the evidence contains
    /// these words.
    pub(crate) fn assert_failed(&self, ended: &Ended, code: i32, cause: &str, words: &str) {
        assert_eq!(ended.code, code, "{}\n{}", ended.err, self.machine.read("/calls"));
        let summary = ended.summary();
        assert_eq!((&summary["kind"], &summary["exit"]), (&"join".into(), &code.into()));
        assert_eq!(summary["cause"], cause, "{summary}");
        assert!(summary["ev"].to_string().contains(words), "{summary}");
        let document = ended.document();
        assert_eq!(document["ExitCode"], code.to_string());
        let failed = self.machine.json("/run/cluster-api/bootstrap-failed.json");
        assert_eq!((&failed["code"], &failed["cause"]), (&code.into(), &cause.into()), "{failed}");
        assert!(!self.machine.at("/run/cluster-api/bootstrap-success.complete").exists());
        assert!(self.machine.has("provision.failed") && !self.machine.has("provision.succeeded"));
        assert!(
            self.machine.read("/dev/console").contains("BRINGUP-NODE/1 {\"v\":1,\"kind\":\"join\"")
        );
    }

    pub(crate) fn assert_joined(&self, ended: &Ended) {
        assert_eq!(ended.code, 0, "{}\n{}", ended.err, self.machine.read("/calls"));
        assert_eq!(ended.summary()["name"], "JOINED");
        assert!(self.machine.at("/run/cluster-api/bootstrap-success.complete").exists());
        assert!(!self.machine.at("/run/cluster-api/bootstrap-failed.json").exists());
        assert!(self.machine.has("provision.succeeded") && !self.machine.has("provision.failed"));
        assert!(self.machine.has("provision.complete"));
        assert_eq!(self.machine.result()["ExitCode"], "0");
        assert!(!self.machine.at(CONFIG).exists(), "the token is still there");
        assert!(!self.machine.at("/run/bringup-node/join/join.json").exists());
    }

    /// Checks that no remaining file contains the token or its secret half.
    pub(crate) fn assert_silent(&self, but: &Path, ended: &Ended) {
        fs::remove_dir_all(self.machine.at("/seen")).ok();
        let all = self.machine.everything_but(but);
        for secret in ["zyxw9876vuts5432", "SeCrEt123"] {
            assert!(!ended.out.contains(secret) && !ended.err.contains(secret));
            let kept = "/var/lib/bringup-node/join/config.json";
            let all = all.replace(&self.machine.read(kept), "");
            assert!(!all.contains(secret), "{secret}");
        }
    }
}
