//! The keeper: a process between the agent and the scripts. It has a session of its own, so that
//! the scripts live on when the agent is killed, and it reads their output, so that they never
//! write into a closed pipe. Of the output it keeps the beginning and the end.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config;
use crate::process::Process;

/// The hidden command that makes this program the keeper.
pub(crate) const COMMAND: &str = "__keep";

/// What is kept of a stream: its beginning and its end.
const HEAD: usize = 16 * 1024;
const TAIL: usize = 48 * 1024;

/// How long is waited for the rest of the output when the scripts have ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What the keeper tells the agent, a line each.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Told {
    /// The scripts run.
    Started(Process),
    /// The scripts could not be started.
    NotStarted(String),
    /// The scripts ended.
    Ended {
        /// With this code, unless a signal ended them.
        code: Option<i32>,
        /// With this signal.
        signal: Option<i32>,
        /// What they wrote to the standard output and error, in this order.
        output: String,
    },
}

/// Starts a keeper for a command. What it tells is read from the stream, which ends when the
/// scripts have; the keeper itself may stay for what they left running.
pub(crate) fn start(command: &config::Command) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    Command::new(std::env::current_exe()?)
        .arg(COMMAND)
        .args(&command.argv)
        .env_clear()
        .envs(command.env.iter().cloned())
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .spawn()?;
    Ok(ours)
}

/// Reads what the keeper tells next; nothing when it is gone.
pub(crate) fn next(stream: &mut BufReader<UnixStream>) -> Option<Told> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// Is the keeper.
pub(crate) fn keep(argv: &[std::ffi::OsString]) -> io::Result<()> {
    // It fails only for the leader of a group, which a process that was just made is not.
    let _ = rustix::process::setsid();
    let agent = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let tell = |told: &Told| -> io::Result<()> {
        (&agent).write_all(format!("{}\n", serde_json::to_string(told)?).as_bytes())
    };
    let Some((program, arguments)) = argv.split_first() else {
        return tell(&Told::NotStarted("no program".to_owned()));
    };
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return tell(&Told::NotStarted(error.to_string())),
    };
    // The agent may be gone; the scripts go on.
    if let Some(process) = Process::of(child.id()) {
        let _ = tell(&Told::Started(process));
    }
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let kept = [Arc::new(Mutex::new(Ends::default())), Arc::new(Mutex::new(Ends::default()))];
    let (done, end) = mpsc::channel::<()>();
    let readers = [
        out.map(|from| reader(from, io::stdout(), &kept[0], &done)),
        err.map(|from| reader(from, io::stderr(), &kept[1], &done)),
    ];
    drop(done);
    let status = child.wait()?;
    // Nobody sends; the channel ends with the last reader. What the scripts left running may hold
    // the pipes open for ever, and the end of the scripts is told all the same.
    let _ = end.recv_timeout(LAST_WORDS);
    let output = kept.each_ref().map(|ends| {
        ends.lock().map(|mut ends| std::mem::take(&mut *ends).text()).unwrap_or_default()
    });
    let _ = tell(&ended(status, output.concat()));
    let _ = agent.shutdown(Shutdown::Both);
    for reader in readers.into_iter().flatten() {
        let _ = reader.join();
    }
    Ok(())
}

fn reader(
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
    ends: &Arc<Mutex<Ends>>,
    done: &mpsc::Sender<()>,
) -> JoinHandle<()> {
    let (ends, done) = (Arc::clone(ends), done.clone());
    std::thread::spawn(move || {
        pass_on(from, to, &ends);
        drop(done);
    })
}

fn ended(status: ExitStatus, output: String) -> Told {
    Told::Ended { code: status.code(), signal: status.signal(), output }
}

/// Passes a stream on and keeps its ends. Nobody may be left to read it; it is drained all the
/// same.
fn pass_on(mut from: impl Read, mut to: impl Write, ends: &Mutex<Ends>) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let _ = to.write_all(&buffer[..count]).and_then(|()| to.flush());
        if let Ok(mut ends) = ends.lock() {
            ends.add(&buffer[..count]);
        }
    }
}

/// The beginning and the end of a stream.
#[derive(Debug, Default)]
struct Ends {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: usize,
}

impl Ends {
    fn add(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        self.left_out += over;
    }

    fn text(self) -> String {
        let tail = Vec::from(self.tail);
        let head = String::from_utf8_lossy(&self.head).into_owned();
        match self.left_out {
            0 => String::from_utf8_lossy(&[self.head, tail].concat()).into_owned(),
            count => {
                format!("{head}\n[{count} bytes left out]\n{}", String::from_utf8_lossy(&tail))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_stream_the_ends_are_kept() {
        let mut ends = Ends::default();
        ends.add(b"first ");
        for _ in 0..100 {
            ends.add(&[b'x'; 10_000]);
        }
        ends.add(b" last");
        let text = ends.text();
        assert!(text.starts_with("first xxx") && text.ends_with("xxx last"));
        assert!(text.contains("bytes left out") && text.len() < 66 * 1024);
    }

    #[test]
    fn a_short_stream_is_kept_whole() {
        let mut ends = Ends::default();
        ends.add("déjà".as_bytes());
        assert_eq!(ends.text(), "déjà");
    }
}
