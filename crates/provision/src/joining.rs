//! The join configuration of a machine: its `CustomData`, with its own bootstrap token.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_azure::clock::Clock;
use bringup_contract::join_config::{
    AgentArtifact, Artifact, Artifacts, Cluster, Effect, JoinConfig, Node, Secret, Taint,
    join_custom_data,
};
use bringup_flex::engine::Bootstrap;
use bringup_flex::ids::provider_id;
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::flex::machine::Place;
use kube::Client;
use serde::Deserialize;
use tokio::sync::OnceCell;

use crate::tokens::Tokens;

/// A placeholder in the format of a token, to check a configuration before a token is issued.
const NO_TOKEN: &str = "000000.0000000000000000";

/// The join settings that all machines of the cluster share.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinSettings {
    /// The address at which nodes reach the API server.
    pub server: String,
    /// The certificate authority of the API server: PEM in base64.
    pub certificate_authority_data: String,
    /// The agent that the VM installs first.
    pub agent: Agent,
    /// The programs that the agent installs.
    pub artifacts: Artifacts,
    /// The programs of further versions of Kubernetes, by version.
    #[serde(default)]
    pub kubernetes: BTreeMap<String, Programs>,
    /// The image of the pause container; none: the default.
    #[serde(default)]
    pub sandbox_image: Option<String>,
}

/// The programs of a version of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// The kubeadm program.
    pub kubeadm: Artifact,
    /// The kubelet program.
    pub kubelet: Artifact,
    /// The kubectl program.
    pub kubectl: Artifact,
}

impl JoinSettings {
    /// The artifacts of a version of Kubernetes, if the settings name them.
    pub fn artifacts_of(&self, version: &str) -> Option<Artifacts> {
        if self.artifacts.kubelet.version == version {
            return Some(self.artifacts.clone());
        }
        let Programs { kubeadm, kubelet, kubectl } = self.kubernetes.get(version)?.clone();
        Some(Artifacts { kubeadm, kubelet, kubectl, ..self.artifacts.clone() })
    }
}

/// The agent, `bringup-node`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The agent's download URL.
    pub url: String,
    /// The agent's checksum.
    pub sha256: String,
}

/// Creates join configurations.
pub struct Joining {
    settings: JoinSettings,
    tokens: Tokens,
    client: Client,
    clock: Arc<dyn Clock>,
    version: OnceCell<String>,
}

impl Joining {
    /// Join configurations with these settings.
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

/// The version of the API server, without `v` and without a distribution's suffix.
pub(super) async fn cluster_version(client: &Client) -> Result<String, kube::Error> {
    let version = client.apiserver_version().await?.git_version;
    let version = version.trim_start_matches('v');
    let end = version.find(['-', '+']).unwrap_or(version.len());
    Ok(version[..end].to_owned())
}

#[async_trait]
impl Bootstrap for Joining {
    async fn custom_data(&self, machine: &AzureFlexMachine) -> Result<String, String> {
        let place = machine.status.as_ref().and_then(|status| status.place.as_ref());
        let place = place.ok_or("the machine has no place yet")?;
        let meta = &machine.metadata;
        let name = meta.name.as_deref().unwrap_or_default();
        let uid = meta.uid.as_deref().unwrap_or_default();
        let control_plane = self
            .cluster_version()
            .await
            .map_err(|error| format!("cannot read the version of the cluster: {error}"))?;
        // Checked before the token is issued, so that no token is issued in vain.
        config(&self.settings, machine, place, &control_plane, Secret::new(NO_TOKEN))?;
        let token = self
            .tokens
            .issue(name, uid, self.clock.now())
            .await
            .map_err(|error| format!("cannot issue a bootstrap token: {error}"))?;
        let config = config(&self.settings, machine, place, &control_plane, token)?;
        let agent = AgentArtifact {
            url: self.settings.agent.url.clone(),
            sha256: self.settings.agent.sha256.clone(),
        };
        let text = join_custom_data(&config, &agent).map_err(|error| error.to_string())?;
        Ok(STANDARD.encode(text))
    }

    async fn check(&self, machine: &AzureFlexMachine, place: &Place) -> Result<(), String> {
        // Without the version of the cluster, no error is certain.
        let Ok(control_plane) = self.cluster_version().await else { return Ok(()) };
        let token = Secret::new(NO_TOKEN);
        config(&self.settings, machine, place, &control_plane, token).map(drop)
    }
}

/// The join configuration, validated as the agent will validate it.
fn config(
    settings: &JoinSettings,
    machine: &AzureFlexMachine,
    place: &Place,
    control_plane: &str,
    token: Secret,
) -> Result<JoinConfig, String> {
    let taints = machine.spec.taints.iter().map(|text| taint(text)).collect::<Result<_, _>>()?;
    let version = place.kubernetes_version.clone().unwrap_or_else(|| control_plane.to_owned());
    let artifacts = settings
        .artifacts_of(&version)
        .ok_or_else(|| format!("the join settings name no programs of Kubernetes {version}"))?;
    let config = JoinConfig {
        cluster: Cluster {
            server: settings.server.clone(),
            certificate_authority_data: settings.certificate_authority_data.clone(),
            version: Some(control_plane.to_owned()),
        },
        token,
        node: Node {
            name: place.vm.to_ascii_lowercase(),
            ip: None,
            provider_id: provider_id(place),
            max_pods: place.max_pods.try_into().unwrap_or_default(),
            labels: machine.spec.labels.clone(),
            taints,
        },
        kubernetes_version: version,
        artifacts,
        sandbox_image: settings.sandbox_image.clone(),
        limits: BTreeMap::default(),
    };
    config.validate().map_err(|wrong| format!("the join configuration is invalid: {wrong}"))?;
    Ok(config)
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
    fn a_label_or_taint_that_no_node_can_have_is_refused_before_a_token_is_issued() {
        let artifact = |version: &str| serde_json::json!({ "version": version, "url": "https://dl.example/a", "sha256": "0".repeat(64) });
        let program = artifact("1.34.0");
        let settings: JoinSettings = serde_json::from_value(serde_json::json!({
            "server": "https://api.example:443",
            "certificateAuthorityData": STANDARD.encode("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"),
            "agent": { "url": "https://dl.example/bringup-node", "sha256": "0".repeat(64) },
            "artifacts": { "containerd": artifact("2.1.4"), "runc": program, "kubeadm": program, "kubelet": program, "kubectl": program },
        }))
        .unwrap();
        let place = Place {
            subscription_id: "s".to_owned(),
            resource_group: "g".to_owned(),
            vm: "one-01234567".to_owned(),
            max_pods: 110,
            ..Place::default()
        };
        let error_of = |machine: &AzureFlexMachine, plane: &str| {
            config(&settings, machine, &place, plane, Secret::new(NO_TOKEN)).err()
        };
        let fine = AzureFlexMachine::default();
        assert_eq!(error_of(&fine, "1.34.0"), None);
        let mut label = fine.clone();
        label.spec.labels.insert("a key\nwith a line".to_owned(), String::new());
        assert!(error_of(&label, "1.34.0").unwrap().contains("join configuration is invalid"));
        let mut tainted = fine.clone();
        tainted.spec.taints.push("a b=c:NoSchedule".to_owned());
        assert!(error_of(&tainted, "1.34.0").is_some());
        tainted.spec.taints = vec!["nonsense".to_owned()];
        assert!(error_of(&tainted, "1.34.0").is_some());
        assert!(error_of(&fine, "1.33.0").unwrap().contains("no programs of Kubernetes 1.33.0"));
    }

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
