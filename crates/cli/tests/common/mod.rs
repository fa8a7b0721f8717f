//! Runs the real program.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a run.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The standard output, parsed as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// Runs the program with arguments and an empty standard input.
pub fn bringup(arguments: &[&str]) -> Ran {
    bringup_reads(arguments, b"")
}

/// Runs the program with arguments and a standard input, in the folder of the fixtures.
pub fn bringup_reads(arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bringup"))
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may close its standard input before the end.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().expect("it ends by itself"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a command with an empty standard input.
pub fn ran(command: &mut Command) -> Ran {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Ran {
        code: output.status.code().expect("it ends by itself"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Writes an input file and returns its path.
pub fn file(directory: &Path, name: &str, content: &[u8]) -> String {
    let path = directory.join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Checks that no line is wider than a terminal, except a line with a single long path or name.
pub fn fits(text: &str) {
    for line in text.lines() {
        let unbroken = line.split_whitespace().count() <= 1;
        assert!(line.chars().count() <= 80 || unbroken, "{} columns: {line}", line.chars().count());
    }
}

/// The output of the extension for a successful bootstrap.
pub const SUCCESS: &str = r#"[stdout]
{
    "ExitCode": "0",
    "Output": "++ date\n+ echo 'kicking off man-db update process at Tue Nov 12 17:24:23 UTC 2024'\n+ exit 0",
    "Error": "",
    "ExecDuration": "18",
    "KernelStartTime": "Tue 2024-11-12 17:23:33 UTC",
    "CloudInitLocalStartTime": "Tue 2024-11-12 17:23:35 UTC",
    "CloudInitStartTime": "Tue 2024-11-12 17:23:39 UTC",
    "CloudFinalStartTime": "Tue 2024-11-12 17:24:05 UTC",
    "NetworkdStartTime": "Tue 2024-11-12 17:23:37 UTC",
    "CSEStartTime": "Tue Nov 12 17:24:06 UTC 2024",
    "GuestAgentStartTime": "Tue 2024-11-12 17:23:53 UTC",
    "SystemdSummary": "",
    "BootDatapoints": {
        "KernelStartTime": "Tue 2024-11-12 17:23:33 UTC",
        "CSEStartTime": "Tue Nov 12 17:24:06 UTC 2024",
        "GuestAgentStartTime": "Tue 2024-11-12 17:23:53 UTC",
        "KubeletStartTime": "Tue 2024-11-12 17:24:20 UTC"
    }
}
[stderr]
"#;

/// The output for exit code 211, caused by a missing program.
pub const ORAS_MISSING: &str = "Enable failed: failed to execute command: command terminated with exit status=211
[stdout]
{ \"ExitCode\": \"211\", \"Output\": \"+ retries=5\\n++ timeout 60 oras repo ls registry.example\\n+ output='timeout: failed to run command ‘oras’: No such file or directory'\\nunexpected response from acr: timeout: failed to run command ‘oras’: No such file or directory\\n+ return 211\", \"Error\": \"\", \"ExecDuration\": \"61\" }

[stderr]
";

/// The output for a missing configuration.
pub const NO_CONFIG: &str = "failed to read provision.json: open /var/log/azure/aks/provision.json: no such file or directory. One reason could be that AKSNodeConfig is not properly set.";
