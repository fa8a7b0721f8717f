//! What a machine is told so that it joins.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_azure::clock::Clock;
use bringup_contract::join_config::{
    AgentArtifact, Artifact, Artifacts, Cluster, Effect, JoinConfig, Node, Taint, join_custom_data,
};
use bringup_flex::engine::Bootstrap;
use bringup_objects::flex::AzureFlexMachine;
use kube::Client;
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::tokens::Tokens;

/// What all machines of the cluster are told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinSettings {
    /// The address of the API server, as nodes reach it.
    pub server: String,
    /// Its authority: PEM, in base64.
    pub certificate_authority_data: String,
    /// The agent that is installed first.
    pub agent: Agent,
    /// What the agent installs.
    pub artifacts: Artifacts,
    /// The programs of further versions of Kubernetes, by version.
    #[serde(default)]
    pub kubernetes: BTreeMap<String, Programs>,
    /// The image of the pause container, where it is not the usual one.
    #[serde(default)]
    pub sandbox_image: Option<String>,
}

/// The programs of a version of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// kubeadm.
    pub kubeadm: Artifact,
    /// kubelet.
    pub kubelet: Artifact,
    /// kubectl.
    pub kubectl: Artifact,
}

impl JoinSettings {
    /// What is installed for a version of Kubernetes, if it is known where that is.
    pub fn artifacts_of(&self, version: &str) -> Option<Artifacts> {
        if self.artifacts.kubelet.version == version {
            return Some(self.artifacts.clone());
        }
        let Programs { kubeadm, kubelet, kubectl } = self.kubernetes.get(version)?.clone();
        Some(Artifacts { kubeadm, kubelet, kubectl, ..self.artifacts.clone() })
    }
}

/// Where the agent is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Where it is.
    pub url: String,
    /// What it must be.
    pub sha256: String,
}

/// What a machine is told, with a token of its own.
pub struct Joining {
    settings: JoinSettings,
    tokens: Tokens,
    client: Client,
    clock: Arc<dyn Clock>,
    version: OnceCell<String>,
}

impl Joining {
    /// Machines that are told this.
    pub fn new(settings: JoinSettings, client: Client, clock: Arc<dyn Clock>) -> Self {
        let tokens = Tokens::new(client.clone());
        Self { settings, tokens, client, clock, version: OnceCell::new() }
    }

    /// The version of the API server, without `v`.
    async fn cluster_version(&self) -> Result<String, kube::Error> {
        let read = || async { cluster_version(&self.client).await };
        self.version.get_or_try_init(read).await.cloned()
    }
}

/// The version of the API server, without `v` and without what a distribution adds.
pub(super) async fn cluster_version(client: &Client) -> Result<String, kube::Error> {
    let version = client.apiserver_version().await?.git_version;
    let version = version.trim_start_matches('v');
    let end = version.find(['-', '+']).unwrap_or(version.len());
    Ok(version[..end].to_owned())
}

#[async_trait]
impl Bootstrap for Joining {
    async fn custom_data(&self, machine: &AzureFlexMachine) -> Result<String, String> {
        let status = machine.status.clone().unwrap_or_default();
        let place = status.place.ok_or("it is not decided where the machine is to be")?;
        let meta = &machine.metadata;
        let name = meta.name.as_deref().unwrap_or_default();
        let uid = meta.uid.as_deref().unwrap_or_default();
        let control_plane = self
            .cluster_version()
            .await
            .map_err(|error| format!("cannot ask for the cluster's version: {error}"))?;
        let taints =
            machine.spec.taints.iter().map(|text| taint(text)).collect::<Result<_, _>>()?;
        let settings = &self.settings;
        let version = place.kubernetes_version.unwrap_or_else(|| control_plane.clone());
        let artifacts = settings.artifacts_of(&version).ok_or_else(|| {
            format!("the settings of joins name no programs of Kubernetes {version}")
        })?;
        let token = self
            .tokens
            .issue(name, uid, self.clock.now())
            .await
            .map_err(|error| format!("cannot make a bootstrap token: {error}"))?;
        let config = JoinConfig {
            cluster: Cluster {
                server: settings.server.clone(),
                certificate_authority_data: settings.certificate_authority_data.clone(),
                version: Some(control_plane),
            },
            token,
            node: Node {
                name: place.vm.to_ascii_lowercase(),
                ip: None,
                provider_id: status.provider_id.unwrap_or_default(),
                max_pods: place.max_pods.try_into().unwrap_or_default(),
                labels: machine.spec.labels.clone(),
                taints,
            },
            kubernetes_version: version,
            artifacts,
            sandbox_image: settings.sandbox_image.clone(),
            limits: BTreeMap::default(),
        };
        let agent = AgentArtifact {
            url: settings.agent.url.clone(),
            sha256: settings.agent.sha256.clone(),
        };
        let text = join_custom_data(&config, &agent).map_err(|error| error.to_string())?;
        Ok(STANDARD.encode(text))
    }
}

/// `key=value:effect` or `key:effect`.
fn taint(text: &str) -> Result<Taint, String> {
    let wrong = || format!("taint `{text}` is not `key=value:effect`");
    let (rest, effect) = text.rsplit_once(':').ok_or_else(wrong)?;
    let effect = match effect {
        "NoSchedule" => Effect::NoSchedule,
        "PreferNoSchedule" => Effect::PreferNoSchedule,
        "NoExecute" => Effect::NoExecute,
        _ => return Err(wrong()),
    };
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    if key.is_empty() {
        return Err(wrong());
    }
    Ok(Taint { key: key.to_owned(), value: value.to_owned(), effect })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_read_as_kubernetes_writes_them() {
        let read = taint("nvidia.com/gpu=present:NoSchedule").unwrap();
        assert_eq!((read.key.as_str(), read.value.as_str()), ("nvidia.com/gpu", "present"));
        assert_eq!(taint("a:NoExecute").unwrap().effect, Effect::NoExecute);
        for wrong in ["", "a", "a=b", ":NoExecute", "a:Never"] {
            assert!(taint(wrong).is_err(), "{wrong}");
        }
    }
}
