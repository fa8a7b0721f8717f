//! Are the programs there that the scripts call?

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use bringup_contract::Cause;
use rustix::fs::StatVfsMountFlags;
use serde_json::json;

use super::{Finding, State, Subject};
use crate::paths::Root;

/// Where programs are looked for that are not in PATH.
const KNOWN: &[&str] = &["/usr/local/bin", "/usr/bin", "/opt/bin", "/usr/sbin", "/sbin", "/bin"];

/// Without these the scripts do not even begin.
const REQUIRED: &[&str] = &["bash", "timeout", "nohup", "systemctl"];

/// These are called later, and not on every node.
const USUAL: &[&str] = &["jq", "curl", "base64", "tar", "python3", "containerd", "runc"];

/// Where a program was found, and whether it can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// In PATH.
    Ok(PathBuf),
    /// It is there, but not in PATH.
    NotInPath(PathBuf),
    /// It is there, but cannot be run, because of this.
    NotExecutable(PathBuf, String),
    /// It is nowhere.
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

/// Looks for a program: in PATH, then where programs are. One that can be run beats one that
/// cannot, as for the shell.
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

pub(super) fn check(subject: &Subject) -> Finding {
    let states: Vec<(&str, bool, Found)> = REQUIRED
        .iter()
        .map(|name| (*name, true))
        .chain(USUAL.iter().map(|name| (*name, false)))
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
    let data = states.iter().map(|(name, _, found)| json!({"name": name, "state": found.word()}));
    let data = json!({"programs": data.collect::<Vec<_>>(), "scriptsMissing": scripts_missing});
    let detail = if odd.is_empty() { "all there".to_owned() } else { odd.join(", ") };
    let finding = Finding::new("binaries", state, &detail, data);
    if fatal { finding.because(Cause::BinaryMissing) } else { finding }
}
