//! The keeper: a process between the agent and the scripts. The keeper has a session of its own, so that the
//! scripts survive when the agent is killed, and it reads their output, so that the scripts never write into
//! a closed pipe. The keeper stores only the beginning and the end of the output.
//!
//! ```text
//! agent                     keeper                    gate, then the scripts
//!   │── secrets ──────────────▶│ takes the lock            │
//!   │                          │── starts ────────────────▶│ waits
//!   │◀─ started: process ID ───│                           │
//!   │ run.json                 │                           │
//!   │── go ───────────────────▶│── go ────────────────────▶│ becomes the scripts
//!   │◀─ ended ─────────────────│◀──────── output, end ─────│
//! ```
//!
//! No script runs before its process is recorded: if any of these processes is killed at any moment, the next
//! agent knows whether scripts run. If the agent or the keeper ends before `go`, the gate never opens.

mod ends;
mod strainer;

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, PipeReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::ends::Ends;
use self::strainer::Strainer;
use crate::aks::config;
use crate::clock::{self, Moment};
use crate::crash_points;
use crate::host::linux::drain::drain;
use crate::host::linux::lock;
use crate::host::linux::process::Process;
use crate::host::paths::Root;

/// The hidden command that makes this program the keeper.
pub(crate) const KEEP: &str = "__keep";
/// The hidden command that makes this program wait for [`GO`] and then become another program.
pub(crate) const GATE: &str = "__gate";

/// The message that opens the gate.
const GO: &str = "go";

/// The longest wait for the rest of the output after the scripts have ended. The output is usually read at
/// once; only a blocked reader of this program's own output causes a delay.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// The time that another keeper gets to notice the end of its agent or of its scripts.
const OTHERS: Duration = Duration::from_secs(10);

/// The messages of the keeper to the agent, one per line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum KeeperMessage {
    /// This process waits for [`GO`] and then becomes the scripts.
    Ready(Process),
    /// The scripts could not be started.
    NotStarted(String),
    /// The scripts ended.
    Ended {
        /// The exit code, unless a signal ended the scripts.
        code: Option<i32>,
        /// The signal that ended the scripts, if any.
        signal: Option<i32>,
        /// The standard output and error of the scripts, in this order.
        output: String,
    },
}

/// The agent's connection to a keeper.
#[derive(Debug)]
pub(crate) struct Keeper {
    stream: BufReader<UnixStream>,
}

impl Keeper {
    /// Starts a keeper for a command.
    pub(crate) fn start(root: &Root, command: &config::Command) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        crash_points::reached("start the keeper");
        Command::new(std::env::current_exe()?)
            .arg(KEEP)
            .arg(root.scripts_lock())
            .args(&command.argv)
            .env_clear()
            .envs(command.env.iter().cloned())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()?;
        let secrets: Vec<&str> = command.secrets.values().collect();
        crash_points::reached("tell the keeper what is secret");
        say(&ours, &serde_json::to_string(&secrets)?)?;
        Ok(Self { stream: BufReader::new(ours) })
    }

    /// The next message; `None` when the keeper has ended.
    pub(crate) fn next(&mut self) -> Option<KeeperMessage> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Lets the scripts begin.
    pub(crate) fn go(&self) -> io::Result<()> {
        crash_points::reached("say go");
        say(self.stream.get_ref(), GO)
    }

    /// Whether the keeper has sent a message or has ended.
    pub(crate) fn has_news(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(self.stream.get_ref(), PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !self.stream.buffer().is_empty() || poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0)
    }
}

impl AsFd for Keeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.get_ref().as_fd()
    }
}

fn say(mut to: &UnixStream, line: &str) -> io::Result<()> {
    to.write_all(format!("{line}\n").as_bytes())
}

/// Runs a hidden command, if one was typed.
pub(crate) fn hidden(typed: &[OsString]) -> Option<ExitCode> {
    let (word, rest) = typed.split_first()?;
    let done = if word == KEEP {
        rest.split_first().map_or(Ok(()), |(lock, argv)| keep(Path::new(lock), argv))
    } else if word == GATE {
        gate(rest)
    } else {
        return None;
    };
    Some(if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waits for [`GO`] and becomes the program. Returns only if that fails; then the keeper, which sends `GO`,
/// receives the reason.
fn gate(argv: &[OsString]) -> io::Result<()> {
    let keeper = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut word = String::new();
    BufReader::new(&keeper).read_line(&mut word)?;
    let Some((program, arguments)) = argv.split_first().filter(|_| word.trim_end() == GO) else {
        return Ok(());
    };
    crash_points::reached("become the scripts");
    let error = Command::new(program).args(arguments).stdin(Stdio::null()).exec();
    say(&keeper, &error.to_string())
}

/// Runs the keeper.
fn keep(lock: &Path, argv: &[OsString]) -> io::Result<()> {
    // `setsid` fails only for the leader of a process group, which a new process is not.
    let _ = rustix::process::setsid();
    let agent = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut orders = BufReader::new(&agent);
    let tell = |told: &KeeperMessage| say(&agent, &serde_json::to_string(told)?);
    let mut secrets = String::new();
    orders.read_line(&mut secrets)?;
    let secrets: Vec<String> = serde_json::from_str(&secrets)?;
    crash_points::reached("lock the scripts");
    let held = match lock::take_within(lock, OTHERS) {
        Ok(None) => {
            return tell(&KeeperMessage::NotStarted("other scripts are running".to_owned()));
        }
        Ok(Some(held)) => Some(held),
        // Without a place for locks, the keeper still has to bring up the node.
        Err(_) => None,
    };
    let (ours, theirs) = UnixStream::pair()?;
    crash_points::reached("start the gate");
    let mut child = Command::new(std::env::current_exe()?)
        .arg(GATE)
        .args(argv)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let Some(process) = Process::of(child.id()) else {
        return tell(&KeeperMessage::NotStarted("the process is gone".to_owned()));
    };
    crash_points::reached("tell which process");
    tell(&KeeperMessage::Ready(process))?;
    let mut word = String::new();
    orders.read_line(&mut word)?;
    if word.trim_end() != GO {
        // The agent has ended. Without `GO`, the gate ends too.
        drop(ours);
        return child.wait().map(drop);
    }
    crash_points::reached("pass the word on");
    say(&ours, GO)?;
    // The pipe closes without a message when the gate has become the scripts.
    let mut why = String::new();
    (&ours).take(4096).read_to_string(&mut why)?;
    if !why.is_empty() {
        return tell(&KeeperMessage::NotStarted(why.trim_end().to_owned()));
    }
    let kept = [Arc::new(Mutex::new(Ends::default())), Arc::new(Mutex::new(Ends::default()))];
    let (status, readers) = attend(&mut child, &kept, &Strainer::of(&secrets))?;
    drop(held);
    let output = kept.each_ref().map(|ends| {
        ends.lock().map(|mut ends| std::mem::take(&mut *ends).text()).unwrap_or_default()
    });
    crash_points::reached("tell the end");
    // The agent may have ended while the scripts continued.
    let _ = tell(&ended(status, output.concat()));
    let _ = agent.shutdown(Shutdown::Both);
    for reader in readers {
        let _ = reader.join();
    }
    Ok(())
}

/// Reads the output of the scripts until they end.
fn attend(
    child: &mut Child,
    kept: &[Arc<Mutex<Ends>>; 2],
    strainer: &Strainer,
) -> io::Result<(ExitStatus, Vec<JoinHandle<()>>)> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (ended, end) = io::pipe()?;
    let ended = Arc::new(ended);
    let (done, caught_up) = mpsc::channel::<()>();
    let readers = [
        out.map(|from| {
            reader(from, io::stdout(), &kept[0], strainer.clone(), &ended, done.clone())
        }),
        err.map(|from| {
            reader(from, io::stderr(), &kept[1], strainer.clone(), &ended, done.clone())
        }),
    ];
    drop(done);
    let status = child.wait()?;
    let begun = Moment::now();
    drop(end);
    // Nothing is sent; the channel closes when the last reader has read all output of the scripts. Processes
    // that the scripts left behind may hold the pipes open forever; the end of the scripts is reported
    // anyway.
    let _ = clock::receive(&caught_up, begun, LAST_WORDS);
    Ok((status, readers.into_iter().flatten().collect()))
}

fn reader(
    from: impl Read + AsFd + Send + 'static,
    to: impl Write + Send + 'static,
    ends: &Arc<Mutex<Ends>>,
    strainer: Strainer,
    ended: &Arc<PipeReader>,
    done: mpsc::Sender<()>,
) -> JoinHandle<()> {
    let (ends, ended) = (Arc::clone(ends), Arc::clone(ended));
    std::thread::spawn(move || pass_on(from, to, &ends, strainer, &ended, done))
}

fn ended(status: ExitStatus, output: String) -> KeeperMessage {
    KeeperMessage::Ended { code: status.code(), signal: status.signal(), output }
}

/// Passes on a stream without its secrets and stores its beginning and end. Drops `done` when all output up
/// to the end of the scripts is read. Even without a reader of its own output, the keeper drains the stream.
fn pass_on(
    from: impl Read + AsFd,
    mut to: impl Write,
    ends: &Mutex<Ends>,
    mut strainer: Strainer,
    ended: &PipeReader,
    done: mpsc::Sender<()>,
) {
    let mut give = |bytes: &[u8]| {
        let _ = to.write_all(bytes).and_then(|()| to.flush());
        if let Ok(mut ends) = ends.lock() {
            ends.add(bytes);
        }
    };
    drain(from, ended, |bytes| give(&strainer.pass(bytes)), || drop(done));
    give(&strainer.rest());
}
