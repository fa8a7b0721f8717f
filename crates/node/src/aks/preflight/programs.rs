//! Are the programs installed that the scripts call?

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use bringup_contract::Cause;
use rustix::fs::StatVfsMountFlags;
use serde_json::json;

use super::database::Database;
use super::{Finding, State, Subject};
use crate::host::paths::Root;

/// Folders outside PATH that are also searched for programs.
const KNOWN: &[&str] = &["/usr/local/bin", "/usr/bin", "/opt/bin", "/usr/sbin", "/sbin", "/bin"];

/// Without these programs, the scripts cannot start.
const REQUIRED: &[&str] = &["bash", "timeout", "nohup", "systemctl"];

/// The scripts call these programs later, and not on every node.
const USUAL: &[&str] = &["curl", "base64", "tar", "python3", "containerd", "runc"];

/// Where a program was found, and whether it can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// The program is in PATH and can be called.
    Ok(PathBuf),
    /// The program exists, but not in PATH.
    NotInPath(PathBuf),
    /// The program exists, but cannot be executed for this reason.
    NotExecutable(PathBuf, String),
    /// The program was not found.
    Absent,
}

impl Found {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Ok(_) => "ok",
            Self::NotInPath(_) => "not-in-path",
            Self::NotExecutable(..) => "not-executable",
            Self::Absent => "absent",
        }
    }
}

/// Looks for a program: first in PATH, then in known folders. An executable file takes precedence over one
/// that is not executable, as in a shell.
pub(super) fn find(root: &Root, path: &str, name: &str) -> Found {
    let mut broken = None;
    let in_path = path.split(':').filter(|part| part.starts_with('/')).map(|part| (part, true));
    for (directory, listed) in in_path.chain(KNOWN.iter().map(|part| (*part, false))) {
        let file = root.at(directory).join(name);
        let Ok(data) = file.metadata() else { continue };
        let told = PathBuf::from(directory).join(name);
        let noexec = rustix::fs::statvfs(&file)
            .is_ok_and(|volume| volume.f_flag.contains(StatVfsMountFlags::NOEXEC));
        let mode = data.permissions().mode() & 0o7777;
        if data.is_file() && mode & 0o111 != 0 && !noexec {
            return if listed { Found::Ok(told) } else { Found::NotInPath(told) };
        }
        let why = if noexec { "mounted noexec".to_owned() } else { format!("mode {mode:04o}") };
        broken.get_or_insert((told, why));
    }
    broken.map_or(Found::Absent, |(told, why)| Found::NotExecutable(told, why))
}

/// The programs that this node's scripts call, and whether the scripts cannot start without them.
fn wanted(subject: &Subject) -> Vec<(&'static str, bool)> {
    // The scripts of an image read its component list with jq.
    let from_image = subject.variable("IS_VHD") == Some("true");
    let api_server = subject.variable("API_SERVER_NAME");
    let is_address = api_server.is_some_and(|name| name.parse::<IpAddr>().is_ok());
    let finds_names = subject.variable("ENABLE_HOSTS_CONFIG_AGENT") == Some("true");
    let probe = match api_server {
        Some(_) if is_address => Some("nc"),
        Some(_) if !finds_names => Some("nslookup"),
        _ => None,
    };
    let required = REQUIRED.iter().map(|name| (*name, true)).chain([("jq", from_image)]);
    required.chain(USUAL.iter().copied().chain(probe).map(|name| (name, false))).collect()
}

pub(super) fn check(subject: &Subject) -> Finding {
    let states: Vec<(&str, bool, Found)> = wanted(subject)
        .into_iter()
        .map(|(name, required)| (name, required, find(&subject.root, &subject.path, name)))
        .collect();
    let scripts = [("provision_start.sh"), ("provision.sh")];
    let scripts_missing: Vec<&str> = scripts
        .into_iter()
        .filter(|name| !subject.root.containers().join(name).is_file())
        .collect();
    let unusable = |found: &Found| matches!(found, Found::Absent | Found::NotExecutable(..));
    let odd: Vec<String> = states
        .iter()
        .filter(|(_, _, found)| !matches!(found, Found::Ok(_)))
        .map(|(name, _, found)| format!("{name} {}", found.word()))
        .chain(scripts_missing.iter().map(|name| format!("{name} absent")))
        .collect();
    let fatal = states.iter().any(|(_, required, found)| *required && unusable(found));
    let state = match (fatal, odd.is_empty()) {
        (true, _) => State::Fatal,
        (false, false) => State::Warn,
        (false, true) => State::Ok,
    };
    let is_odd = states.iter().any(|(_, _, found)| !matches!(found, Found::Ok(_)));
    let database = is_odd.then(|| Database::ask(&subject.root));
    let package = |name: &str| database.as_ref().map(|database| database.has(name));
    let data = states.iter().map(|(name, _, found)| match found {
        Found::Ok(_) => json!({"name": name, "state": found.word()}),
        _ => json!({
            "name": name, "state": found.word(), "package": package(name),
        }),
    });
    let data = json!({"programs": data.collect::<Vec<_>>(), "scriptsMissing": scripts_missing});
    let detail = if odd.is_empty() { "all there".to_owned() } else { odd.join(", ") };
    let finding = Finding::new("binaries", state, &detail, data);
    if fatal { finding.because(Cause::BinaryMissing) } else { finding }
}
