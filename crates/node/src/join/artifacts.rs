//! Steps 3 and 4: download and install pinned programs. A program that is already installed and unchanged
//! stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bringup_contract::Cause;
use bringup_contract::join_config::Artifact;
use serde::{Deserialize, Serialize};

use super::containerd::{self, Major};
use super::download::{self, sha256};
use super::task::{self, Failure, Task};
use super::units;
use crate::host::linux::store;

/// The record of installed programs.
const RECORD: &str = "/var/lib/bringup-node/join/installed.json";
/// The folder for unpacked archives.
const UNPACKED: &str = "/var/lib/bringup-node/join/unpacked";

/// The record of an installed artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Installed {
    /// The checksum of the download.
    sha256: String,
    /// The files, and their checksums.
    files: BTreeMap<String, String>,
}

/// The kind of an artifact.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// The program itself, and its target folder.
    Program(&'static str),
    /// A tar.gz archive: the folder with the programs in it, and their target folder.
    Archive(&'static str, &'static str),
}

/// Step 3: containerd and runc, and the basic network plugins if the configuration requests them.
pub(super) fn runtime(task: &mut Task<'_>) -> Result<(), Failure> {
    let all = &task.config.artifacts;
    if install(task, "containerd", &all.containerd, Kind::Archive("bin", "/usr/local/bin"))? {
        containerd::ask_for_restart(task)?;
    }
    install(task, "runc", &all.runc, Kind::Program("/usr/local/sbin/runc"))?;
    if let Some(cni) = &all.cni {
        install(task, "cni", cni, Kind::Archive("", "/opt/cni/bin"))?;
    }
    says_its_version(task, "containerd", &["--version"], &all.containerd.version)?;
    says_its_version(task, "runc", &["--version"], &all.runc.version)?;
    let major = Major::of(task)?;
    task.saw(format!("containerd is {major}"));
    Ok(())
}

/// Step 4: kubeadm, kubelet, kubectl, and the unit of kubelet.
pub(super) fn kubernetes(task: &mut Task<'_>) -> Result<(), Failure> {
    let all = &task.config.artifacts;
    let wanted = &task.config.kubernetes_version;
    for (name, artifact, place, question) in [
        ("kubeadm", &all.kubeadm, "/usr/local/bin/kubeadm", &["version", "-o", "short"][..]),
        ("kubelet", &all.kubelet, "/usr/local/bin/kubelet", &["--version"]),
        ("kubectl", &all.kubectl, "/usr/local/bin/kubectl", &["version", "--client"]),
    ] {
        install(task, name, artifact, Kind::Program(place))?;
        says_its_version(task, name, question, wanted)?;
    }
    units::kubelet(task)
}

/// Installs an artifact; returns false if it is already installed.
fn install(
    task: &mut Task<'_>,
    name: &str,
    artifact: &Artifact,
    kind: Kind,
) -> Result<bool, Failure> {
    let mut record = load(task);
    if record.get(name).is_some_and(|there| is_there(task, there, artifact)) {
        return Ok(false);
    }
    let made = download::fetch(task, name, artifact)?;
    let files = match kind {
        Kind::Program(place) => vec![(made.clone(), place.to_owned())],
        Kind::Archive(inner, place) => unpack(task, name, &made, inner, place)?,
    };
    let mut installed =
        Installed { sha256: artifact.sha256.to_ascii_lowercase(), files: BTreeMap::new() };
    for (from, place) in files {
        let path = task.root().at(&place);
        let put = task::install(&from, &path).and_then(|()| sha256(&path));
        let digest = put.map_err(|error| Failure::of_file(task.root(), &path, &error))?;
        installed.files.insert(place, digest);
    }
    record.insert(name.to_owned(), installed);
    save(task, &record)?;
    let _ = fs::remove_file(made);
    let _ = fs::remove_dir_all(task.root().at(UNPACKED));
    task.did(format!("{name} {} is installed", artifact.version));
    Ok(true)
}

fn load(task: &Task<'_>) -> BTreeMap<String, Installed> {
    serde_json::from_str(&task.text(RECORD)).unwrap_or_default()
}

fn save(task: &Task<'_>, record: &BTreeMap<String, Installed>) -> Result<(), Failure> {
    let path = task.root().at(RECORD);
    let text = serde_json::to_string(record).unwrap_or_default();
    store::write(&path, text.as_bytes())
        .map_err(|error| Failure::of_file(task.root(), &path, &error))
}

/// Whether the right version is installed and its files are unchanged.
fn is_there(task: &Task<'_>, there: &Installed, artifact: &Artifact) -> bool {
    let same = |(place, digest): (&String, &String)| {
        sha256(&task.root().at(place)).is_ok_and(|found| found == *digest)
    };
    there.sha256.eq_ignore_ascii_case(&artifact.sha256)
        && !there.files.is_empty()
        && there.files.iter().all(same)
}

/// Unpacks an archive: returns its programs, each with its target.
fn unpack(
    task: &Task<'_>,
    name: &str,
    archive: &Path,
    inner: &str,
    place: &str,
) -> Result<Vec<(PathBuf, String)>, Failure> {
    let folder = task.root().at(UNPACKED).join(name);
    let of_file = |error: std::io::Error| Failure::of_file(task.root(), &folder, &error);
    let _ = fs::remove_dir_all(&folder);
    store::directory_for(&folder).map_err(of_file)?;
    let (from, into) = (archive.display().to_string(), folder.display().to_string());
    task.have(
        "tar",
        &["--extract", "--gzip", "--no-same-owner", "--file", &from, "--directory", &into],
    )?;
    let programs = folder.join(inner);
    let entries = fs::read_dir(&programs).map_err(of_file)?;
    let mut files: Vec<(PathBuf, String)> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| (entry.path(), format!("{place}/{}", entry.file_name().to_string_lossy())))
        .collect();
    files.sort();
    if files.is_empty() {
        let error = format!("the archive of {name} has no programs in {inner:?}");
        return Err(Failure::because(Cause::ArtifactMissing, error));
    }
    Ok(files)
}

/// The installed program must run here and report the configured version.
fn says_its_version(
    task: &Task<'_>,
    name: &str,
    question: &[&str],
    wanted: &str,
) -> Result<(), Failure> {
    let said = task.ask(name, question);
    if !said.well() {
        return Err(Failure { error: said.told(), ..Failure::of(&said) }
            .with(format!("{name} was installed and does not run: is it for this architecture?")));
    }
    let wanted = wanted.trim_start_matches('v');
    let mut words = said.out.split(|letter: char| letter.is_whitespace() || letter == ',');
    if words.any(|word| word.trim_start_matches('v') == wanted) {
        return Ok(());
    }
    let line = said.out.lines().next().unwrap_or_default().to_owned();
    let error = format!("{name} is not {wanted}: it reports {line}");
    Err(Failure::because(Cause::VersionSkew, error))
}
