//! A step under way: what it has at hand, what it notes, and how it fails.

use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bringup_contract::Cause;
use bringup_contract::join_config::JoinConfig;

use super::program::{self, Ending, ProgramResult};
use crate::agent::Agent;
use crate::clock::Moment;
use crate::crash_points;
use crate::host::linux::store;
use crate::host::paths::Root;

/// No single question to the system takes longer, whatever time the step has.
const QUESTION: Duration = Duration::from_secs(20);

/// Why a step failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// In a sentence.
    pub(super) error: String,
    /// The cause, where the step knows it for sure.
    pub(super) cause: Option<Cause>,
    /// What the programs said, for the diagnosis.
    pub(super) output: String,
    /// Lines that prove it.
    pub(super) evidence: Vec<String>,
    /// The time was up.
    pub(super) late: bool,
}

impl Failure {
    /// Something is wrong, and the step knows why.
    pub(super) fn because(cause: Cause, error: impl Into<String>) -> Self {
        Self { cause: Some(cause), ..Self::unexplained(error) }
    }

    /// Something is wrong; the diagnosis is to find out why.
    pub(super) fn unexplained(error: impl Into<String>) -> Self {
        let (error, output) = (error.into(), String::new());
        Self { error, cause: None, output, evidence: Vec::new(), late: false }
    }

    /// A program failed.
    pub(super) fn of(said: &ProgramResult) -> Self {
        let cause = match said.ending {
            Ending::Absent | Ending::NotRun(_) => Some(Cause::BinaryMissing),
            Ending::Exited(_) | Ending::Killed(_) | Ending::TimedOut(_) => None,
        };
        let late = matches!(said.ending, Ending::TimedOut(_));
        Self { cause, output: said.both(), late, ..Self::unexplained(said.told()) }
    }

    /// A file could not be read or written.
    pub(super) fn of_file(root: &Root, path: &Path, error: &io::Error) -> Self {
        let cause = match error.kind() {
            io::ErrorKind::StorageFull => Some(Cause::DiskFull),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Some(Cause::PermissionDenied)
            }
            _ => None,
        };
        Self { cause, ..Self::unexplained(format!("{}: {error}", root.told(path))) }
    }

    /// The same, with a line that proves it.
    pub(super) fn with(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }
}

/// A step under way.
pub(super) struct Task<'a> {
    pub(super) agent: &'a Agent,
    pub(super) config: &'a JoinConfig,
    begun: Moment,
    limit: Duration,
    /// What used the time up.
    slow: RefCell<Option<ProgramResult>>,
    /// What it did and saw.
    pub(super) evidence: Vec<String>,
    /// It did something.
    pub(super) changed: bool,
}

impl<'a> Task<'a> {
    /// A step that begins now.
    pub(super) fn begin(agent: &'a Agent, config: &'a JoinConfig, limit: Duration) -> Self {
        let (begun, slow, evidence) = (Moment::now(), RefCell::default(), Vec::new());
        Self { agent, config, begun, limit, slow, evidence, changed: false }
    }

    /// Where everything is.
    pub(super) fn root(&self) -> &'a Root {
        &self.agent.root
    }

    /// A path under the root, as a text.
    pub(super) fn at(&self, path: &str) -> String {
        self.root().at(path).display().to_string()
    }

    /// How much time is left.
    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.begun.elapsed())
    }

    /// How long it took so far.
    pub(super) fn took(&self) -> Duration {
        self.begun.elapsed()
    }

    /// A pause that suits the time that the step has.
    pub(super) fn pause(&self) -> Duration {
        self.limit / 60
    }

    /// Something was seen.
    pub(super) fn saw(&mut self, what: impl Into<String>) {
        self.evidence.push(what.into());
    }

    /// Something was done.
    pub(super) fn did(&mut self, what: impl Into<String>) {
        self.changed = true;
        self.saw(what);
    }

    /// Asks a program of the system, which may say no.
    pub(super) fn ask(&self, name: &str, arguments: &[&str]) -> ProgramResult {
        self.run(name, arguments, "", self.left().min(QUESTION))
    }

    /// Has a program do something; it must end well within the time of the step.
    pub(super) fn have(&self, name: &str, arguments: &[&str]) -> Result<ProgramResult, Failure> {
        let said = self.have_with(name, arguments, "");
        if said.well() { Ok(said) } else { Err(Failure::of(&said)) }
    }

    /// Has a program do something with an input, within the time of the step.
    pub(super) fn have_with(&self, name: &str, arguments: &[&str], input: &str) -> ProgramResult {
        crash_points::reached(format_args!("run {name} {}", arguments.first().unwrap_or(&"")));
        self.run(name, arguments, input, self.left())
    }

    /// When the time is up nothing is started any more; what used it up is blamed.
    fn run(&self, name: &str, arguments: &[&str], input: &str, limit: Duration) -> ProgramResult {
        let slow = self.slow.borrow().clone().filter(|_| limit.is_zero());
        if let Some(slow) = slow {
            return slow;
        }
        let said = program::run(self.root(), name, arguments, input, limit);
        if matches!(said.ending, Ending::TimedOut(_)) {
            *self.slow.borrow_mut() = Some(said.clone());
        }
        said
    }

    /// Puts a file in its place, as a whole. False if it is there already.
    pub(super) fn put(&self, path: &str, content: &[u8], mode: u32) -> Result<bool, Failure> {
        let path = self.root().at(path);
        let data = fs::metadata(&path);
        let right = data.is_ok_and(|data| data.permissions().mode() & 0o777 == mode)
            && fs::read(&path).is_ok_and(|there| there == content);
        if right {
            return Ok(false);
        }
        put(&path, content, mode)
            .map(|()| true)
            .map_err(|error| Failure::of_file(self.root(), &path, &error))
    }

    /// What a file says; nothing if it is not there.
    pub(super) fn text(&self, path: &str) -> String {
        store::head(&self.root().at(path), 1 << 20).unwrap_or_default()
    }
}

/// Puts a file in its place, as a whole.
pub(super) fn put(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let beside = beside(path)?;
    let file = store::write_new(&beside, content, mode)?;
    file.sync_all()?;
    crash_points::reached(format_args!("rename to {}", path.display()));
    fs::rename(&beside, path)
}

/// Puts a file that was made elsewhere in its place, as a program.
pub(super) fn install(from: &Path, path: &Path) -> io::Result<()> {
    let beside = beside(path)?;
    let _ = fs::remove_file(&beside);
    fs::copy(from, &beside)?;
    fs::set_permissions(&beside, Permissions::from_mode(0o755))?;
    fs::File::open(&beside)?.sync_all()?;
    crash_points::reached(format_args!("rename to {}", path.display()));
    fs::rename(&beside, path)
}

/// The name under which a file is made, in a folder that is there.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    store::directory_for(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(folder.join(format!(".{name}.new")))
}
