//! A simulated guest agent: unpacks a handler, writes its settings, calls its commands according to the
//! manifest and reads its status, as strictly as the real agent.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::package::{System, entries};
use crate::common::requirement::skip;
use crate::common::{self, CLOCK, Ended, Killed, Machine};

pub(crate) const NAME: &str = "Bringup.BringupNodeLinux";
pub(crate) const SENTINEL: &str = "/run/cluster-api/bootstrap-success.complete";
pub(crate) const RESULT: &str = "/run/cloud-init/result.json";
pub(crate) const FOLDER: &str = "/var/lib/bringup-node/ext";
pub(crate) const RECORD: &str = "/var/lib/bringup-node/ext/state.json";

/// The simulated guest agent and its machine.
pub(crate) struct Agent {
    pub(crate) machine: Machine,
    /// A process in another mount namespace, in which the commands run.
    inside: Option<Killed>,
}

/// An unpacked handler.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    pub(crate) root: PathBuf,
}

/// A status, as the agent reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) word: String,
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) substatus: Option<(String, String, i64)>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill_all();
    }
}

impl Agent {
    pub(crate) fn new() -> Self {
        Self { machine: Machine::new(), inside: None }
    }

    /// Unpacks a version. The files of the zip get mode 0644, and the agent makes them executable.
    pub(crate) fn unpack(&self, version: &str) -> Handler {
        let root = self.machine.at(&format!("/var/lib/waagent/{NAME}-{version}"));
        for entry in entries(System::Linux, &[]).unwrap() {
            let path = root.join(entry.name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, entry.content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o744)).unwrap();
        }
        let (built, program) = (env!("CARGO_BIN_EXE_bringup-node"), "bin/bringup-node-amd64");
        if fs::hard_link(built, root.join(program)).is_err() {
            fs::copy(built, root.join(program)).unwrap();
        }
        // The package contains the program for every processor, whatever machine this test runs on.
        let _ = fs::hard_link(root.join(program), root.join("bin/bringup-node-arm64"));
        let log = self.machine.at(&format!("/var/log/azure/{NAME}"));
        for folder in [&root.join("config"), &root.join("status"), &log] {
            fs::create_dir_all(folder).unwrap();
        }
        let environment = json!([{ "name": NAME, "version": 1.0, "handlerEnvironment": {
            "logFolder": log, "configFolder": root.join("config"), "statusFolder": root.join("status"),
            "heartbeatFile": root.join("heartbeat.log"), "eventsFolder": log.join("events"),
        } }]);
        fs::write(root.join("HandlerEnvironment.json"), environment.to_string()).unwrap();
        Handler { root }
    }

    /// Unpacks, writes settings, installs and enables.
    pub(crate) fn add(&self, version: &str, number: u64, public: &Value) -> Handler {
        let handler = self.unpack(version);
        handler.settings(number, public);
        assert_eq!(self.call(&handler, "install", number).code, 0);
        assert_eq!(self.call(&handler, "enable", number).code, 0);
        handler
    }

    /// Calls a command like the agent: according to the manifest, in a process group that is killed
    /// afterwards.
    pub(crate) fn call(&self, handler: &Handler, command: &str, number: u64) -> Ended {
        let text = fs::read_to_string(handler.root.join("HandlerManifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&text).unwrap();
        let key = format!("{command}Command");
        let line = manifest[0]["handlerManifest"][key].as_str().unwrap().to_owned();
        let mut shell = match &self.inside {
            None => Command::new("sh"),
            Some(holder) => {
                let mut shell = Command::new("nsenter");
                shell.args(["--mount", "--target", &holder.0.id().to_string()]);
                shell.arg(format!("--wd={}", handler.root.display())).arg("sh");
                shell
            }
        };
        // Guest agents leave descriptors open.
        let line = format!("exec 7</dev/zero; {line}");
        shell.arg("-c").arg(line).current_dir(&handler.root).process_group(0);
        shell
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("BRINGUP_NODE_ROOT", self.machine.at(""));
        shell.env("BRINGUP_NODE_TEST_PAUSE", "50");
        // Only the test makes limits end, not a busy machine.
        shell.env("BRINGUP_NODE_TEST_CLOCK", self.machine.at(CLOCK));
        shell.env("ConfigSequenceNumber", number.to_string());
        shell.env("AZURE_GUEST_AGENT_EXTENSION_PATH", &handler.root);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = shell.spawn().unwrap();
        let group = child.id();
        // This waits for the end of the output, so a background process must not keep the pipe open.
        let output = child.wait_with_output().unwrap();
        let _ = Command::new("kill")
            .args(["-KILL", "--", &format!("-{group}")])
            .stderr(Stdio::null())
            .status();
        Ended::of(&output)
    }

    /// Replaces one version by another. `updater` is the handler whose `update` runs.
    pub(crate) fn replace(&self, old: &Handler, new: &Handler, updater: &Handler, number: u64) {
        self.call(old, "disable", number);
        for folder in ["config", "status"] {
            for file in fs::read_dir(old.root.join(folder)).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), new.root.join(folder).join(file.file_name())).unwrap();
            }
        }
        fs::copy(old.root.join("mrseq"), new.root.join("mrseq")).unwrap();
        assert_eq!(self.call(updater, "update", number).code, 0);
        self.call(old, "uninstall", number);
        fs::remove_dir_all(&old.root).unwrap();
        assert_eq!(self.call(new, "install", number).code, 0);
        assert_eq!(self.call(new, "enable", number).code, 0);
    }

    /// The processes of this machine's extension with this word in their command lines.
    pub(crate) fn processes(&self, word: &str) -> Vec<u32> {
        let root = self.machine.at("");
        let root = root.to_str().unwrap().trim_end_matches('/').as_bytes();
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let ours = entries.filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            let here = words.iter().any(|it| it.strip_suffix(b"/").unwrap_or(it) == root);
            (here && words.contains(&b"extension".as_slice()) && words.contains(&word.as_bytes()))
                .then_some(pid)
        });
        ours.collect()
    }

    /// The only waiter, as soon as there is one.
    pub(crate) fn waiter(&self) -> u32 {
        let mut found = Vec::new();
        until(|| {
            found = self.processes("wait");
            found.len() == 1 && self.locked()
        });
        found[0]
    }

    /// Kills waiters until the guard has counted so many deaths. One kill may not be enough: for a moment,
    /// a process that is about to execute another program still looks like its parent, and outlives it.
    pub(crate) fn waiter_dies(&self, deaths: u64) {
        until(|| {
            let counted = self.record()["deaths"].as_u64().is_some_and(|it| it >= deaths);
            if !counted {
                self.processes("wait").into_iter().for_each(kill);
            }
            counted
        });
    }

    /// Waits until there is one guard and one waiter. For a moment, a process that is about to execute
    /// another program still looks like its parent.
    pub(crate) fn is_waited_for_once(&self) {
        until(|| (self.processes("wait").len(), self.processes("guard").len()) == (1, 1));
    }

    /// Whether the waiter holds its lock.
    fn locked(&self) -> bool {
        let folder = self.machine.at(FOLDER);
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("wait-")).count() > 0
    }

    /// Kills all processes, as a power failure does.
    pub(crate) fn kill_all(&self) {
        loop {
            let all = [self.processes("guard"), self.processes("wait")].concat();
            if all.is_empty() {
                return;
            }
            all.into_iter().for_each(kill);
        }
    }

    pub(crate) fn record(&self) -> Value {
        self.machine.json(RECORD)
    }

    /// Waits until nothing of the extension runs.
    pub(crate) fn is_quiet(&self) {
        until(|| self.processes("guard").is_empty() && self.processes("wait").is_empty());
    }

    /// From now on, commands see a small file system in a folder, which a test can fill. `None` if that is
    /// impossible.
    pub(crate) fn small_disk(&mut self, folder: &Path) -> Option<SmallDisk> {
        fs::create_dir_all(folder).unwrap();
        let script = "mount -t tmpfs -o size=64k none \"$0\" && echo ready && exec sleep 1000";
        let mut holder = Command::new("unshare");
        holder.args(["--mount", "sh", "-c", script]).arg(folder);
        holder.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = Killed(holder.spawn().ok()?);
        let mut said = String::new();
        let out = holder.0.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut said).unwrap();
        if said != "ready\n" {
            skip("mount", "this system mounts no file system (unshare), which fills up");
            return None;
        }
        let seen = PathBuf::from(format!("/proc/{}/root", holder.0.id()));
        self.inside = Some(holder);
        Some(SmallDisk(seen.join(folder.strip_prefix("/").unwrap())))
    }
}

/// A small file system, by its path outside the mount namespace.
pub(crate) struct SmallDisk(pub(crate) PathBuf);

impl SmallDisk {
    pub(crate) fn fill(&self) {
        let mut file = fs::File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    pub(crate) fn make_space(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Handler {
    /// Writes settings, all public.
    pub(crate) fn settings(&self, number: u64, public: &Value) {
        let text =
            json!({ "runtimeSettings": [{ "handlerSettings": { "publicSettings": public } }] });
        self.raw_settings(number, &text.to_string());
    }

    pub(crate) fn raw_settings(&self, number: u64, text: &str) {
        fs::write(self.root.join(format!("config/{number}.settings")), text).unwrap();
    }

    /// Waits until the status is this word.
    pub(crate) fn becomes(&self, number: u64, word: &str) -> Status {
        until(|| self.status(number).is_some_and(|status| status.word == word));
        self.status(number).unwrap()
    }

    pub(crate) fn status_path(&self, number: u64) -> PathBuf {
        self.root.join(format!("status/{number}.status"))
    }

    pub(crate) fn status_bytes(&self, number: u64) -> Vec<u8> {
        fs::read(self.status_path(number)).unwrap_or_default()
    }

    /// The status of a sequence number, if the file exists.
    pub(crate) fn status(&self, number: u64) -> Option<Status> {
        fs::read_to_string(self.status_path(number)).ok().map(|text| read_status(&text))
    }
}

/// Parses a status like the agent, and rejects everything that the agent would reject.
pub(crate) fn read_status(text: &str) -> Status {
    let items: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let item = &items[0];
    assert_eq!(item["version"], 1.0, "{text}");
    let time = item["timestampUTC"].as_str().unwrap();
    assert!(time.ends_with('Z') && time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    let status = &item["status"];
    assert_eq!((&status["operation"], status["name"].is_string()), (&"Enable".into(), true));
    let words = ["transitioning", "success", "error", "warning"];
    let read = |status: &Value| {
        let word = status["status"].as_str().unwrap().to_owned();
        assert!(words.contains(&word.as_str()), "{word}");
        let message = &status["formattedMessage"];
        assert_eq!(message["lang"], "en-US", "{text}");
        (word, status["code"].as_i64().unwrap(), message["message"].as_str().unwrap().to_owned())
    };
    let (word, code, message) = read(status);
    assert!(message.len() <= 3_900, "{} bytes", message.len());
    let substatus = status.get("substatus").map(|list| {
        assert_eq!(list.as_array().unwrap().len(), 1);
        let (word, code, _) = read(&list[0]);
        (list[0]["name"].as_str().unwrap().to_owned(), word, code)
    });
    Status { word, code, message, substatus }
}

impl Status {
    /// The summary line, parsed like in the controller.
    pub(crate) fn node(&self) -> bringup_contract::cse::NodeSummary {
        bringup_contract::cse::read(&self.message).node.unwrap()
    }
}

pub(crate) fn kill(pid: u32) {
    let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
}

pub(crate) fn until(holds: impl FnMut() -> bool) {
    common::until("the extension", holds);
}
