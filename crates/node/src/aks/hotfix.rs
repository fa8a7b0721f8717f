//! Installs a newer agent on an old image. If anything fails, the installed agent continues.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::agent::Agent;
use crate::host::linux::store;
use crate::host::linux::subprocess::ask;

/// The time limit of the whole hotfix, so that it never delays the node for long.
const BUDGET: Duration = Duration::from_mins(2);
/// Where the package installs the agent.
const PACKAGED: &str = "/usr/bin/aks-node-controller";

/// The pointer to a newer agent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pointer {
    version: Option<String>,
    hotfixes: std::collections::BTreeMap<String, String>,
}

/// `YYYYMM.DD.PATCH`: compared part by part; leading zeros are preserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version<'a> {
    base: &'a str,
    patch: u32,
}

impl<'a> Version<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let (base, patch) = text.rsplit_once('.')?;
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let (month, day) = base.split_once('.')?;
        (digits(month) && digits(day) && digits(patch))
            .then(|| patch.parse().ok().map(|patch| Self { base, patch }))
            .flatten()
    }
}

/// The version to install, if the pointer names one that fits this agent.
fn wanted(own: &str, pointer: &Pointer) -> Result<String, String> {
    let own_version = Version::of(own).ok_or_else(|| format!("{own} is not a version"))?;
    let listed = pointer.hotfixes.get(own_version.base);
    let text = pointer.version.as_ref().or(listed).ok_or("the pointer names no version")?;
    match Version::of(text) {
        Some(version) if version.base != own_version.base => {
            Err(format!("{text} is for another image than {own}"))
        }
        Some(version) if version.patch <= own_version.patch => {
            Err(format!("{text} is not newer than {own}"))
        }
        Some(_) => Ok(text.clone()),
        None => Err(format!("{text} is not a version")),
    }
}

/// Installs the agent that the pointer names. Returns a sentence about the result.
pub(crate) fn download(agent: &Agent, own: &str) -> Result<String, String> {
    let (root, begun) = (&agent.root, Instant::now());
    let text = store::head(&root.hotfix_pointer(), 64 * 1024)
        .map_err(|_| "no hotfix pointer".to_owned())?;
    let pointer: Pointer =
        serde_json::from_str(&text).map_err(|error| format!("the pointer: {error}"))?;
    let version = wanted(own, &pointer)?;
    let left = || BUDGET.saturating_sub(begun.elapsed());
    install(agent, &version, left())?;
    let packaged = root.at(PACKAGED);
    let said = ask(Command::new(&packaged).arg("version"), left())?;
    if said.trim() != version {
        return Err(format!("{PACKAGED} is {}, and not {version}", said.trim()));
    }
    let bytes = std::fs::read(&packaged).map_err(|error| format!("{PACKAGED}: {error}"))?;
    let digest = sha256(&bytes);
    let target = root.hotfix_binary();
    store::write(&target, &bytes)
        .and_then(|()| std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("{}: {error}", root.told(&target)))?;
    let record = json!({ "version": version, "sha256": digest });
    store::write(&root.hotfix_record(), record.to_string().as_bytes())
        .map_err(|error| format!("the record of the hotfix: {error}"))?;
    Ok(format!("installed {version}, sha256 {digest}"))
}

/// Installs exactly this version with the system's package manager.
fn install(agent: &Agent, version: &str, limit: Duration) -> Result<(), String> {
    let root = &agent.root;
    let os_release = store::head(&root.os_release(), 16 * 1024).unwrap_or_default();
    let id = os_release.lines().find_map(|line| line.strip_prefix("ID="));
    let id = id.map(|id| id.trim().trim_matches(['"', '\''])).unwrap_or_default();
    let program = |names: &[&str]| -> Result<PathBuf, String> {
        let mut places = names.iter().map(|name| root.at(format!("/usr/bin/{name}")));
        places
            .find(|place| place.is_file())
            .ok_or_else(|| format!("{} is absent", names.join(" and ")))
    };
    let mut command = match id {
        "ubuntu" | "debian" => {
            let mut apt = Command::new(program(&["apt-get"])?);
            apt.args(["install", "-y", "--no-install-recommends"]);
            apt.arg(format!("aks-node-controller={version}"));
            apt.env("DEBIAN_FRONTEND", "noninteractive");
            apt
        }
        "azurelinux" | "mariner" => {
            let mut dnf = Command::new(program(&["dnf", "tdnf"])?);
            dnf.args(["install", "-y"]).arg(format!("aks-node-controller-{version}"));
            dnf
        }
        other => return Err(format!("unsupported OS: {other}")),
    };
    ask(&mut command, limit).map(drop)
}

/// The path of the newer agent, if that file is executable and unchanged since its installation.
pub(crate) fn newer(agent: &Agent) -> Option<PathBuf> {
    let path = agent.root.hotfix_binary();
    let data = path.metadata().ok()?;
    let runs = data.is_file() && data.permissions().mode() & 0o111 != 0;
    let this = std::env::current_exe().is_ok_and(|this| this == path);
    (runs && !this && is_as_recorded(agent, &path)).then_some(path)
}

/// A file of the image or of another program has no record and is accepted, as upstream does.
fn is_as_recorded(agent: &Agent, path: &Path) -> bool {
    let record = store::head(&agent.root.hotfix_record(), 4096).ok();
    let record: Option<serde_json::Value> =
        record.and_then(|text| serde_json::from_str(&text).ok());
    let Some(recorded) = record.as_ref().and_then(|record| record["sha256"].as_str()) else {
        return true;
    };
    let fits = std::fs::read(path).is_ok_and(|bytes| sha256(&bytes) == recorded);
    if !fits {
        agent
            .log
            .warn("the hotfix file differs from what was installed; continuing with this agent");
    }
    fits
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_higher_patch_of_the_same_image_is_wanted() {
        let of = |own: &str, text: &str| {
            let pointer: Pointer = serde_json::from_str(text).unwrap_or_default();
            wanted(own, &pointer).ok()
        };
        let own = "202601.07.1";
        let named = |version: &str| of(own, &format!("{{\"version\":\"{version}\"}}"));
        assert_eq!(named("202601.07.2").as_deref(), Some("202601.07.2"));
        assert_eq!(named("202601.07.10").as_deref(), Some("202601.07.10"));
        for other in
            ["202601.07.1", "202601.07.0", "202601.7.2", "202602.07.2", "x", "202601.07.2-1"]
        {
            assert_eq!(named(other), None, "{other}");
        }
        let listed = "{\"hotfixes\":{\"202601.07\":\"202601.07.3\",\"202601.08\":\"202601.08.3\"}}";
        assert_eq!(of(own, listed).as_deref(), Some("202601.07.3"));
        assert_eq!(of(own, "{}"), None);
        assert_eq!(of("dev", listed), None);
    }
}
