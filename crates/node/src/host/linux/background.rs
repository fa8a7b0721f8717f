//! Processes that stay, on Linux: in a unit of their own where there is systemd, so that they
//! outlive the guest agent; else in a session of their own.

mod descriptors;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::extension::{Installation, Role, Running, exit};
use crate::host::linux::process::Process;
use crate::host::linux::subprocess::ask;
use crate::host::paths::Root;

/// The unit in which it is waited.
const UNIT: &str = "bringup-node-ext";

/// systemd that has not answered by then does not.
const SYSTEMD: Duration = Duration::from_secs(3);

/// A process that is asked to end gets this much time.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// On Linux nothing but the guest agent's variable and the files name a number.
pub(crate) fn registered_number(_handler: &Path) -> Option<u64> {
    None
}

/// There is nothing to install.
pub(crate) fn install(_stage: &Installation<'_>) {}

/// The unit goes with its process.
pub(crate) fn uninstall(_stage: &Installation<'_>) {}

/// Processes are found by the words they were started with.
pub(crate) fn announce(_stage: &Installation<'_>, _role: Role, _number: u64) {}

/// The processes of this extension.
pub(crate) fn running(installation: &Installation<'_>) -> Vec<Running> {
    processes(installation).into_iter().map(|(_, running)| running).collect()
}

fn processes(installation: &Installation<'_>) -> Vec<(Process, Running)> {
    let us = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries
        // Any user can start a process that looks like it.
        .filter(|entry| entry.metadata().is_ok_and(|data| data.uid() == us))
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let process = Process::of(pid)?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
            let program = words.next()?;
            let name = Path::new(program.as_ref()).file_name()?.to_str()?;
            let mut words: Vec<String> = words.map(std::borrow::Cow::into_owned).collect();
            // The last word ends with a 0 too.
            words.pop();
            let running = Running::read(words, installation.root.directory())?;
            Some((process, running)).filter(|_| name.starts_with("bringup-node") && process.alive())
        })
        .collect()
}

/// Starts a process that stays.
pub(crate) fn start(installation: &Installation<'_>, number: u64) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    if let Some(mut systemd) = systemd(installation.root, "systemd-run") {
        systemd.args(["--quiet", "--collect", "--working-directory=/", "--unit", UNIT]);
        systemd.args(["--property=Restart=on-failure", "--property=RestartSec=5"]);
        // With this type, systemd-run fails at once if the program cannot be executed.
        systemd.args(["--property=Type=exec", "--property=TimeoutStopSec=5", "--"]);
        match ask(systemd.arg(&program).args(installation.words("guard", number)), SYSTEMD) {
            Ok(_) => return Ok(()),
            Err(why) => {
                installation.log.line(&format!("enable {number}: {why}; a session of its own"));
            }
        }
    }
    descriptors::keep_descriptors_here();
    let mut detach = quiet(&program);
    // A group of its own, so that a signal to the group of this process does not end that one.
    let ended = detach.args(installation.words("detach", number)).process_group(0).status();
    let ended = ended.map_err(|error| format!("no process can be started: {error}"))?;
    if ended.success() { Ok(()) } else { Err("no process can be started".to_owned()) }
}

/// Starts the guard and exits, so that the guard is not a child of the caller.
pub(crate) fn detach(installation: &Installation<'_>, number: u64) -> u8 {
    let Ok(program) = std::env::current_exe() else { return exit::INTERNAL };
    match quiet(&program).args(installation.words("guard", number)).spawn() {
        Ok(_) => exit::DONE,
        Err(_) => exit::INTERNAL,
    }
}

/// A session of its own. In a unit it has one already.
pub(crate) fn leave_session() {
    let _ = rustix::process::setsid();
}

/// Runs the process that waits; the code it ended with, unless it was killed.
pub(crate) fn run_waiter(installation: &Installation<'_>, number: u64) -> Option<i32> {
    let program = std::env::current_exe().ok()?;
    quiet(&program).args(installation.words("wait", number)).status().ok()?.code()
}

fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Ends everything of this extension that stays.
pub(crate) fn stop(installation: &Installation<'_>) {
    if let Some(mut systemd) = systemd(installation.root, "systemctl") {
        let _ = ask(systemd.args(["stop", "--quiet", UNIT]), LAST_WORDS.saturating_add(SYSTEMD));
    }
    // First the guards, which would start the waiters again.
    for (process, _) in processes(installation).iter().filter(|(_, it)| it.role == Role::Guard) {
        send(*process, Signal::KILL);
    }
    let waiters: Vec<Process> =
        processes(installation).into_iter().map(|(process, _)| process).collect();
    for signal in [Signal::TERM, Signal::KILL] {
        let left: Vec<Process> = waiters.iter().copied().filter(|it| it.alive()).collect();
        for process in &left {
            send(*process, signal);
        }
        let begun = Instant::now();
        while left.iter().any(|it| it.alive()) && begun.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn send(process: Process, signal: Signal) {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| process.alive()) {
        let _ = kill_process(pid, signal);
    }
}

/// A program of systemd, where systemd runs.
fn systemd(root: &Root, program: &str) -> Option<Command> {
    if !root.at("/run/systemd/system").is_dir() {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    let mut there = std::env::split_paths(&path).map(|folder| root.at(folder).join(program));
    let found: PathBuf = there.find(|path| path.is_file())?;
    Some(Command::new(found))
}
