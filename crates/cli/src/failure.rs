//! How a command ends: the exit codes, and the error message of a command that fails.

use std::process::ExitCode;

use bringup_contract::Cause;
use bringup_diagnosis::{Diagnosis, Verdict};

use bringup_explain::layout::hang;

/// The exit codes, the same in every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Nothing failed.
    Fine = 0,
    /// Any other error.
    Error = 1,
    /// A failure whose cause is known.
    Cause = 10,
    /// A failure, or no verdict at all: the cause is not known.
    NoCause = 11,
    /// The command line is wrong.
    Usage = 64,
    /// The input is invalid.
    Input = 65,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<&Diagnosis> for Exit {
    fn from(diagnosis: &Diagnosis) -> Self {
        match diagnosis.verdict {
            Verdict::Succeeded | Verdict::Running => Self::Fine,
            Verdict::Failed if diagnosis.cause.reason != Cause::Unknown => Self::Cause,
            // An unknown result must not count as a success.
            Verdict::Failed | Verdict::Unknown => Self::NoCause,
        }
    }
}

/// The error of a command: a short message, the reason, and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    primary: String,
    detail: Option<String>,
    hint: Option<String>,
}

impl Failure {
    fn new(exit: Exit, primary: impl Into<String>) -> Self {
        Self { exit, primary: primary.into(), detail: None, hint: None }
    }

    /// Any other error.
    pub(crate) fn error(primary: impl Into<String>) -> Self {
        Self::new(Exit::Error, primary)
    }

    /// A wrong command line.
    pub(crate) fn usage(primary: impl Into<String>) -> Self {
        Self::new(Exit::Usage, primary)
    }

    /// An invalid input.
    pub(crate) fn input(primary: impl Into<String>) -> Self {
        Self::new(Exit::Input, primary)
    }

    /// Sets the exit code.
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Adds the reason.
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The complete message.
    pub(crate) fn text(&self) -> String {
        let mut text = hang(&self.primary, "error: ", "       ");
        for (label, part) in [("  why: ", &self.detail), ("  hint: ", &self.hint)] {
            if let Some(part) = part {
                text.push_str(&hang(part, label, "        "));
            }
        }
        text
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let failure = Self::new(Exit::Error, error.to_string());
        let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
        if causes.is_empty() { failure } else { failure.detail(causes.join(": ")) }
    }
}
