//! Background processes on Linux: in a systemd unit of their own if systemd runs, so that they survive the
//! guest agent; else in a session of their own.

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

/// The unit of the waiter.
const UNIT: &str = "bringup-node-ext";

/// The longest wait for systemd.
const SYSTEMD: Duration = Duration::from_secs(3);

/// The time that a process gets to end after a signal.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Always `None`: on Linux, only the guest agent's variable and the files name a sequence number.
pub(crate) fn registered_number(_handler: &Path) -> Option<u64> {
    None
}

/// Nothing to do on Linux.
pub(crate) fn install(_stage: &Installation<'_>) {}

/// Nothing to do on Linux: the unit disappears with its process.
pub(crate) fn uninstall(_stage: &Installation<'_>) {}

/// Nothing to do on Linux: processes are found by their command lines.
pub(crate) fn announce(_stage: &Installation<'_>, _role: Role, _number: u64) {}

/// The processes of this extension.
pub(crate) fn running(installation: &Installation<'_>) -> Vec<Running> {
    processes(installation).into_iter().map(|(_, running)| running).collect()
}

fn processes(installation: &Installation<'_>) -> Vec<(Process, Running)> {
    let us = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries
        // Any user can start a process with the same command line.
        .filter(|entry| entry.metadata().is_ok_and(|data| data.uid() == us))
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let process = Process::of(pid)?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
            let program = words.next()?;
            let name = Path::new(program.as_ref()).file_name()?.to_str()?;
            let mut words: Vec<String> = words.map(std::borrow::Cow::into_owned).collect();
            // The last argument ends with a 0 too.
            words.pop();
            let running = Running::read(words, installation.root.directory())?;
            Some((process, running)).filter(|_| name.starts_with("bringup-node") && process.alive())
        })
        .collect()
}

/// Starts a background process.
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
    // A process group of its own, so that a signal to the group of this process does not end the new process.
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

/// Moves this process into a session of its own. In a unit, the process already has one.
pub(crate) fn leave_session() {
    let _ = rustix::process::setsid();
}

/// Runs the waiter; returns its exit code, unless it was killed.
pub(crate) fn run_waiter(installation: &Installation<'_>, number: u64) -> Option<i32> {
    let program = std::env::current_exe().ok()?;
    quiet(&program).args(installation.words("wait", number)).status().ok()?.code()
}

fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Ends all background processes of this extension.
pub(crate) fn stop(installation: &Installation<'_>) {
    if let Some(mut systemd) = systemd(installation.root, "systemctl") {
        let _ = ask(systemd.args(["stop", "--quiet", UNIT]), LAST_WORDS.saturating_add(SYSTEMD));
    }
    // First the guards, which would otherwise restart the waiters.
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

/// A program of systemd, if systemd runs.
fn systemd(root: &Root, program: &str) -> Option<Command> {
    if !root.at("/run/systemd/system").is_dir() {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    let mut there = std::env::split_paths(&path).map(|folder| root.at(folder).join(program));
    let found: PathBuf = there.find(|path| path.is_file())?;
    Some(Command::new(found))
}
