//! A simulated guest agent for Windows, with wine and the folders of Windows.

#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs::{self, File};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::agent::{Status, kill, read_status, until};
use crate::machine::Machine;
use crate::package::{System, entries};

pub(crate) const NAME: &str = "Bringup.BringupNodeWindows";
pub(crate) const FOLDER: &str = "ProgramData/bringup-node/ext";

/// The simulated guest agent and its machine.
pub(crate) struct Agent {
    pub(crate) machine: Machine,
    /// Whether the extension runs on the machine itself, and not under a root.
    pub(crate) bare: bool,
}

/// An unpacked handler, in a path with spaces.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    pub(crate) root: PathBuf,
    told: String,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill_all();
    }
}

impl Agent {
    /// `None` if Windows programs cannot run here.
    pub(crate) fn new() -> Option<Self> {
        Some(Self { machine: crate::machine::machine()?, bare: false })
    }

    pub(crate) fn unpack(&self, version: &str) -> Handler {
        let root = self.machine.disk().join("Packages of Azure/Plugins").join(NAME).join(version);
        let told = format!(r"C:\Packages of Azure\Plugins\{NAME}\{version}");
        for entry in entries(System::Windows, &[]).unwrap() {
            fs::create_dir_all(&root).unwrap();
            fs::write(root.join(entry.name), entry.content).unwrap();
        }
        for folder in ["bin", "RuntimeSettings", "Status"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let program = root.join("bin/bringup-node.exe");
        if fs::hard_link(self.machine.program(), &program).is_err() {
            fs::copy(self.machine.program(), &program).unwrap();
        }
        let environment = json!([{ "version": 1.0, "handlerEnvironment": {
            "logFolder": format!(r"C:\WindowsAzure\Logs\Plugins\{NAME}\{version}"),
            "configFolder": format!(r"{told}\RuntimeSettings"),
            "statusFolder": format!(r"{told}\Status"),
            "heartbeatFile": format!(r"{told}\Status\HeartBeat.Json"),
            "deploymentid": "", "rolename": "", "instance": "", "hostResolverAddress": "",
        } }]);
        fs::write(root.join("HandlerEnvironment.json"), environment.to_string()).unwrap();
        Handler { root, told }
    }

    pub(crate) fn add(&self, version: &str, number: u64, public: &Value) -> Handler {
        let handler = self.unpack(version);
        handler.settings(number, public);
        assert_eq!(self.call(&handler, "install", Some(number)), 0);
        assert_eq!(self.call(&handler, "enable", Some(number)), 0);
        handler
    }

    /// Calls a command according to the manifest. Without a sequence number, the registry must contain it.
    pub(crate) fn call(&self, handler: &Handler, command: &str, number: Option<u64>) -> i32 {
        let text = fs::read_to_string(handler.root.join("HandlerManifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&text).unwrap();
        let key = format!("{command}Command");
        let line = manifest[0]["handlerManifest"][key].as_str().unwrap().to_owned();
        let mut shell = self.machine.wine();
        shell.args(["cmd", "/c"]).args(line.split(' ')).current_dir(&handler.root);
        if !self.bare {
            let root = self.machine.at("").display().to_string();
            let root = root.trim_end_matches('/').replace('/', "\\");
            shell.env("BRINGUP_NODE_ROOT", format!("Z:{root}"));
        }
        shell.env("BRINGUP_NODE_TEST_PAUSE", "50").env("PROCESSOR_ARCHITECTURE", "AMD64");
        match number {
            Some(number) => shell.env("ConfigSequenceNumber", number.to_string()),
            None => shell.env_remove("ConfigSequenceNumber"),
        };
        shell.stdout(File::create(self.out()).unwrap());
        shell.status().unwrap().code().unwrap()
    }

    fn out(&self) -> PathBuf {
        self.machine.disk().join("out")
    }

    /// The output of the last command.
    pub(crate) fn printed(&self) -> String {
        fs::read_to_string(self.out()).unwrap()
    }

    /// Runs a Windows program.
    pub(crate) fn run(&self, words: &[&str]) {
        let ended = self.machine.wine().args(words).status().unwrap();
        assert!(ended.success(), "{words:?}");
    }

    pub(crate) fn replace(&self, old: &Handler, new: &Handler, number: u64) {
        self.call(old, "disable", Some(number));
        for folder in ["RuntimeSettings", "Status"] {
            for file in fs::read_dir(old.root.join(folder)).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), new.root.join(folder).join(file.file_name())).unwrap();
            }
        }
        assert_eq!(self.call(new, "update", Some(number)), 0);
        self.call(old, "uninstall", Some(number));
        self.delete(old);
        assert_eq!(self.call(new, "install", Some(number)), 0);
        assert_eq!(self.call(new, "enable", Some(number)), 0);
    }

    /// Deletes a handler like Windows, which refuses while a program of the handler runs.
    pub(crate) fn delete(&self, handler: &Handler) {
        self.run(&["cmd", "/c", "rmdir", "/s", "/q", &handler.told]);
        assert!(!handler.root.exists());
    }

    fn folder(&self) -> PathBuf {
        if self.bare { self.machine.disk().join(FOLDER) } else { self.machine.at(FOLDER) }
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.folder().join(name)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// The process IDs on this host of the machine's processes with a word in their command lines.
    pub(crate) fn processes(&self, word: &str) -> Vec<u32> {
        let prefix = self.machine.disk().parent().unwrap().to_owned();
        let prefix = format!("WINEPREFIX={}", prefix.display());
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let ours = entries.filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let has = |file: &str, wanted: &str| {
                let text = fs::read(entry.path().join(file)).unwrap_or_default();
                text.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes())
            };
            (has("cmdline", "extension") && has("cmdline", word) && has("environ", &prefix))
                .then_some(pid)
        });
        ours.collect()
    }

    /// Kills waiters until the guard has counted so many deaths. One kill may not be enough: for a moment,
    /// a process that is about to execute another program still looks like its parent, and outlives it.
    pub(crate) fn waiter_dies(&self, deaths: u64) {
        until(|| {
            let counted = self.json("state.json")["deaths"].as_u64().is_some_and(|it| it >= deaths);
            if !counted {
                self.processes("wait").into_iter().for_each(kill);
            }
            counted
        });
    }

    pub(crate) fn waiter(&self) -> u32 {
        let mut found = Vec::new();
        until(|| {
            found = self.processes("wait");
            let known = self.folder().join("process-wait.json").exists();
            found.len() == 1 && known && !self.memory(self.number()).is_null()
        });
        found[0]
    }

    pub(crate) fn number(&self) -> u64 {
        self.json("state.json")["number"].as_u64().unwrap_or_default()
    }

    pub(crate) fn memory(&self, number: u64) -> Value {
        self.json(&format!("wait-{number}.json"))
    }

    pub(crate) fn kill_all(&self) {
        loop {
            let words = ["guard", "service", "wait"];
            let all: Vec<u32> = words.iter().flat_map(|word| self.processes(word)).collect();
            if all.is_empty() {
                return;
            }
            all.into_iter().for_each(kill);
        }
    }

    pub(crate) fn is_quiet(&self) {
        let words = ["guard", "service", "wait"];
        until(|| words.iter().all(|word| self.processes(word).is_empty()));
    }

    /// Writes the agent's registry values.
    pub(crate) fn register(&self, version: &str, kind: &str, number: &str) {
        let key = format!(r"HKLM\SOFTWARE\Microsoft\Windows Azure\HandlerState\{NAME}_{version}");
        self.run(&["reg", "add", &key, "/v", "SequenceNumber", "/t", kind, "/d", number, "/f"]);
    }
}

impl Handler {
    pub(crate) fn settings(&self, number: u64, public: &Value) {
        let text =
            json!({ "runtimeSettings": [{ "handlerSettings": { "publicSettings": public } }] });
        self.raw_settings(number, &text.to_string());
    }

    pub(crate) fn raw_settings(&self, number: u64, text: &str) {
        // Windows writes a byte order mark first.
        let text = if text.is_empty() { String::new() } else { format!("\u{feff}{text}") };
        fs::write(self.root.join(format!("RuntimeSettings/{number}.settings")), text).unwrap();
    }

    pub(crate) fn status_path(&self, number: u64) -> PathBuf {
        self.root.join(format!("Status/{number}.status"))
    }

    pub(crate) fn status_bytes(&self, number: u64) -> Vec<u8> {
        fs::read(self.status_path(number)).unwrap_or_default()
    }

    pub(crate) fn status(&self, number: u64) -> Option<Status> {
        fs::read_to_string(self.status_path(number)).ok().map(|text| read_status(&text))
    }

    pub(crate) fn becomes(&self, number: u64, word: &str) -> Status {
        until(|| self.status(number).is_some_and(|status| status.word == word));
        self.status(number).unwrap()
    }
}
