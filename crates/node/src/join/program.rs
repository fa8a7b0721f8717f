//! Runs the programs of the system: each has a time limit, and its output is recorded.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, PipeReader, Read, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use bringup_contract::node_config::never_passed;

use crate::clock::Moment;
use crate::host::linux::drain::drain;
use crate::host::paths::Root;

/// The folders that are searched for programs: programs that this agent installs take precedence over the
/// image's.
const FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The largest output of a program that is recorded.
const MOST: usize = 1 << 20;

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// The program exited with this status.
    Exited(i32),
    /// A signal of another process ended the program.
    Killed(i32),
    /// This agent ended the program after this time limit.
    TimedOut(Duration),
    /// The program does not exist.
    Absent,
    /// The program exists and cannot be executed.
    NotRun(String),
}

/// How a program ended, and its output.
#[derive(Debug, Clone)]
pub(super) struct ProgramResult {
    /// The name of the program.
    pub(super) program: String,
    pub(super) ending: Ending,
    pub(super) out: String,
    pub(super) err: String,
}

impl ProgramResult {
    /// Whether the program succeeded.
    pub(super) fn well(&self) -> bool {
        self.ending == Ending::Exited(0)
    }

    /// A sentence about how the program ended, with the last line of its output.
    pub(super) fn told(&self) -> String {
        let name = &self.program;
        let how = match &self.ending {
            Ending::Exited(code) => format!("{name} ended with {code}"),
            Ending::Killed(signal) => format!("{name} was ended by signal {signal}"),
            Ending::TimedOut(limit) => {
                format!("{name} had not ended after {:.0?} and was ended", *limit)
            }
            Ending::Absent => format!("{name} is not on this machine"),
            Ending::NotRun(why) => format!("{name} cannot be run: {why}"),
        };
        let last = |text: &str| {
            text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
        };
        match last(&self.err).or_else(|| last(&self.out)) {
            Some(line) => format!("{how}: {}", &line[..line.floor_char_boundary(300)]),
            None => how,
        }
    }

    /// The standard output and the standard error.
    pub(super) fn both(&self) -> String {
        format!("{}\n{}", self.out, self.err)
    }
}

/// The path of a program.
pub(super) fn find(root: &Root, name: &str) -> Option<PathBuf> {
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    FOLDERS.iter().map(|folder| root.at(folder).join(name)).find(|path| runs(path))
}

/// The search path of the programs. Under a root, programs missing there come from the machine.
fn search_path(root: &Root) -> OsString {
    let ours = FOLDERS.iter().map(|folder| root.at(folder));
    let others = root.directory().map(|_| ["/usr/bin", "/bin"].map(PathBuf::from));
    std::env::join_paths(ours.chain(others.into_iter().flatten())).unwrap_or_default()
}

/// Runs a program and waits for it. After the time limit, the program is killed with all its child processes.
pub(super) fn run(
    root: &Root,
    name: &str,
    arguments: &[&str],
    input: &str,
    limit: Duration,
) -> ProgramResult {
    let said = |ending, out: Vec<u8>, err: Vec<u8>| ProgramResult {
        program: name.to_owned(),
        ending,
        out: String::from_utf8_lossy(&out).into_owned(),
        err: String::from_utf8_lossy(&err).into_owned(),
    };
    let Some(path) = find(root, name) else {
        return said(Ending::Absent, Vec::new(), Vec::new());
    };
    let mut command = Command::new(path);
    for (variable, _) in std::env::vars_os() {
        if never_passed(&variable.to_string_lossy()) {
            command.env_remove(variable);
        }
    }
    command.args(arguments).env("PATH", search_path(root)).env("LC_ALL", "C");
    command.env("DEBIAN_FRONTEND", "noninteractive").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Moment::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return said(Ending::NotRun(error.to_string()), Vec::new(), Vec::new()),
    };
    if let Some(mut stdin) = child.stdin.take() {
        // The program may not read its input. The input is shorter than a pipe, so this call does not block.
        let _ = stdin.write_all(input.as_bytes());
    }
    let (ended, end) = match io::pipe() {
        Ok((ended, end)) => (Arc::new(ended), end),
        Err(error) => {
            end_group(rustix::process::Pid::from_child(&child));
            let _ = child.wait();
            return said(Ending::NotRun(error.to_string()), Vec::new(), Vec::new());
        }
    };
    let out = child.stdout.take().map(|from| reader(from, &ended));
    let err = child.stderr.take().map(|from| reader(from, &ended));
    let ending = wait(&mut child, begun, limit);
    drop(end);
    let all = |from: Option<Receiver<Vec<u8>>>| {
        from.and_then(|from| from.recv().ok()).unwrap_or_default()
    };
    said(ending, all(out), all(err))
}

/// Reads while the program runs: a program that cannot write would block forever. The output is sent when the
/// program has ended; the thread then drains the pipe for processes that the program left running.
fn reader(from: impl Read + AsFd + Send + 'static, ended: &Arc<PipeReader>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let ended = Arc::clone(ended);
    std::thread::spawn(move || {
        let kept = RefCell::new(Vec::new());
        let keep = |bytes: &[u8]| {
            let mut kept = kept.borrow_mut();
            let room = MOST.saturating_sub(kept.len()).min(bytes.len());
            kept.extend_from_slice(&bytes[..room]);
        };
        // The receiver waits for this message.
        drain(from, &ended, keep, || drop(sender.send(kept.take())));
    });
    receiver
}

fn wait(child: &mut Child, begun: Moment, limit: Duration) -> Ending {
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                return status.code().map_or_else(
                    || Ending::Killed(status.signal().unwrap_or_default()),
                    Ending::Exited,
                );
            }
            Ok(None) if begun.elapsed() < limit => {
                std::thread::sleep(pause.min(limit.saturating_sub(begun.elapsed())));
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            Ok(None) | Err(_) => {
                end_group(rustix::process::Pid::from_child(child));
                let _ = child.wait();
                return Ending::TimedOut(limit);
            }
        }
    }
}

/// Ends a program and all its child processes. The call fails if no process is left, which is fine.
fn end_group(group: rustix::process::Pid) {
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
}

/// Ends programs of this name that a killed agent started with a file of ours and that still run. Returns
/// their number.
pub(super) fn end_orphans(name: &str, file: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_orphan = |number: &i32| {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let named =
            |word: &&[u8]| word.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes());
        words.contains(&file.as_os_str().as_encoded_bytes()) && words.iter().take(2).any(named)
    };
    let orphans: Vec<i32> = numbers.filter(is_orphan).collect();
    // Each program leads a process group of its own.
    orphans.iter().filter_map(|number| rustix::process::Pid::from_raw(*number)).for_each(end_group);
    orphans.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_ended_and_what_it_said_is_kept() {
        let root = Root::new(None);
        let folder = tempfile::tempdir().unwrap();
        let time = folder.path().join("clock");
        crate::clock::tests::follow(&time);
        // The time must run out only after the program has printed its output.
        let script = format!("echo said; echo 500 >{}; sleep 1000", time.display());
        let said = run(&root, "sh", &["-c", &script], "", Duration::from_millis(500));
        assert_eq!(said.ending, Ending::TimedOut(Duration::from_millis(500)));
        assert_eq!(said.out, "said\n");
        assert!(said.told().contains("had not ended after 500ms"), "{}", said.told());
    }

    #[test]
    fn what_a_program_said_is_kept_though_it_left_something_running() {
        let root = Root::new(None);
        let script = "echo said; sleep 1000 & echo $!";
        let said = run(&root, "sh", &["-c", script], "", Duration::from_mins(4));
        assert_eq!(said.ending, Ending::Exited(0));
        let (word, pid) = said.out.trim_end().split_once('\n').unwrap();
        assert_eq!(word, "said");
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }

    #[test]
    fn the_end_of_a_program_is_told_with_its_last_words() {
        let root = Root::new(None);
        let limit = Duration::from_mins(1);
        let said = run(&root, "sh", &["-c", "cat; echo no >&2; exit 3"], "in", limit);
        assert_eq!((said.out.as_str(), said.told().as_str()), ("in", "sh ended with 3: no"));
        let said = run(&root, "no-such-program", &[], "", limit);
        assert_eq!(said.told(), "no-such-program is not on this machine");
    }
}
