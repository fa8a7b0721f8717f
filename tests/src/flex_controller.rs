//! The flex machine controller in the process of a test: with an Azure of its own, and with user data that
//! does nothing.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_azure_sim::simulator::Simulator;
use bringup_flex::engine::Bootstrap;
use bringup_objects::flex::AzureFlexMachine;
use bringup_provision::{Flex, Replica};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::arm;
use crate::simulated_clock::SimulatedClock;

/// The prefix of machine names that make the controller panic.
pub const FAULTY: &str = "faulty-";

/// User data that does nothing.
struct Nothing;

#[async_trait]
impl Bootstrap for Nothing {
    async fn custom_data(&self, machine: &AzureFlexMachine) -> Result<String, String> {
        assert!(!machine.name_any().starts_with(FAULTY), "a fault that only this machine meets");
        Ok("I2Nsb3VkLWNvbmZpZwo=".to_owned())
    }
}

/// The replica of the controller, with its ledger in `default`.
pub fn replica() -> Replica {
    Replica {
        cluster: "cluster-1".to_owned(),
        namespace: "default".to_owned(),
        identity: "test-0".to_owned(),
    }
}

/// Join settings for a cluster of this version. No test downloads a program from these URLs.
pub fn join_settings(version: &str) -> Value {
    let artifact = |name: &str, version: &str| json!({ "version": version, "url": format!("https://dl.example/{name}"), "sha256": "0".repeat(64) });
    json!({
        "server": "https://api.example:443",
        "certificateAuthorityData": STANDARD.encode("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"),
        "agent": { "url": "https://dl.example/bringup-node", "sha256": "0".repeat(64) },
        "artifacts": {
            "containerd": artifact("containerd", "2.1.4"),
            "runc": artifact("runc", "1.3.0"),
            "kubeadm": artifact("kubeadm", version),
            "kubelet": artifact("kubelet", version),
            "kubectl": artifact("kubectl", version),
        },
    })
}

/// A running controller, which stops when this value is dropped.
#[derive(Debug)]
pub struct FlexController(JoinHandle<()>);

impl FlexController {
    /// Starts the controller.
    pub fn start(client: Client, azure: &Simulator) -> Self {
        let clock = Arc::new(SimulatedClock(azure.clone()));
        let flex = Flex::new(client, arm::client(azure, "flex"), clock, &replica(), Nothing);
        Self(tokio::spawn(async move { Box::pin(flex.run()).await }))
    }

    /// Whether the controller has ended, which must never happen.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for FlexController {
    fn drop(&mut self) {
        self.0.abort();
    }
}
