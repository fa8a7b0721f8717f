//! The errors of the testbed.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

/// Why an action of the testbed failed.
///
/// Each message is complete without its source, and does not repeat it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `build.sh` could not be started.
    #[error("could not run {}", script.display())]
    BuildScript {
        /// The script.
        script: PathBuf,
        /// Why the script did not start.
        source: io::Error,
    },

    /// `build.sh` failed; its error is on standard error.
    #[error("{} failed ({}); the reason is in its output", script.display(), describe(*status))]
    Build {
        /// The script.
        script: PathBuf,
        /// The exit status of the script.
        status: ExitStatus,
    },

    /// A program is missing from ready-made assets.
    #[error("there is no {program} in {}", directory.display())]
    ProgramMissing {
        /// The missing program.
        program: &'static str,
        /// The directory that was searched.
        directory: PathBuf,
    },

    /// The testbed could not read or write one of its own files or directories.
    #[error("could not {action} {}", path.display())]
    File {
        /// `read`, `write` or `create`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },

    /// A key or certificate could not be created.
    #[error("could not make the certificate of {subject}")]
    Certificate {
        /// The subject of the certificate.
        subject: String,
        /// The underlying error.
        source: rcgen::Error,
    },

    /// The requested port is in use, or no port is free.
    #[error("cannot listen on 127.0.0.1:{port}{}", if *port == 0 { " (any free port)" } else { "" })]
    Port {
        /// The port, 0 for any.
        port: u16,
        /// The underlying error.
        source: io::Error,
    },

    /// A program could not be started.
    #[error("could not start {program}")]
    Spawn {
        /// The program.
        program: &'static str,
        /// The underlying error.
        source: io::Error,
    },

    /// A program that should be running has ended.
    #[error("{program} exited ({}){log}", describe(*status))]
    Exited {
        /// The program.
        program: &'static str,
        /// The exit status of the program.
        status: ExitStatus,
        /// The last lines of the program's log.
        log: LogTail,
    },

    /// An event did not happen within the time limit.
    #[error("waited {} s in vain for {awaited}{log}", limit.as_secs())]
    TimedOut {
        /// The awaited event.
        awaited: String,
        /// The time limit.
        limit: Duration,
        /// The last lines of the API server's log.
        log: LogTail,
    },

    /// No state met the condition before the time limit or before the end of the states.
    #[error("waited in vain for {awaited}; seen last: {seen}")]
    NeverSeen {
        /// The awaited condition.
        awaited: String,
        /// The last state, as JSON, or why it could not be read.
        seen: String,
    },

    /// The API server refused a request or could not be reached.
    #[error("could not {attempted}")]
    Api {
        /// What was attempted, such as `create the Node aks-1`.
        attempted: String,
        /// The error of the client.
        source: Box<kube::Error>,
    },

    /// A watch broke.
    #[error("could not watch {watched}")]
    Watch {
        /// The watched resource.
        watched: &'static str,
        /// The underlying error.
        source: Box<kube::runtime::watcher::Error>,
    },

    /// The testbed could not create a client from a kubeconfig that it has just written.
    #[error("could not use the kubeconfig {}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: Box<kube::config::KubeconfigError>,
    },
}

/// The result of an action of the testbed.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// For `map_err` on file operations.
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }

    /// For `map_err` on requests to the API server.
    pub(crate) fn api(attempted: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let attempted = attempted.into();
        move |source| Self::Api { attempted, source: Box::new(source) }
    }
}

/// The last lines of a program's log, shown after a message; empty if there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogTail(pub Vec<String>);

impl std::fmt::Display for LogTail {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_slice() {
            [] => Ok(()),
            [line] => write!(formatter, "; its log ends: {line}"),
            lines => {
                write!(formatter, "; its log ends:")?;
                lines.iter().try_for_each(|line| write!(formatter, "\n  {line}"))
            }
        }
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;

    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn exited(raw_status: i32, log: &[&str]) -> String {
        Error::Exited {
            program: "etcd",
            status: ExitStatus::from_raw(raw_status),
            log: LogTail(log.iter().map(ToString::to_string).collect()),
        }
        .to_string()
    }

    #[test]
    fn a_program_killed_without_a_word_is_one_line() {
        assert_eq!(exited(9, &[]), "etcd exited (signal 9)");
    }

    #[test]
    fn a_program_that_said_why_is_quoted() {
        assert_eq!(
            exited(1 << 8, &["no space left"]),
            "etcd exited (exit status 1); its log ends: no space left"
        );
        assert_eq!(
            exited(1 << 8, &["one", "two"]),
            "etcd exited (exit status 1); its log ends:\n  one\n  two"
        );
    }
}
