//! Downloads: pinned by checksum, retried if a retry can help, and with a cause of its own for each failure.
//! curl does the download; this program contains neither HTTP nor TLS.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use bringup_contract::Cause;
use bringup_contract::join_config::Artifact;
use sha2::{Digest as _, Sha256};

use super::program::{Ending, ProgramResult};
use super::task::{Failure, Task};
use crate::host::linux::store;

/// The number of attempts for a download that may work later.
const TRIES: u32 = 5;

/// The folder for downloads that are not installed yet.
const FOLDER: &str = "/var/lib/bringup-node/join/downloads";

/// The result of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Attempt {
    /// The file has the right checksum.
    Right,
    /// A retry may succeed.
    Again(Cause, String),
    /// A retry cannot succeed.
    Never(Cause, String),
}

/// curl's report about an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Answer {
    status: u16,
    connected: bool,
    kind: String,
}

impl Answer {
    /// The format of curl's `--write-out`.
    const FORM: &str = "%{http_code} %{time_connect} %{content_type}";

    fn read(text: &str) -> Self {
        let mut words = text.split_whitespace();
        let status = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
        let connected = words.next().and_then(|word| word.parse::<f64>().ok());
        let kind = words.next().unwrap_or_default().to_ascii_lowercase();
        Self { status, connected: connected.is_some_and(|time| time > 0.0), kind }
    }
}

/// Downloads an artifact. The caller must remove the file.
pub(super) fn fetch(
    task: &mut Task<'_>,
    name: &str,
    artifact: &Artifact,
) -> Result<PathBuf, Failure> {
    let path = task.root().at(FOLDER).join(name);
    let of_file = |error| Failure::of_file(&task.agent.root, &path, &error);
    store::directory_for(&task.root().at(FOLDER)).map_err(of_file)?;
    let mut last = None;
    for attempt in 1..=TRIES {
        let said = ask(task, artifact, &path);
        let digest = sha256(&path).unwrap_or_default();
        let right = digest.eq_ignore_ascii_case(&artifact.sha256);
        match judge(&said, right, &beginning(&path)) {
            Attempt::Right => {
                task.saw(format!("{name} {} was downloaded, attempt {attempt}", artifact.version));
                return Ok(path);
            }
            Attempt::Never(cause, why) => return Err(failed(name, artifact, cause, &why, &said)),
            Attempt::Again(cause, why) => {
                task.saw(format!("{name}, attempt {attempt}: {why}"));
                last = Some(failed(name, artifact, cause, &why, &said));
            }
        }
        if task.left() <= task.pause() {
            break;
        }
        crate::clock::pause(task.pause());
    }
    Err(last.unwrap_or_else(|| Failure::unexplained(format!("{name} was not downloaded"))))
}

/// The URL is passed on the standard input: it may contain a signature, and other users can read arguments.
fn ask(task: &Task<'_>, artifact: &Artifact, path: &Path) -> ProgramResult {
    let seconds = task.left().as_secs().max(1).to_string();
    let output = path.display().to_string();
    let _ = std::fs::remove_file(path);
    let arguments = [
        "--silent",
        "--show-error",
        "--location",
        "--connect-timeout",
        "10",
        "--max-time",
        &seconds,
        "--output",
        &output,
        "--write-out",
        Answer::FORM,
        "--config",
        "-",
    ];
    task.have_with("curl", &arguments, &format!("url = \"{}\"\n", artifact.url))
}

fn failed(
    name: &str,
    artifact: &Artifact,
    cause: Cause,
    why: &str,
    said: &ProgramResult,
) -> Failure {
    let host = artifact.url.split('/').nth(2).unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let address = artifact.url.split('?').next().unwrap_or_default();
    let mut failure = Failure::because(cause, format!("{name} from {host}: {why}"))
        .with(format!("{name} {}: {address}", artifact.version));
    if let Some(line) = said.err.lines().find(|line| !line.trim().is_empty()) {
        failure = failure.with(line.trim());
    }
    failure.output.clone_from(&said.err);
    failure
}

/// The result of an attempt.
fn judge(said: &ProgramResult, right: bool, beginning: &str) -> Attempt {
    use Attempt::{Again, Never};
    let answer = Answer::read(&said.out);
    let code = match said.ending {
        Ending::Exited(code) => code,
        Ending::Absent | Ending::NotRun(_) => return Never(Cause::BinaryMissing, said.told()),
        Ending::Killed(_) | Ending::TimedOut(_) => 28,
    };
    let connected = answer.connected;
    let curl = |cause, why: &str| Again(cause, format!("{why} (curl {code})"));
    match code {
        0 => judge_answer(&answer, right, beginning),
        5 | 97 => curl(Cause::ProxyMisconfigured, "the proxy cannot be used"),
        6 => curl(Cause::DnsFailure, "the name of the host does not resolve"),
        7 => curl(Cause::EgressBlocked, "the host cannot be reached"),
        28 if !connected => curl(Cause::EgressBlocked, "the host does not answer"),
        23 => Never(Cause::DiskFull, "what came could not be written (curl 23)".to_owned()),
        35 | 51 | 58 | 60 | 77 => curl(Cause::TlsTrustFailure, "the host is not trusted"),
        _ => curl(Cause::DownloadInterrupted, "the download broke off"),
    }
}

fn judge_answer(answer: &Answer, right: bool, beginning: &str) -> Attempt {
    use Attempt::{Again, Never};
    let status = answer.status;
    let page = answer.kind.starts_with("text/html")
        || ["<html", "<!doctype"].iter().any(|word| beginning.contains(word));
    match status {
        200 if right => Attempt::Right,
        200 if page => Never(
            Cause::ProxyMisconfigured,
            "a web page came instead of the file: a proxy or a portal is in between".to_owned(),
        ),
        200 => Again(Cause::DownloadInterrupted, "its checksum is another".to_owned()),
        404 | 410 => Never(Cause::ArtifactMissing, format!("not found (HTTP {status})")),
        401 | 403 => Never(Cause::EgressBlocked, format!("it is refused (HTTP {status})")),
        407 => {
            Never(Cause::ProxyMisconfigured, "the proxy wants credentials (HTTP 407)".to_owned())
        }
        _ => Again(Cause::DownloadInterrupted, format!("the host answers HTTP {status}")),
    }
}

/// The first characters of a file, in lower case.
fn beginning(path: &Path) -> String {
    store::head(path, 512).unwrap_or_default().to_ascii_lowercase()
}

pub(super) fn sha256(path: &Path) -> std::io::Result<String> {
    use std::fmt::Write as _;
    let (mut file, mut digest) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; 128 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => digest.update(&buffer[..count]),
        }
    }
    Ok(digest.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(code: i32, out: &str, right: bool, beginning: &str) -> Attempt {
        let said = ProgramResult {
            program: "curl".to_owned(),
            ending: Ending::Exited(code),
            out: out.to_owned(),
            err: String::new(),
        };
        judge(&said, right, beginning)
    }

    #[test]
    fn test_55_each_way_to_fail_has_a_cause_of_its_own() {
        let cause = |attempt| match attempt {
            Attempt::Right => panic!("it failed"),
            Attempt::Again(cause, _) => (cause, "again"),
            Attempt::Never(cause, _) => (cause, "never"),
        };
        for (code, out, beginning, expected) in [
            (0, "404 0.1 text/html", "<html", (Cause::ArtifactMissing, "never")),
            (0, "200 0.1 text/html", "", (Cause::ProxyMisconfigured, "never")),
            (0, "200 0.1", "<!doctype html>", (Cause::ProxyMisconfigured, "never")),
            (0, "200 0.1 application/gzip", "\u{1f}", (Cause::DownloadInterrupted, "again")),
            (0, "403 0.1", "", (Cause::EgressBlocked, "never")),
            (0, "407 0.1", "", (Cause::ProxyMisconfigured, "never")),
            (0, "503 0.1", "", (Cause::DownloadInterrupted, "again")),
            (6, "000 0.0", "", (Cause::DnsFailure, "again")),
            (7, "000 0.0", "", (Cause::EgressBlocked, "again")),
            (28, "000 0.000000", "", (Cause::EgressBlocked, "again")),
            (28, "200 0.020", "", (Cause::DownloadInterrupted, "again")),
            (18, "200 0.020", "", (Cause::DownloadInterrupted, "again")),
            (60, "000 0.020", "", (Cause::TlsTrustFailure, "again")),
            (5, "000 0.0", "", (Cause::ProxyMisconfigured, "again")),
            (23, "200 0.020", "", (Cause::DiskFull, "never")),
        ] {
            assert_eq!(cause(judged(code, out, false, beginning)), expected, "{code} {out}");
        }
        assert_eq!(judged(0, "200 0.1 text/html", true, "<html"), Attempt::Right);
    }
}
