//! What can go wrong between asking for a control plane and having one.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

/// Why the testbed could not do what it was asked for.
///
/// Each message is complete without its source, and does not repeat it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `build.sh` could not be run at all.
    #[error("could not run {}", script.display())]
    BuildScript {
        /// The script.
        script: PathBuf,
        /// Why it did not start.
        source: io::Error,
    },

    /// `build.sh` ran and failed; it has said why on standard error.
    #[error("{} failed ({}); the reason is in its output", script.display(), describe(*status))]
    Build {
        /// The script.
        script: PathBuf,
        /// How it ended.
        status: ExitStatus,
    },

    /// The assets lack a program, as ready-made ones may.
    #[error("there is no {program} in {}", directory.display())]
    ProgramMissing {
        /// The program that was to be started.
        program: &'static str,
        /// Where it was looked for.
        directory: PathBuf,
    },

    /// A file or directory of the testbed's own could not be read or written.
    #[error("could not {action} {}", path.display())]
    File {
        /// `read`, `write` or `create`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// A key or certificate could not be made.
    #[error("could not make the certificate of {subject}")]
    Certificate {
        /// Whose certificate.
        subject: String,
        /// Why not.
        source: rcgen::Error,
    },

    /// The port asked for is in use, or no port is free.
    #[error("cannot listen on 127.0.0.1:{port}{}", if *port == 0 { " (any free port)" } else { "" })]
    Port {
        /// The port, 0 for any.
        port: u16,
        /// Why not.
        source: io::Error,
    },

    /// A program could not be started.
    #[error("could not start {program}")]
    Spawn {
        /// The program.
        program: &'static str,
        /// Why not.
        source: io::Error,
    },

    /// A program that should be running is not.
    #[error("{program} exited ({}){log}", describe(*status))]
    Exited {
        /// The program.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The last lines it wrote.
        log: LogTail,
    },

    /// Something that takes milliseconds to minutes did not happen.
    #[error("waited {} s in vain for {awaited}{log}", limit.as_secs())]
    TimedOut {
        /// What was waited for.
        awaited: String,
        /// How long.
        limit: Duration,
        /// The last lines the API server wrote.
        log: LogTail,
    },

    /// No state was as wanted until the limit of waits, or until there were no more states.
    #[error("waited in vain for {awaited}; seen last: {seen}")]
    NeverSeen {
        /// What was waited for.
        awaited: String,
        /// The last state, as JSON, or why it could not be read.
        seen: String,
    },

    /// The API server refused a request or could not be reached.
    #[error("could not {attempted}")]
    Api {
        /// What was attempted, such as `create the Node aks-1`.
        attempted: String,
        /// What the client said.
        source: Box<kube::Error>,
    },

    /// A watch broke.
    #[error("could not watch {watched}")]
    Watch {
        /// What was watched.
        watched: &'static str,
        /// Why it broke.
        source: Box<kube::runtime::watcher::Error>,
    },

    /// A kubeconfig just written does not make a client.
    #[error("could not use the kubeconfig {}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<kube::config::KubeconfigError>,
    },
}

/// The result of what the testbed does.
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

/// The last lines of a program's log, shown after a message; nothing when there are none.
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
