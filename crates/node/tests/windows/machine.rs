//! A Windows machine in a folder: the program for Windows, wine, and a root.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::requirement::skip;
use crate::common::{Ended, Killed};

const TARGET: &str = "x86_64-pc-windows-gnu";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";
pub(crate) const SENTINEL: &str = "run/cluster-api/bootstrap-success.complete";
pub(crate) const STATE: &str = "ProgramData/bringup-node/wait.json";
pub(crate) const REPORT: &str = "ProgramData/bringup-node/report.json";
pub(crate) const LOG: &str =
    "Program Files/Cloudbase Solutions/Cloudbase-Init/log/cloudbase-init.log";

/// Limits so long that a wait ends before them.
pub(crate) const PATIENT: [&str; 3] = ["--timeout=10m", "--start-timeout=10m", "--settle=0s"];

/// Longer than every operation here that does not wait for a limit.
pub(crate) const SOON: Duration = Duration::from_mins(4);

/// The tools to run a Windows program.
struct Tools {
    wine: PathBuf,
    libraries: PathBuf,
    program: PathBuf,
    random: PathBuf,
}

/// The tools, created once; or the missing requirement.
fn tools() -> Result<&'static Tools, String> {
    static TOOLS: OnceLock<Result<Tools, String>> = OnceLock::new();
    TOOLS.get_or_init(find_tools).as_ref().map_err(Clone::clone)
}

fn find_tools() -> Result<Tools, String> {
    let rustc = Command::new("rustc").args(["--print=target-libdir", "--target", TARGET]).output();
    let rustc = rustc.map_err(|error| format!("rustc does not run: {error}"))?;
    let libraries = String::from_utf8_lossy(&rustc.stdout).trim().to_owned();
    if !Path::new(&libraries).is_dir() {
        return Err(format!("the Rust target is missing: rustup target add {TARGET}"));
    }
    in_path(COMPILER).ok_or("the linker is missing: apt-get install gcc-mingw-w64-x86-64")?;
    let wine = ["wine64", "wine"].iter().find_map(|name| in_path(name));
    let wine =
        wine.or_else(|| Some(PathBuf::from("/usr/lib/wine/wine64")).filter(|it| it.is_file()));
    let wine = wine.ok_or("wine is missing: apt-get install wine64")?;
    let places = [
        "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows",
        "/usr/lib/wine/x86_64-windows",
        "/usr/lib64/wine/x86_64-windows",
        "/opt/wine-stable/lib64/wine/x86_64-windows",
        "/opt/wine-stable/lib/wine/x86_64-windows",
    ];
    let libraries =
        places.iter().map(PathBuf::from).find(|place| place.join("kernel32.dll").is_file());
    let libraries = libraries.ok_or("wine is missing its libraries: apt-get install wine64")?;
    Ok(Tools { wine, libraries, program: build(), random: build_random() })
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Builds the program for Windows, next to the program for this system.
fn build() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--package=bringup-node", "--bin=bringup-node"])
        .args(["--target", TARGET, "--target-dir"])
        .arg(folder)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    folder.join(TARGET).join("debug/bringup-node.exe")
}

/// Builds the library with the function that older wine lacks.
fn build_random() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/windows/bcryptprimitives.c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (library, new) = (folder.join("bcryptprimitives.dll"), folder.join("bcryptprimitives.new"));
    let mut compiler = Command::new(COMPILER);
    compiler.arg("-shared").arg("-o").arg(&new).arg(source).arg("-ladvapi32");
    assert!(compiler.status().unwrap().success());
    fs::rename(new, &library).unwrap();
    library
}

/// A Windows machine in a folder.
pub(crate) struct Machine {
    tools: &'static Tools,
    folder: TempDir,
}

/// The machine; `None` if Windows programs cannot run here.
pub(crate) fn machine() -> Option<Machine> {
    let tools = match tools() {
        Ok(tools) => tools,
        Err(missing) => {
            skip("windows", &missing);
            return None;
        }
    };
    let machine = Machine { tools, folder: tempfile::tempdir().unwrap() };
    machine.install();
    Some(machine)
}

impl Drop for Machine {
    /// wine's server runs on for a while and writes into the folder that is about to be deleted.
    fn drop(&mut self) {
        let beside = self.tools.wine.with_file_name("wineserver");
        let server = in_path("wineserver").unwrap_or(beside);
        let prefix = self.folder.path().join("wine");
        let _ = Command::new(server).arg("-k").env("WINEPREFIX", prefix).output();
    }
}

impl Machine {
    /// Creates a wine prefix from links alone: wine itself would copy several hundred MB.
    fn install(&self) {
        let at = |path: &str| self.folder.path().join(path);
        let system = at("wine/drive_c/windows/system32");
        fs::create_dir_all(&system).unwrap();
        fs::create_dir_all(at("wine/dosdevices")).unwrap();
        fs::create_dir_all(at("root")).unwrap();
        symlink("../drive_c", at("wine/dosdevices/c:")).unwrap();
        symlink("/", at("wine/dosdevices/z:")).unwrap();
        fs::write(at("wine/.update-timestamp"), "disable\n").unwrap();
        for library in fs::read_dir(&self.tools.libraries).unwrap() {
            let library = library.unwrap();
            symlink(library.path(), system.join(library.file_name())).unwrap();
        }
        let random = system.join("bcryptprimitives.dll");
        let _ = fs::remove_file(&random);
        symlink(&self.tools.random, random).unwrap();
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("root").join(path)
    }

    pub(crate) fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let text = fs::read_to_string(self.at(path)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let root = self.folder.path().join("root").display().to_string();
        let mut command = self.rootless_command(arguments);
        command.arg(format!("--root=Z:{}", root.replace('/', "\\")));
        command
    }

    /// The disk C of the machine, for runs without a root.
    pub(crate) fn disk(&self) -> PathBuf {
        self.folder.path().join("wine/drive_c")
    }

    fn rootless_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.wine();
        command.arg(&self.tools.program).args(arguments);
        command
    }

    /// The program for Windows.
    pub(crate) fn program(&self) -> &Path {
        &self.tools.program
    }

    /// A command for this machine, without its program.
    pub(crate) fn wine(&self) -> Command {
        let mut command = Command::new(&self.tools.wine);
        command.env("WINEPREFIX", self.folder.path().join("wine"));
        command.env("WINEDLLOVERRIDES", "bcryptprimitives=n").env("WINEDEBUG", "-all");
        command.env_remove("DISPLAY").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.ended(self.command(arguments))
    }

    /// Runs a command to its end. The output is written to files: processes that wine leaves running would
    /// keep a pipe open for a while.
    fn ended(&self, mut command: Command) -> Ended {
        let at = |name: &str| self.folder.path().join(name);
        command.stdout(File::create(at("out")).unwrap());
        command.stderr(File::create(at("err")).unwrap());
        let status = command.status().unwrap();
        let read = |name: &str| fs::read(at(name)).unwrap();
        Ended::of(&Output { status, stdout: read("out"), stderr: read("err") })
    }

    /// Like a normal run, without a root: the program uses the machine itself.
    pub(crate) fn run_without_root(&self, arguments: &[&str]) -> Ended {
        self.ended(self.rootless_command(arguments))
    }

    pub(crate) fn wait(&self, flags: &[&str]) -> Ended {
        self.run(&[&["wait"], flags].concat())
    }

    /// Starts a wait and returns once it is waiting.
    pub(crate) fn start(&self, flags: &[&str]) -> Killed {
        let _ = fs::remove_file(self.at(STATE));
        let child = Killed(self.command(&[&["wait"], flags].concat()).spawn().unwrap());
        until(|| self.at(STATE).exists());
        child
    }

    /// Waits for the end of a wait; returns its exit code.
    pub(crate) fn end_of(mut child: Killed) -> i32 {
        let mut ended = None;
        until(|| {
            ended = child.0.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code().unwrap_or(-1)
    }
}

fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < SOON, "it does not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The summary: the last line of the standard output.
pub(crate) fn summary(ended: &Ended) -> Value {
    let line = ended.out.lines().last().unwrap_or_default();
    assert!(line.len() < 3_500, "{} bytes", line.len());
    let json = line.strip_prefix("BRINGUP-NODE/1 ").unwrap_or_else(|| panic!("{ended:?}"));
    let value: Value = serde_json::from_str(json).unwrap();
    assert_eq!(value["end"], 1);
    value
}

/// Sends the event that Windows calls Ctrl+C.
pub(crate) fn interrupt(child: &Killed) {
    let told = Command::new("kill").args(["-INT", &child.0.id().to_string()]).status().unwrap();
    assert!(told.success());
}
