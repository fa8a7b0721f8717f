//! A step in progress: its tools, its evidence, and its failure.

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

/// The longest that one query to the system may take, whatever time the step has left.
const QUESTION: Duration = Duration::from_secs(20);

/// The failure of a step.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) error: String,
    /// The cause, if the step is certain about it.
    pub(super) cause: Option<Cause>,
    /// The output of the programs, for the diagnosis.
    pub(super) output: String,
    /// Lines that prove the cause.
    pub(super) evidence: Vec<String>,
    /// Whether the time limit of the step was over.
    pub(super) late: bool,
}

impl Failure {
    /// A failure whose cause the step knows.
    pub(super) fn because(cause: Cause, error: impl Into<String>) -> Self {
        Self { cause: Some(cause), ..Self::unexplained(error) }
    }

    /// A failure whose cause the diagnosis must find.
    pub(super) fn unexplained(error: impl Into<String>) -> Self {
        let (error, output) = (error.into(), String::new());
        Self { error, cause: None, output, evidence: Vec::new(), late: false }
    }

    /// The failure of a program.
    pub(super) fn of(said: &ProgramResult) -> Self {
        let cause = match said.ending {
            Ending::Absent | Ending::NotRun(_) => Some(Cause::BinaryMissing),
            Ending::Exited(_) | Ending::Killed(_) | Ending::TimedOut(_) => None,
        };
        let late = matches!(said.ending, Ending::TimedOut(_));
        Self { cause, output: said.both(), late, ..Self::unexplained(said.told()) }
    }

    /// The failure to read or write a file.
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

    /// The same failure with another line of evidence.
    pub(super) fn with(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }
}

/// A step in progress.
pub(super) struct Task<'a> {
    pub(super) agent: &'a Agent,
    pub(super) config: &'a JoinConfig,
    begun: Moment,
    limit: Duration,
    /// The program that used up the time.
    slow: RefCell<Option<ProgramResult>>,
    /// The actions and observations of the step.
    pub(super) evidence: Vec<String>,
    /// Whether the step changed anything.
    pub(super) changed: bool,
}

impl<'a> Task<'a> {
    pub(super) fn begin(agent: &'a Agent, config: &'a JoinConfig, limit: Duration) -> Self {
        let (begun, slow, evidence) = (Moment::now(), RefCell::default(), Vec::new());
        Self { agent, config, begun, limit, slow, evidence, changed: false }
    }

    pub(super) fn root(&self) -> &'a Root {
        &self.agent.root
    }

    /// A path under the root, as a text.
    pub(super) fn at(&self, path: &str) -> String {
        self.root().at(path).display().to_string()
    }

    /// The remaining time.
    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.begun.elapsed())
    }

    /// The time since the step began.
    pub(super) fn took(&self) -> Duration {
        self.begun.elapsed()
    }

    /// A pause in proportion to the time limit of the step.
    pub(super) fn pause(&self) -> Duration {
        self.limit / 60
    }

    /// Records an observation.
    pub(super) fn saw(&mut self, what: impl Into<String>) {
        self.evidence.push(what.into());
    }

    /// Records a change.
    pub(super) fn did(&mut self, what: impl Into<String>) {
        self.changed = true;
        self.saw(what);
    }

    /// Runs a query with a program of the system; an unsuccessful exit is not an error.
    pub(super) fn ask(&self, name: &str, arguments: &[&str]) -> ProgramResult {
        self.run(name, arguments, "", self.left().min(QUESTION))
    }

    /// Runs a program that must succeed within the time of the step.
    pub(super) fn have(&self, name: &str, arguments: &[&str]) -> Result<ProgramResult, Failure> {
        let said = self.have_with(name, arguments, "");
        if said.well() { Ok(said) } else { Err(Failure::of(&said)) }
    }

    /// Runs a program with an input, within the time of the step.
    pub(super) fn have_with(&self, name: &str, arguments: &[&str], input: &str) -> ProgramResult {
        crash_points::reached(format_args!("run {name} {}", arguments.first().unwrap_or(&"")));
        self.run(name, arguments, input, self.left())
    }

    /// After the time limit no program is started any more; the failure names the program that used up the
    /// time.
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

    /// Writes a file atomically. Returns false if the file already has this content.
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

    /// The content of a file; empty if the file does not exist.
    pub(super) fn text(&self, path: &str) -> String {
        store::head(&self.root().at(path), 1 << 20).unwrap_or_default()
    }
}

/// Writes a file atomically.
pub(super) fn put(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let beside = beside(path)?;
    let file = store::write_new(&beside, content, mode)?;
    file.sync_all()?;
    crash_points::reached(format_args!("rename to {}", path.display()));
    fs::rename(&beside, path)
}

/// Moves a file to its target atomically and makes it executable.
pub(super) fn install(from: &Path, path: &Path) -> io::Result<()> {
    let beside = beside(path)?;
    let _ = fs::remove_file(&beside);
    fs::copy(from, &beside)?;
    fs::set_permissions(&beside, Permissions::from_mode(0o755))?;
    fs::File::open(&beside)?.sync_all()?;
    crash_points::reached(format_args!("rename to {}", path.display()));
    fs::rename(&beside, path)
}

/// The temporary name for a new file, in a folder that exists.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    store::directory_for(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(folder.join(format!(".{name}.new")))
}
