//! Step 7: kubeadm joins and kubelet is active. An incomplete join is reset first.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::Cause;
use bringup_contract::join_config::JoinConfig;
use serde_json::{Value, json};

use super::probe::{self, Probe};
use super::program::{self, ProgramResult};
use super::state::{self, INTENT, Intent, LEFT, State};
use super::task::{Failure, Task};
use super::{SPENT_TOKEN, units};
use crate::host::linux::store;

/// In memory, for root only, and deleted when kubeadm has ended.
const FOLDER: &str = "/run/bringup-node/join";
const JOIN: &str = "join.json";
const DISCOVERY: &str = "discovery.json";
const AUTHORITY: &str = "ca.crt";
const SOCKET: &str = "unix:///run/containerd/containerd.sock";
/// The longest that kubelet may take to become active.
const KUBELET: Duration = Duration::from_mins(3);
/// The longest that a reset may take.
const RESET: Duration = Duration::from_mins(1);

pub(super) fn run(task: &mut Task<'_>) -> Result<(), Failure> {
    let ended = program::end_orphans("kubeadm", &task.root().at(FOLDER).join(JOIN));
    if ended > 0 {
        task.did("a kubeadm of an agent that is gone was ended");
    }
    // Files that a killed agent could not delete.
    for name in [JOIN, DISCOVERY, AUTHORITY] {
        shred(&task.root().at(FOLDER).join(name));
    }
    match state::observe(task) {
        State::Joined => task.saw("the node has joined already"),
        State::Nothing => join(task)?,
        State::Half(found) => {
            reset(task, &found)?;
            join(task)?;
        }
    }
    kubelet(task)
}

/// Ensures that kubelet is active. If a reboot or another program stopped kubelet, starts it.
pub(super) fn kubelet(task: &mut Task<'_>) -> Result<(), Failure> {
    let unit = "kubelet.service";
    if matches!(units::Unit::ask(task, unit).active.as_str(), "inactive" | "failed") {
        task.have("systemctl", &["start", unit])?;
        task.did("kubelet was started");
    }
    units::wait_until_active(task, unit, KUBELET.min(task.left()))?;
    task.saw("kubelet is active");
    Ok(())
}

/// Removes the files of an incomplete join.
fn reset(task: &mut Task<'_>, found: &[&str]) -> Result<(), Failure> {
    task.did(format!("a join was left half done and is reset: {}", found.join(", ")));
    let arguments = ["reset", "--force", "--cri-socket", SOCKET];
    let limit = RESET.min(task.left() / 2);
    let said = program::run(task.root(), "kubeadm", &arguments, "", limit);
    if !said.well() {
        task.saw(said.told());
        let _ = task.have_with("systemctl", &["stop", "kubelet.service"], "");
    }
    for path in LEFT {
        let path = task.root().at(path);
        store::remove(&path).map_err(|error| Failure::of_file(task.root(), &path, &error))?;
    }
    Ok(())
}

fn join(task: &mut Task<'_>) -> Result<(), Failure> {
    let config = task.config;
    if config.token.reveal() == SPENT_TOKEN {
        let error = "the join is to be done again, and its token was removed after the first time";
        return Err(Failure::because(Cause::BootstrapTokenInvalid, error));
    }
    let labels = config.labels();
    if !labels.left_out.is_empty() {
        task.saw(format!(
            "labels that kubelet may not set are left out: {}",
            labels.left_out.join(", ")
        ));
    }
    let of_file =
        |path: &Path, error: &std::io::Error| Failure::of_file(&task.agent.root, path, error);
    let intent = task.root().at(INTENT);
    let text = serde_json::to_string(&Intent::of(task)).unwrap_or_default();
    store::write(&intent, text.as_bytes()).map_err(|error| of_file(&intent, &error))?;
    let files = TokenFiles::write(&task.root().at(FOLDER), config)
        .map_err(|(path, error)| of_file(&path, &error))?;
    let path = files.join.display().to_string();
    let said = task.have_with("kubeadm", &["join", "--config", &path], "");
    let probe = if said.well() { None } else { Some(probe::ask(task, &files.authority)) };
    drop(files);
    match probe {
        None => {
            task.did("kubeadm has joined");
            Ok(())
        }
        Some(probe) => Err(failed(&said, probe)),
    }
}

/// Why kubeadm failed, according to its output and to the cluster's answer to the same token.
fn failed(said: &ProgramResult, probe: Probe) -> Failure {
    let failure = Failure::of(said);
    let failure = match probe.verdict(&failure.output) {
        Some((cause, why)) => {
            let error = format!("{why} ({})", failure.error);
            Failure { cause: Some(cause), error, ..failure }.with(why)
        }
        None => failure,
    };
    failure.with(probe.told())
}

/// Files with the token. Dropping this value deletes them, however kubeadm ends.
struct TokenFiles {
    join: PathBuf,
    discovery: PathBuf,
    authority: PathBuf,
}

impl TokenFiles {
    fn write(folder: &Path, config: &JoinConfig) -> Result<Self, (PathBuf, std::io::Error)> {
        let files = Self {
            join: folder.join(JOIN),
            discovery: folder.join(DISCOVERY),
            authority: folder.join(AUTHORITY),
        };
        let data: String = config
            .cluster
            .certificate_authority_data
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .collect();
        let authority = STANDARD.decode(&data).unwrap_or_default();
        for (path, content) in [
            (&files.authority, authority),
            (&files.discovery, discovery(config, &data).to_string().into_bytes()),
            (&files.join, configuration(config, &files.discovery).to_string().into_bytes()),
        ] {
            store::write(path, &content).map_err(|error| (path.clone(), error))?;
        }
        Ok(files)
    }
}

impl Drop for TokenFiles {
    fn drop(&mut self) {
        for path in [&self.join, &self.discovery, &self.authority] {
            shred(path);
        }
    }
}

/// Overwrites a file and removes it.
pub(super) fn shred(path: &Path) {
    if let (Ok(data), Ok(mut file)) =
        (path.symlink_metadata(), fs::OpenOptions::new().write(true).open(path))
    {
        let zeros = vec![0; usize::try_from(data.len()).unwrap_or_default()];
        let _ = file.write_all(&zeros).and_then(|()| file.sync_all());
    }
    let _ = store::remove(path);
}

/// The cluster, for kubeadm's discovery by file. The token is included: anonymous requests are refused.
fn discovery(config: &JoinConfig, authority: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "cluster", "cluster": {
            "server": config.cluster.server,
            "certificate-authority-data": authority,
        }}],
        "users": [{ "name": "bootstrap", "user": { "token": config.token.reveal() } }],
        "contexts": [{ "name": "join", "context": { "cluster": "cluster", "user": "bootstrap" } }],
        "current-context": "join",
    })
}

/// kubeadm's configuration as JSON, which is also valid YAML.
fn configuration(config: &JoinConfig, discovery: &Path) -> Value {
    let node = &config.node;
    let labels = config.labels().flag();
    let flags = [
        ("node-labels", Some(labels).filter(|labels| !labels.is_empty())),
        ("node-ip", node.ip.clone()),
        ("max-pods", Some(node.max_pods.to_string())),
        ("provider-id", Some(node.provider_id.clone())),
    ];
    let flags: Vec<Value> = flags
        .into_iter()
        .filter_map(|(name, value)| Some(json!({ "name": name, "value": value? })))
        .collect();
    json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {
            "file": { "kubeConfigPath": discovery },
            "tlsBootstrapToken": config.token.reveal(),
        },
        "nodeRegistration": {
            "name": node.name,
            "criSocket": SOCKET,
            "taints": node.taints,
            "kubeletExtraArgs": flags,
        },
        "timeouts": { "discovery": "2m0s", "kubeletHealthCheck": "3m0s", "tlsBootstrap": "3m0s" },
    })
}
