//! A simulated Azure in process, and clients of it that share its clock.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod simulated_clock;

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::http::{AsyncRawResponse, HttpClient, Request};
use bringup_azure::arm::{Verb, Write};
use bringup_azure::id::Name;
use bringup_azure::operation::{OperationAddress, OperationState};
use bringup_azure::{Arm, Cloud, Priority, ResourceId, VirtualMachineId};
use bringup_azure_sim::endpoints::{AnyToken, InProcess};
use bringup_azure_sim::fault::FaultRule;
use bringup_azure_sim::{Simulator, scenario};
use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::simulated_clock::SimulatedClock;

pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";

/// A request as the transport sent it.
#[derive(Debug, Clone)]
pub struct Sent {
    pub method: String,
    pub address: String,
    pub headers: Vec<(String, String)>,
}

impl Sent {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The simulator's transport, which records all requests.
#[derive(Debug)]
pub struct Recorder {
    transport: InProcess,
    sent: Mutex<Vec<Sent>>,
}

#[async_trait]
impl HttpClient for Recorder {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let headers = request.headers().iter();
        self.sent.lock().unwrap().push(Sent {
            method: request.method().as_str().to_owned(),
            address: request.url().to_string(),
            headers: headers
                .map(|(name, value)| (name.as_str().to_owned(), value.as_str().to_owned()))
                .collect(),
        });
        self.transport.execute_request(request).await
    }
}

pub struct World {
    pub simulator: Simulator,
    pub line: Arc<Recorder>,
    pub arm: Arm,
}

impl World {
    pub fn new(yaml: &str) -> Self {
        let simulator = Simulator::manual(scenario::parse("scenario", yaml).unwrap());
        let transport = InProcess::new(simulator.clone());
        let line = Arc::new(Recorder { transport, sent: Mutex::default() });
        let arm = client(&simulator, line.clone(), "anything");
        Self { simulator, line, arm }
    }

    /// A client like that of another process: with its own budget and queue, and perhaps another token.
    pub fn client(&self, token: &'static str) -> Arm {
        client(&self.simulator, self.line.clone(), token)
    }

    pub fn fault(&self, on: &Value, fault: &Value) -> u64 {
        let rule: FaultRule = serde_json::from_value(json!({ "on": on, "fault": fault })).unwrap();
        self.simulator.with(|azure| azure.arm_fault(rule))
    }

    pub fn clear(&self, fault: u64) {
        assert!(self.simulator.with(|azure| azure.disarm_fault(fault)));
    }

    pub fn now(&self) -> Timestamp {
        self.simulator.clock().now()
    }

    pub fn advance(&self, seconds: u64) {
        self.simulator.advance(Duration::from_secs(seconds));
    }

    pub fn sent(&self) -> Vec<Sent> {
        self.line.sent.lock().unwrap().clone()
    }

    /// The number of requests that the simulator throttled.
    pub fn refused_as_too_many(&self) -> usize {
        self.simulator.with(|azure| {
            azure.journal().requests().iter().filter(|asked| asked.status == Some(429)).count()
        })
    }

    /// Advances the time step by step until the future completes.
    pub async fn drive<T>(&self, step: Duration, future: impl Future<Output = T>) -> T {
        tokio::pin!(future);
        for _ in 0..20_000 {
            for _ in 0..20 {
                tokio::select! {
                    biased;
                    done = &mut future => return done,
                    () = tokio::task::yield_now() => {}
                }
            }
            self.simulator.advance(step);
        }
        panic!("it never came");
    }

    pub async fn put(&self, resource: &str, body: &Value) -> OperationAddress {
        let resource: ResourceId = resource.parse().unwrap();
        let started = self.arm.start(&put(&resource, body)).await.unwrap();
        assert!(matches!(started.status, 200 | 201), "{started:?}");
        started.operation.unwrap().expect("an operation runs on")
    }

    /// Polls an operation until it ends.
    pub async fn finish(&self, address: &OperationAddress) -> OperationState {
        for _ in 0..2000 {
            let ask = self.arm.poll(address, Priority::Event);
            match self.drive(Duration::from_secs(1), ask).await.unwrap() {
                OperationState::Running { .. } => self.advance(5),
                ended => return ended,
            }
        }
        panic!("{address} never ended");
    }

    /// Creates a NIC, and a VM with that NIC.
    pub async fn create_vm(&self, name: &str, image_version: &str) -> OperationAddress {
        let nic: ResourceId = nic(name).parse().unwrap();
        let started = self.arm.start(&put(&nic, &nic_body())).await.unwrap();
        assert_eq!(started.status, 201, "{started:?}");
        self.put(&vm(name).to_string(), &vm_body(name, image_version)).await
    }

    /// Creates a VM whose Custom Script extension has ended.
    pub async fn bootstrap(&self, name: &str, image_version: &str) -> OperationState {
        let created = self.create_vm(name, image_version).await;
        assert!(matches!(self.finish(&created).await, OperationState::Succeeded(_)));
        let put = self.put(&format!("{}/extensions/cse", vm(name)), &cse_body()).await;
        self.finish(&put).await
    }
}

fn client(simulator: &Simulator, line: Arc<Recorder>, token: &'static str) -> Arm {
    Arm::new(
        Cloud::Public.endpoint(),
        Arc::new(AnyToken(token)),
        line,
        Arc::new(SimulatedClock(simulator.clone())),
    )
}

pub fn put<'a>(resource: &'a ResourceId, body: &'a Value) -> Write<'a> {
    Write {
        verb: Verb::Put,
        resource,
        action: None,
        api_version: "2024-11-01",
        query: &[],
        body: Some(body),
    }
}

pub fn group() -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/MC_rg1_aks1_eastus/providers")
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub fn vm(name: &str) -> VirtualMachineId {
    format!("{}/Microsoft.Compute/virtualMachines/{name}", group()).parse().unwrap()
}

fn nic(name: &str) -> String {
    format!("{}/Microsoft.Network/networkInterfaces/{name}", group())
}

pub fn subnet() -> String {
    format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes"
    )
}

fn nic_body() -> Value {
    json!({
        "location": "eastus",
        "properties": { "ipConfigurations": [{
            "name": "ipconfig",
            "properties": { "subnet": { "id": subnet() } },
        }] },
    })
}

pub fn cse_body() -> Value {
    json!({
        "location": "eastus",
        "properties": {
            "publisher": "Microsoft.Azure.Extensions",
            "type": "CustomScript",
            "typeHandlerVersion": "2.0",
            "protectedSettings": { "commandToExecute": "secret" },
        },
    })
}

pub fn vm_body(name: &str, image_version: &str) -> Value {
    json!({
        "location": "eastus",
        "zones": ["1"],
        "tags": { "karpenter.sh_nodepool": "default" },
        "properties": {
            "hardwareProfile": { "vmSize": "Standard_D4s_v5" },
            "storageProfile": {
                "imageReference": {
                    "communityGalleryImageId": format!("/CommunityGalleries/AKS/images/V3gen2/versions/{image_version}"),
                },
                "osDisk": { "name": name, "createOption": "FromImage", "deleteOption": "Delete" },
            },
            "osProfile": {
                "computerName": name,
                "adminUsername": "azureuser",
                "linuxConfiguration": { "ssh": { "publicKeys": [{ "path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAA" }] } },
            },
            "networkProfile": { "networkInterfaces": [{ "id": nic(name), "properties": { "primary": true, "deleteOption": "Delete" } }] },
            "diagnosticsProfile": { "bootDiagnostics": { "enabled": true } },
        },
    })
}

/// "image 202601.27.0: oras is missing"
pub const ORAS_MISSING: &str = r#"
rules:
  - name: "image 202601.27.0: oras is missing"
    when: {imageVersion: 202601.27.0}
    boot:
      console: "cloud-init: something went wrong"
      script:
        ends:
          exitCode: 211
          lasts: 61s
          output: |
            timeout: failed to run command 'oras': No such file or directory
            + exit 211
"#;
