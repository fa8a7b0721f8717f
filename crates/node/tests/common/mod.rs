//! A machine in a folder: stub programs, stub scripts, and the real agent.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

#[path = "../../../../testbed/src/requirement.rs"]
#[allow(unreachable_pub, reason = "all crates with tests that may be skipped share it")]
pub(crate) mod requirement;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The file with the time that a test has set, in milliseconds.
pub(crate) const CLOCK: &str = "/clock";

/// The limit of every wait in a test: even on a busy machine, only a hang takes longer.
pub(crate) const LONG: Duration = Duration::from_mins(4);

pub(crate) struct Machine {
    folder: TempDir,
    janitor: Janitor,
}

impl Machine {
    /// A machine with everything that the checks look for, including oras.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = Self { janitor: Janitor::of(folder.path()), folder };
        let programs = [
            "bash",
            "timeout",
            "nohup",
            "systemctl",
            "jq",
            "curl",
            "base64",
            "tar",
            "python3",
            "containerd",
            "runc",
            "oras",
        ];
        for name in programs {
            machine.program(&format!("/usr/bin/{name}"), 0o755);
        }
        machine.file("/opt/azure/containers/provision_start.sh", "");
        machine.file("/opt/azure/containers/provision.sh", "");
        machine.file("/opt/azure/vhd-install.complete", "");
        machine.file("/etc/os-release", "ID=azurelinux\nVERSION_ID=\"3.0\"\n");
        machine.file("/var/lib/dpkg/status", "");
        machine.file("/sys/class/dmi/id/product_uuid", "AAAA-1\n");
        machine.file("/proc/sys/kernel/random/boot_id", "0123456789abcdef\n");
        machine
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    pub(crate) fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Ends cloud-init: it stores its result on the disk, and a link to it in memory.
    pub(crate) fn cloud_init_ends(&self, result: &str) {
        self.file("/var/lib/cloud/data/result.json", result);
        let link = self.at("/run/cloud-init/result.json");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink("../../var/lib/cloud/data/result.json", link).unwrap();
    }

    pub(crate) fn program(&self, path: &str, mode: u32) {
        let path = self.file(path, "#!/bin/bash\n");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.at(path)).unwrap();
    }

    /// Writes the script that replaces the bootstrap. `$R` is the folder of the machine.
    pub(crate) fn script(&self, text: &str) -> PathBuf {
        let root = self.folder.path().display();
        self.file(
            "/opt/azure/containers/aks-node-controller-nbc-cmd.sh",
            &format!("R='{root}'; C=$R/opt/azure/containers; L=$R/var/log/azure; mkdir -p $L/aks\n{text}\n"),
        )
    }

    /// Writes the configuration to its standard path.
    pub(crate) fn configuration(&self, text: &str) -> PathBuf {
        self.file("/opt/azure/containers/aks-node-controller-config.json", text)
    }

    /// Writes the script that a configuration starts. `$R` is the folder of the machine.
    pub(crate) fn start_script(&self, text: &str) {
        let root = self.folder.path().display();
        self.file(
            "/opt/azure/containers/provision_start.sh",
            &format!("R='{root}'; C=$R/opt/azure/containers; L=$R/var/log/azure; mkdir -p $L/aks\n{text}\n"),
        );
    }

    /// Runs `provision` with a configuration and the script that it starts.
    pub(crate) fn provision_configured(&self, text: &str, script: &str, more: &[&str]) -> Ended {
        self.start_script(script);
        let path = self.configuration(text);
        let flag = format!("--provision-config={}", path.display());
        self.run(&[&["provision", &flag], more].concat())
    }

    pub(crate) fn log(&self) -> String {
        self.read("/var/log/azure/aks-node-controller.log")
    }

    pub(crate) fn report(&self) -> Value {
        self.json("/var/log/bringup-node/provision-report.json")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bringup-node"));
        command.arg("--root").arg(self.folder.path()).args(arguments);
        command.env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        // Only the test makes limits end, not a busy machine.
        command.env("BRINGUP_NODE_TEST_CLOCK", self.at(CLOCK));
        command.env("BRINGUP_NODE_TEST_PATIENCE", "600");
        command
    }

    /// A shell command that advances the agent's clock by milliseconds.
    pub(crate) fn time_passes(&self, by: u64) -> String {
        let clock = self.at(CLOCK).display().to_string();
        format!(
            "echo $(($(cat '{clock}' 2>/dev/null || echo 0) + {by})) >'{clock}.new'; mv '{clock}.new' '{clock}'"
        )
    }

    /// Sets the agent's clock.
    pub(crate) fn set_clock(&self, time: Duration) {
        let beside = self.file(&format!("{CLOCK}.new"), &time.as_millis().to_string());
        fs::rename(beside, self.at(CLOCK)).unwrap();
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of_child(self.start(arguments))
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs `provision` with the stub script.
    pub(crate) fn provision(&self, script: &str, more: &[&str]) -> Ended {
        let path = self.script(script);
        let flag = format!("--nbc-cmd={}", path.display());
        self.run(&[&["provision", &flag], more].concat())
    }

    /// Runs `provision-wait` with limits that only a hang reaches.
    pub(crate) fn wait(&self) -> Ended {
        self.run(&["provision-wait", "--timeout=240s", "--start-timeout=240s"])
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_default()
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap_or_default()
    }

    pub(crate) fn result(&self) -> Value {
        self.json("/var/log/azure/aks/provision.json")
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.at("/opt/azure/containers").join(name).exists()
    }

    pub(crate) fn leave_result(&self, json: &str) {
        self.file("/var/log/azure/aks/provision.json", json);
        self.file("/opt/azure/containers/provision.complete", "");
    }

    /// The messages of all events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let folder = self.at("/var/log/azure/Microsoft.Azure.Extensions.CustomScript/events");
        let files = fs::read_dir(folder).into_iter().flatten();
        let text = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
        text.map(|text| serde_json::from_str(&text).unwrap()).collect()
    }

    /// The content of all files that the agent wrote, to search for texts that must not be there.
    pub(crate) fn everything_but(&self, given: &Path) -> String {
        fn all(folder: &Path, given: &Path, text: &mut String) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    all(&path, given, text);
                } else if path != given {
                    text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
                }
            }
        }
        let mut text = String::new();
        all(self.folder.path(), given, &mut text);
        text
    }
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Waits for a child whose output is piped. A child that hangs is killed.
    pub(crate) fn of_child(child: Child) -> Self {
        let (ended, end) = mpsc::channel::<()>();
        let pid = child.id().to_string();
        let guard = std::thread::spawn(move || {
            if end.recv_timeout(LONG) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-9", &pid]).status();
            }
        });
        let output = child.wait_with_output().unwrap();
        drop(ended);
        guard.join().unwrap();
        Self::of(&output)
    }

    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// The JSON document on the standard output; checks its length.
    pub(crate) fn document(&self) -> Value {
        assert!(self.out.len() <= 3_500, "{} bytes", self.out.len());
        assert!(self.out.starts_with("{\"ExitCode\":\""), "{}", self.out);
        assert!(!self.out.contains("[stdout]") && !self.out.contains("[stderr]"));
        serde_json::from_str(&self.out).unwrap()
    }

    /// The summary line; checks its length.
    pub(crate) fn summary(&self) -> Value {
        assert!(self.err.len() <= 1_500, "{} bytes", self.err.len());
        let line = self.err.lines().last().unwrap();
        assert!(line.len() < 1_000, "{} bytes", line.len());
        let value: Value =
            serde_json::from_str(line.strip_prefix("BRINGUP-NODE/1 ").unwrap()).unwrap();
        assert_eq!(value["end"], 1);
        value
    }
}

/// Waits until `holds` is true, however busy this machine is.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "it does not happen: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Cleans up after a test that fails or is killed: what runs in the background here leaves its session, and
/// the clock that ends its waits stands still.
struct Janitor(Child);

/// Reads until the test ends, then kills every process with the folder in its command line.
const CLEAN_UP: &str = r#"
cat >/dev/null
for again in 1 2 3; do
    for process in /proc/[0-9]*; do
        id=${process#/proc/}
        [ "$id" = "$$" ] || ! tr '\0' '\n' <"$process/cmdline" | grep -qF -- "$1" || kill -KILL "$id"
    done
done 2>/dev/null
rm -rf -- "$1"
"#;

impl Janitor {
    fn of(folder: &Path) -> Self {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", CLEAN_UP, "janitor"]).arg(folder).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(shell.spawn().unwrap())
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(self.0.stdin.take());
        } else {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

/// Kills a child when dropped, however the test ends.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a named pipe: a process that opens it for reading blocks until another process writes.
pub(crate) fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
