//! Runs another program that may hang.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::clock::{self, Moment};

/// The largest output of a program that is read.
const MOST: u64 = 4 << 20;

/// The output of a program that ends successfully and in time. A late program is killed with all its child
/// processes: a script may hang in a child.
pub(crate) fn ask(command: &mut Command, limit: Duration) -> Result<String, String> {
    ask_with(command, &[], limit)
}

/// Like [`ask`], with an input for the program.
pub(crate) fn ask_with(
    command: &mut Command,
    input: &[u8],
    limit: Duration,
) -> Result<String, String> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let command = command.process_group(0).stdin(stdin);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let begun = Moment::now();
    let mut child = command.spawn().map_err(|error| format!("{name} cannot be run: {error}"))?;
    let stdout = child.stdout.take();
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        // The thread ends when the program has read everything, or has ended.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(stdout) = stdout {
            let _ = stdout.take(MOST).read_to_end(&mut text);
        }
        let _ = sender.send(text);
    });
    let said = clock::receive(&receiver, begun, limit);
    // A program that closes its output is about to end; otherwise it is killed below.
    let status = said.is_some().then(|| child.wait());
    let group = rustix::process::Pid::from_child(&child);
    // This fails if no process is left, which is the desired state.
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let _ = child.wait();
    let said = said
        .ok_or_else(|| format!("{name} said nothing for {} ms and was ended", limit.as_millis()))?;
    match status {
        Some(Ok(status)) if !status.success() => Err(format!("{name} ended with {status}")),
        _ => Ok(String::from_utf8_lossy(&said).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_in_a_child_is_ended_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (pid, time) = (folder.path().join("pid"), folder.path().join("clock"));
        clock::tests::follow(&time);
        // The time must run out only after the child has started.
        let script =
            format!("sleep 1000 & echo $! >{}; echo 500 >{}; wait", pid.display(), time.display());
        let limit = Duration::from_millis(500);
        let said = ask(Command::new("bash").args(["-c", &script]), limit);
        assert_eq!(said, Err("bash said nothing for 500 ms and was ended".to_owned()));
        let pid = std::fs::read_to_string(pid).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        let began = std::time::Instant::now();
        // The process does not exist, or is a zombie that init has not collected yet.
        let lives = || std::fs::read_to_string(&stat).is_ok_and(|state| !state.contains(" Z "));
        while lives() {
            assert!(began.elapsed() < Duration::from_mins(4), "it lives");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_it_prints_is_the_answer() {
        let said = ask(Command::new("echo").arg("x"), Duration::from_mins(4));
        assert_eq!(said.as_deref(), Ok("x\n"));
        assert!(ask(&mut Command::new("/nowhere/x"), Duration::from_secs(1)).is_err());
        assert_eq!(
            ask(&mut Command::new("false"), Duration::from_mins(4)),
            Err("false ended with exit status: 1".to_owned())
        );
    }
}
