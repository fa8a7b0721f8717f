//! A machine on which processes are killed during attempts.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::common::{Ended, LONG, Machine, until};

/// The number of machines that are tested in parallel: they mostly wait.
pub(crate) const SIDE_BY_SIDE: usize = 24;

/// A configuration with all required fields, so that there are few warnings.
pub(crate) const CONFIG: &str = r#"{"version":"v1","auth_config":{"subscription_id":"s"},
  "cluster_config":{"resource_group":"g","location":"eastus",
    "cluster_network_config":{"vnet_name":"n","route_table":"r"}},
  "api_server_config":{"api_server_name":"x.example"}}"#;

/// The checks create no files, and the number of their log lines varies.
const NO_CHECKS: &str = "--preflight=off";

/// Scripts that take a while and record every run, and every concurrent run.
pub(crate) const RECORD: &str =
    "mkdir $R/running || touch $R/beside; echo begun >>$R/runs; sleep 0.1";

pub(crate) const SUCCESS: &str = "echo '{\"ExitCode\":\"0\",\"Output\":\"\"}' >$L/aks/provision.json; echo succeeded >>$R/runs; rmdir $R/running; touch $C/provision.complete";
pub(crate) const FAILURE: &str = "echo '{\"ExitCode\":\"50\",\"Output\":\"x\"}' >$L/aks/provision.json; rmdir $R/running; touch $C/provision.complete; exit 50";
pub(crate) const NO_RESULT: &str = "rmdir $R/running; exit 77";

/// A machine, and the behaviour of its scripts.
pub(crate) struct Life {
    pub(crate) machine: Machine,
    pub(crate) flag: String,
}

impl Life {
    pub(crate) fn new(config: &str, script: &str) -> Self {
        let machine = Machine::new();
        machine.start_script(&format!("{RECORD}; {script}"));
        let flag = format!("--provision-config={}", machine.configuration(config).display());
        Self { machine, flag }
    }

    pub(crate) fn root(&self) -> String {
        self.machine.at("/").display().to_string().trim_end_matches('/').to_owned()
    }

    /// Runs `provision`, killed at a step of a process; returns its output, and the steps that it took.
    pub(crate) fn killed_at(&self, role: &str, step: usize) -> (Output, Vec<String>) {
        let steps = self.machine.at("/steps");
        let _ = fs::remove_file(&steps);
        let mut command = self.machine.command(&["provision", &self.flag, NO_CHECKS]);
        let kill = format!("{role}:{step}:{}", steps.display());
        // Processes that the scripts leave running must not hold our pipes open.
        command.env("BRINGUP_NODE_TEST_KILL", kill).stdout(Stdio::null()).stderr(Stdio::null());
        let output = command.output().unwrap();
        let root = self.root();
        let text = fs::read_to_string(steps).unwrap_or_default();
        (output, text.lines().map(|line| line.replace(&root, "")).collect())
    }

    /// All steps of a process when no process is killed.
    pub(crate) fn steps(&self, role: &str) -> Vec<String> {
        self.killed_at(role, 0).1
    }

    pub(crate) fn provision(&self) -> i32 {
        self.machine.run(&["provision", &self.flag, NO_CHECKS]).code
    }

    /// Runs `provision-wait` while no agent provisions.
    pub(crate) fn wait_meanwhile(&self) -> Ended {
        let flags = ["provision-wait", "--timeout=240s", "--start-timeout=1s"];
        let mut command = self.machine.command(&flags);
        // The waiter waits in vain for the killed process: here, real time passes.
        command.env_remove("BRINGUP_NODE_TEST_CLOCK");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Ended::of_child(child.unwrap())
    }

    /// How often an entry is in the list of runs.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.machine.read("/runs").lines().filter(|line| *line == what).count()
    }

    /// Ends every process of this machine; the processes are found by the machine's name.
    pub(crate) fn end_all(&self) {
        let root = self.root();
        let begun = Instant::now();
        loop {
            let pids = processes_with(&root);
            if pids.is_empty() {
                return;
            }
            assert!(begun.elapsed() < LONG, "{pids:?} do not end");
            for pid in pids {
                // The process may have ended already.
                let _ = Command::new("kill").args(["-9", &pid]).stderr(Stdio::null()).status();
            }
        }
    }

    /// Ends all processes, empties `/run`, and changes the boot ID.
    pub(crate) fn reboot(&self) {
        self.end_all();
        let _ = fs::remove_dir_all(self.machine.at("/run"));
        let _ = fs::remove_dir(self.machine.at("/running"));
        self.machine.file("/proc/sys/kernel/random/boot_id", "fedcba9876543210\n");
    }

    /// Checks the conditions that hold after every ended attempt, however often it was begun.
    pub(crate) fn assert_ended_with(&self, code: i32, told: &str) {
        let machine = &self.machine;
        assert!(!machine.at("/beside").exists(), "{told}: two runs at once");
        assert_eq!(machine.result()["ExitCode"], code.to_string(), "{told}");
        assert!(machine.has("provision.complete"), "{told}");
        assert_eq!(machine.has("provision.succeeded"), code == 0, "{told}");
        assert_eq!(machine.has("provision.failed"), code != 0, "{told}");
        let mark = if code == 0 { "succeeded" } else { "failed" };
        let mark = machine.json(&format!("/opt/azure/containers/provision.{mark}"));
        let run = machine.json("/var/lib/bringup-node/run.json");
        assert_eq!(mark["exit"], code, "{told}");
        assert_eq!(mark["run"], run["run_id"], "{told}");
        assert_eq!(run["exit"], code, "{told}");
        assert_eq!(machine.report()["summary"]["exit"], code, "{told}");
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// The processes with a text in their command lines.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    let this = std::process::id().to_string();
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()) && *pid != this)
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(text)
        })
        .collect()
}

/// Runs `job` for each number up to a limit, many in parallel.
pub(crate) fn for_each(limit: usize, job: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(1);
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE.min(limit) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number > limit {
                        return;
                    }
                    job(number);
                }
            });
        }
    });
}

impl Life {
    /// Like [`Self::assert_ended_with`], where the exit code of the process differs from the result.
    pub(crate) fn assert_ended_with_status(&self, result: i32, told: &str) {
        assert!(!self.machine.at("/beside").exists(), "{told}: two runs at once");
        assert_eq!(self.machine.result()["ExitCode"], result.to_string(), "{told}");
        assert_eq!(self.machine.has("provision.succeeded"), result == 0, "{told}");
        assert_eq!(self.machine.has("provision.failed"), result != 0, "{told}");
    }
}

/// Ends the machine's processes that have a word in their command lines.
pub(crate) fn end_those_with(life: &Life, word: &str) {
    let root = life.root();
    for pid in processes_with(word) {
        if processes_with(&root).contains(&pid) {
            assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        }
    }
    until("it ends", || {
        !processes_with(word).iter().any(|pid| processes_with(&root).contains(pid))
    });
}
