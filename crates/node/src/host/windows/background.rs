//! Background processes on Windows: in a service, which survives the guest agent and starts with the machine;
//! or detached, if no service can be created.

use std::io;
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::api::{processes, services};
use crate::extension::record::{Phase, Record};
use crate::extension::{Installation, Role, Running, exit, guard};
use crate::host::system::files;

/// The service of the waiter.
const SERVICE: &str = "bringup-node-ext";

/// The time that a started process needs to announce itself.
const ANNOUNCED: Duration = Duration::from_secs(5);

const DETACHED_PROCESS: u32 = 0x8;
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
const CREATE_BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;

/// The identity of a process. Windows does not show the command lines of other processes.
#[derive(Debug, Serialize, Deserialize)]
struct Announced {
    pid: u32,
    started: u64,
    number: u64,
    handler: PathBuf,
}

fn announcement(installation: &Installation<'_>, role: Role) -> PathBuf {
    installation.folder.join(format!("process-{}.json", role.word()))
}

/// Writes a file with the identity of this process.
pub(crate) fn announce(installation: &Installation<'_>, role: Role, number: u64) {
    let pid = std::process::id();
    let handler = installation.handler.clone();
    let said = Announced { pid, started: processes::started(pid).unwrap_or(0), number, handler };
    let written = serde_json::to_string(&said).map_err(io::Error::other);
    let written =
        written.and_then(|text| files::write(&announcement(installation, role), text.as_bytes()));
    if let Err(error) = written {
        installation.log.line(&format!("{}: who it is is not written: {error}", role.word()));
    }
}

fn announced(installation: &Installation<'_>, role: Role) -> Option<Announced> {
    let text = files::head(&announcement(installation, role), 64 * 1024).ok()?;
    let said: Announced = serde_json::from_str(&text).ok()?;
    let lives = processes::started(said.pid) == Some(said.started);
    Some(said).filter(|_| lives)
}

/// The processes of this extension.
pub(crate) fn running(installation: &Installation<'_>) -> Vec<Running> {
    let found =
        Role::ALL.into_iter().filter_map(|role| Some((role, announced(installation, role)?)));
    found.map(|(role, it)| Running { role, number: it.number, handler: it.handler }).collect()
}

/// The sequence number in the registry; the guest agent writes it as a text or as a number.
pub(crate) fn registered_number(handler: &Path) -> Option<u64> {
    let version = handler.file_name()?.to_str()?;
    let name = handler.parent()?.file_name()?.to_str()?;
    let key = format!(r"SOFTWARE\Microsoft\Windows Azure\HandlerState\{name}_{version}");
    let text = super::api::registry_text(&key, "SequenceNumber");
    let number = || super::api::registry_number(&key, "SequenceNumber").map(u64::from);
    text.and_then(|text| text.trim().parse().ok()).or_else(number)
}

/// Whether this is a machine, which has services, and not a folder that is used as one.
fn has_services(installation: &Installation<'_>) -> bool {
    installation.root.directory().is_none()
}

/// Creates the service, or updates an existing service to this version.
pub(crate) fn install(installation: &Installation<'_>) {
    if !has_services(installation) {
        return;
    }
    let made = std::env::current_exe().and_then(|program| {
        let handler = installation.handler.display();
        let command =
            format!("\"{}\" extension service --handler \"{handler}\"", program.display());
        services::make(SERVICE, &command)
    });
    if let Err(error) = made {
        installation.log.line(&format!("install: no service: {error}"));
    }
}

/// Deletes the service.
pub(crate) fn uninstall(installation: &Installation<'_>) {
    if has_services(installation) {
        let _ = services::remove(SERVICE);
    }
}

/// Starts a background process.
pub(crate) fn start(installation: &Installation<'_>, number: u64) -> Result<(), String> {
    if has_services(installation) {
        match services::start(SERVICE) {
            Ok(()) => return Ok(()),
            Err(error) => {
                installation.log.line(&format!("enable {number}: no service starts: {error}"));
            }
        }
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let spawn = |more: u32| {
        let mut command = quiet(installation, &program);
        command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP | more);
        command.args(installation.words("guard", number)).spawn()
    };
    // In a job that forbids breakaway, the process ends with the guest agent; then the agent calls `enable`
    // again.
    let spawned = spawn(CREATE_BREAKAWAY_FROM_JOB).or_else(|_| spawn(0));
    spawned.map_err(|error| format!("no process can be started: {error}"))?;
    let begun = Instant::now();
    while announced(installation, Role::Guard).is_none() && begun.elapsed() < ANNOUNCED {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn quiet(installation: &Installation<'_>, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(installation.root.directory().unwrap_or(Path::new(r"C:\")));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Nothing to do on Windows: a process has no session to leave.
pub(crate) fn leave_session() {}

/// Runs the waiter; returns its exit code.
pub(crate) fn run_waiter(installation: &Installation<'_>, number: u64) -> Option<i32> {
    let program = std::env::current_exe().ok()?;
    quiet(installation, &program).args(installation.words("wait", number)).status().ok()?.code()
}

/// Ends all background processes of this extension. Their state is in files that are written atomically, so
/// they need no time to end.
pub(crate) fn stop(installation: &Installation<'_>) {
    let guard = announced(installation, Role::Guard);
    if has_services(installation) {
        let _ = services::stop(SERVICE);
    }
    // First the guard, which would otherwise restart the waiter; then a waiter that the guard has just
    // started and that has not announced itself yet.
    if let Some(guard) = guard {
        processes::end(guard.pid, guard.started);
        for (pid, started) in processes::children(guard.pid, guard.started) {
            processes::end(pid, started);
        }
    }
    if let Some(waiter) = announced(installation, Role::Wait) {
        processes::end(waiter.pid, waiter.started);
    }
}

/// Runs the service: guards a wait in progress, and ends at once if there is none.
pub(crate) fn serve(installation: &Installation<'_>) -> u8 {
    let (root, folder) = (installation.root.clone(), installation.folder.clone());
    let (handler, log) = (installation.handler.clone(), installation.log.clone());
    let served = services::serve(SERVICE, move || {
        let installation = Installation { root: &root, folder, handler, log };
        let record = Record::load(&installation.folder);
        if let Some(record) = record.filter(|record| record.phase == Phase::Waiting) {
            guard::run(&installation, record.number);
        }
    });
    match served {
        Ok(()) => exit::DONE,
        Err(error) => {
            installation.log.line(&format!("service: {error}"));
            exit::INTERNAL
        }
    }
}
