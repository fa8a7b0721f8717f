//! Helpers that the tests of `wait` share.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command};
use std::time::SystemTime;

use serde_json::Value;

use crate::common::{self, Ended, Killed, Machine};

pub(crate) const SENTINEL: &str = "/run/cluster-api/bootstrap-success.complete";
pub(crate) const FAILURE: &str = "/run/cluster-api/bootstrap-failed.json";
pub(crate) const STATE: &str = "/var/lib/bringup-node/wait.json";
pub(crate) const REPORT: &str = "/var/log/bringup-node/report.json";
pub(crate) const RESULT: &str = "/run/cloud-init/result.json";
pub(crate) const RUNCMD: &str = "/var/lib/cloud/instance/scripts/runcmd";
pub(crate) const OUTPUT: &str = "/var/log/cloud-init-output.log";

/// Limits so long that a wait ends before them.
pub(crate) const PATIENT: [&str; 3] = ["--timeout=10m", "--start-timeout=10m", "--settle=0s"];

pub(crate) fn wait(machine: &Machine, flags: &[&str]) -> Ended {
    machine.run(&[&["wait"], flags].concat())
}

/// Starts a wait and returns once it is waiting.
pub(crate) fn start(machine: &Machine, flags: &[&str]) -> Killed {
    let _ = fs::remove_file(machine.at(STATE));
    let child = Killed(machine.start(&[&["wait"], flags].concat()));
    until(|| machine.at(STATE).exists());
    child
}

pub(crate) fn until(holds: impl FnMut() -> bool) {
    common::until("the wait", holds);
}

pub(crate) fn end_of(mut child: Killed) -> Ended {
    let mut ended = None;
    until(|| {
        ended = child.0.try_wait().unwrap();
        ended.is_some()
    });
    let read = |pipe: Option<&mut dyn std::io::Read>| {
        let mut text = String::new();
        pipe.unwrap().read_to_string(&mut text).unwrap();
        text
    };
    Ended {
        code: ended.unwrap().code().unwrap_or(-1),
        out: read(child.0.stdout.as_mut().map(|pipe| pipe as _)),
        err: read(child.0.stderr.as_mut().map(|pipe| pipe as _)),
    }
}

pub(crate) fn terminate(child: &Child) {
    let told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(told.success());
}

/// The summary: the last line of the standard output; checks that the standard error has one line.
pub(crate) fn summary(ended: &Ended) -> Value {
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert!(ended.out.ends_with('\n'), "{}", ended.out);
    let line = ended.out.lines().last().unwrap();
    assert!(line.len() < 3_500, "{} bytes", line.len());
    let json = line.strip_prefix("BRINGUP-NODE/1 ").unwrap();
    let value: Value = serde_json::from_str(json).unwrap();
    assert_eq!((&value["end"], &value["kind"]), (&1.into(), &"wait".into()), "{value}");
    value
}

pub(crate) fn warned(ended: &Ended, of: &str) -> bool {
    summary(ended)["warn"].as_array().is_some_and(|list| {
        list.iter().any(|warning| warning.as_str().is_some_and(|text| text.contains(of)))
    })
}

/// A folder on a disk, provided that the build folder is on one.
pub(crate) fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

pub(crate) fn write_old(path: &Path) {
    File::create(path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

pub(crate) fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// Writes a `systemctl` that reports this state for every unit.
pub(crate) fn systemd_says(machine: &Machine, active: &str, sub: &str, result: &str) {
    machine.program("/usr/bin/systemctl", 0o755);
    let script = format!(
        "#!/bin/bash\nprintf 'ActiveState={active}\\nSubState={sub}\\nResult={result}\\nNRestarts=2\\nExecMainStartTimestampMonotonic=7\\n'\n"
    );
    fs::write(machine.at("/usr/bin/systemctl"), script).unwrap();
}

/// Moves the start of a wait into the past.
pub(crate) fn move_back(machine: &Machine, seconds: i64) {
    let mut state = machine.json(STATE);
    for key in ["began", "saved"] {
        let time: jiff::Timestamp = state[key].as_str().unwrap().parse().unwrap();
        let back = jiff::SignedDuration::from_secs(-seconds);
        state[key] = time.checked_add(back).unwrap().to_string().into();
    }
    fs::write(machine.at(STATE), state.to_string()).unwrap();
}
