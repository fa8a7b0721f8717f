//! Starts the simulator as a program.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A running `bringup-azure-sim`; the program ends when this value is dropped, and with the test.
pub(crate) struct Program {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The JSON line that the program printed at its start.
    pub(crate) welcome: Value,
}

impl Program {
    pub(crate) fn command() -> Command {
        Command::new(env!("CARGO_BIN_EXE_bringup-azure-sim"))
    }

    /// Starts the program with these arguments and waits for its first output.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Self::command()
            .args(["--output", "json", "--exit-with-stdin"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let welcome = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        Self { child, stdout, welcome }
    }

    /// A value in [`Self::welcome`].
    pub(crate) fn said(&self, what: &str) -> &str {
        self.welcome[what].as_str().unwrap()
    }

    /// Closes the standard input and returns the last output and the exit code.
    pub(crate) fn end(mut self) -> (Value, i32) {
        drop(self.child.stdin.take());
        self.ended()
    }

    /// Sends a signal and returns the last output and the exit code.
    pub(crate) fn signal(mut self, signal: rustix::process::Signal) -> (Value, i32) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .unwrap();
        self.ended()
    }

    fn ended(&mut self) -> (Value, i32) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let code = self.child.wait().unwrap().code().unwrap();
        (serde_json::from_str(&rest).unwrap_or_else(|error| panic!("{error}: {rest}")), code)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
