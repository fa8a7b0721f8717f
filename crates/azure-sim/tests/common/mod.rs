//! A client for tests: one subscription, one resource group, no retries.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use serde_json::{Value, json};

use bringup_azure_sim::azure::Delivery;
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;

pub const SUBSCRIPTION: &str = "/subscriptions/00000000-0000-0000-0000-000000000000";

/// A parsed answer.
#[derive(Debug)]
pub struct Seen {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
    pub bytes: Bytes,
}

impl Seen {
    pub fn error(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    pub fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub struct Client {
    pub simulator: Simulator,
}

impl Client {
    /// An Azure on a manual clock that follows this YAML.
    pub fn new(yaml: &str) -> Self {
        Self { simulator: Simulator::manual(scenario::parse("scenario", yaml).unwrap()) }
    }

    /// Sends a request; `None` when the connection broke.
    pub fn try_send(
        &self,
        method: &str,
        address: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Option<Seen> {
        let path = address.strip_prefix("https://management.azure.com").unwrap_or(address);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "management.azure.com")
            .header("authorization", "Bearer test");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        match self.simulator.answer(&request.body(body).unwrap()).delivery {
            Delivery::Response(response) | Delivery::Cut(response, _) => {
                let bytes = response.body().clone();
                Some(Seen {
                    status: response.status().as_u16(),
                    headers: response.headers().clone(),
                    body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
                    bytes,
                })
            }
            Delivery::Dropped => None,
        }
    }

    pub fn send(&self, method: &str, address: &str, body: Option<&Value>) -> Seen {
        self.try_send(method, address, body, &[]).expect("the connection holds")
    }

    pub fn get(&self, path: &str) -> Seen {
        self.send("GET", &versioned(path), None)
    }

    pub fn put(&self, path: &str, body: &Value) -> Seen {
        self.send("PUT", &versioned(path), Some(body))
    }

    pub fn post(&self, path: &str, body: &Value) -> Seen {
        self.send("POST", &versioned(path), Some(body))
    }

    pub fn delete(&self, path: &str) -> Seen {
        self.send("DELETE", &versioned(path), None)
    }

    pub fn advance(&self, seconds: u64) {
        self.simulator.advance(Duration::from_secs(seconds));
    }

    /// Follows an operation by the URL in a header, until it has ended.
    pub fn finish(&self, started: &Seen) -> Value {
        let address = started.header("azure-asyncoperation");
        assert!(!address.is_empty(), "no operation to follow: {started:?}");
        for _ in 0..2000 {
            let seen = self.send("GET", address, None);
            assert_eq!(seen.status, 200, "{seen:?}");
            if seen.body["status"] != "InProgress" {
                return seen.body;
            }
            self.advance(5);
        }
        panic!("{address} never ended");
    }

    pub fn put_nic(&self, name: &str) -> Seen {
        self.put(&nic(name), &nic_body())
    }

    /// Creates a NIC and a VM that uses it.
    pub fn create_vm(&self, name: &str, image_version: &str) -> Seen {
        assert_eq!(self.put_nic(name).status, 201);
        let seen = self.put(&vm(name), &vm_body(name, image_version));
        assert_eq!(seen.status, 201, "{seen:?}");
        seen
    }

    pub fn put_cse(&self, name: &str) -> Seen {
        let body = json!({
            "location": "eastus",
            "properties": {
                "publisher": "Microsoft.Azure.Extensions",
                "type": "CustomScript",
                "typeHandlerVersion": "2.0",
                "settings": {},
                "protectedSettings": { "commandToExecute": "secret command" },
            },
        });
        self.put(&format!("{}/extensions/cse-agent-karpenter", vm(name)), &body)
    }

    /// Creates a VM with its Custom Script extension, and follows the extension to its end.
    pub fn bootstrap(&self, name: &str, image_version: &str) -> Value {
        self.finish(&self.create_vm(name, image_version));
        self.finish(&self.put_cse(name))
    }

    pub fn instance_view(&self, name: &str) -> Value {
        let seen = self.get(&format!("{}/instanceView", vm(name)));
        assert_eq!(seen.status, 200, "{seen:?}");
        seen.body
    }

    pub fn node_names(&self) -> Vec<String> {
        self.simulator.with(|azure| azure.nodes().into_iter().map(|node| node.name).collect())
    }

    pub fn log(&self) -> String {
        self.simulator.with(|azure| azure.journal().text().to_owned())
    }
}

fn versioned(path: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}api-version=2024-11-01")
}

pub fn group(tail: &str) -> String {
    format!("{SUBSCRIPTION}/resourceGroups/MC_rg1_aks1_eastus/providers/{tail}")
}

pub fn vm(name: &str) -> String {
    group(&format!("Microsoft.Compute/virtualMachines/{name}"))
}

pub fn nic(name: &str) -> String {
    group(&format!("Microsoft.Network/networkInterfaces/{name}"))
}

pub fn disk(name: &str) -> String {
    group(&format!("Microsoft.Compute/disks/{name}"))
}

pub fn subnet() -> String {
    format!(
        "{SUBSCRIPTION}/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes"
    )
}

pub fn nic_body() -> Value {
    json!({
        "location": "eastus",
        "tags": { "karpenter.sh_nodepool": "default" },
        "properties": { "ipConfigurations": [{
            "name": "ipconfig",
            "properties": { "privateIPAllocationMethod": "Dynamic", "subnet": { "id": subnet() } },
        }] },
    })
}

pub fn vm_body(name: &str, image_version: &str) -> Value {
    json!({
        "location": "eastus",
        "tags": { "karpenter.sh_nodepool": "default" },
        "properties": {
            "hardwareProfile": { "vmSize": "Standard_D4s_v5" },
            "storageProfile": {
                "imageReference": {
                    "communityGalleryImageId": format!("/CommunityGalleries/AKSAzureLinux/images/V3gen2/versions/{image_version}"),
                },
                "osDisk": { "name": name, "createOption": "FromImage", "deleteOption": "Delete" },
            },
            "osProfile": {
                "computerName": name,
                "adminUsername": "azureuser",
                "customData": "c2VjcmV0",
                "linuxConfiguration": { "ssh": { "publicKeys": [{ "path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAA" }] } },
            },
            "networkProfile": { "networkInterfaces": [{
                "id": nic(name),
                "properties": { "primary": true, "deleteOption": "Delete" },
            }] },
            "diagnosticsProfile": { "bootDiagnostics": { "enabled": true } },
        },
    })
}

/// A scenario in which oras is missing from the image 202601.27.0.
pub const ORAS_MISSING: &str = r#"
rules:
  - name: "image 202601.27.0: oras is missing"
    when: {imageVersion: 202601.27.0}
    boot:
      script:
        ends:
          exitCode: 211
          lasts: 61s
          output: |
            + oras_login registry.example
            timeout: failed to run command 'oras': No such file or directory
            + exit 211
"#;
