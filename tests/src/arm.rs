//! Clients of the simulated ARM, in process: a plain client, for programs that are not under test, and the
//! client of the programs under test.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bringup_azure::Cloud;
use bringup_azure_sim::azure::Delivery;
use bringup_azure_sim::endpoints::{AnyToken, InProcess};
use bringup_azure_sim::simulator::Simulator;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use crate::SUBNET;
use crate::simulated_clock::SimulatedClock;

const HOST: &str = "https://management.azure.com";
const VERSION: &str = "api-version=2024-11-01";

/// The client of a program under test, which acts as `principal` and shares Azure's clock.
pub fn client(azure: &Simulator, principal: &'static str) -> bringup_azure::Arm {
    bringup_azure::Arm::new(
        Cloud::Public.endpoint(),
        Arc::new(AnyToken(principal)),
        Arc::new(InProcess::new(azure.clone())),
        Arc::new(SimulatedClock(azure.clone())),
    )
}

/// A Linux VM with the properties that Cluster API's Azure provider sets.
pub fn cluster_api_vm(name: &str, nic: &str) -> Value {
    let key = json!({ "path": "/home/capi/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAA" });
    json!({
        "location": "eastus",
        "properties": {
            "hardwareProfile": { "vmSize": "Standard_D4s_v5" },
            "storageProfile": {
                "imageReference": { "publisher": "cncf-upstream", "offer": "capi", "sku": "ubuntu-2404", "version": "1.34.2" },
                "osDisk": { "name": format!("{name}-osdisk"), "createOption": "FromImage", "osType": "Linux" },
            },
            "osProfile": {
                "adminUsername": "capi", "computerName": name, "customData": "I2Nsb3VkLWNvbmZpZwo=",
                "linuxConfiguration": { "disablePasswordAuthentication": true, "ssh": { "publicKeys": [key] } },
            },
            "networkProfile": { "networkInterfaces": [{ "id": nic }] },
            "diagnosticsProfile": { "bootDiagnostics": { "enabled": true } },
        },
    })
}

/// Calls ARM without retries, as a client that is not under test.
#[derive(Debug, Clone)]
pub struct Arm {
    azure: Simulator,
}

/// A response of ARM.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The body; null when it was empty.
    pub body: Value,
    operation: Option<String>,
}

impl Arm {
    /// A client of this Azure.
    pub fn new(azure: Simulator) -> Self {
        Self { azure }
    }

    /// Sends one request to a path, or to a complete URL that ARM returned.
    pub fn send(&self, method: &str, address: &str, body: Option<&Value>) -> Result<Response> {
        self.answer(method, address, body).map(|response| read(&response))
    }

    /// The serial console of a VM, as far as it is stored.
    pub fn console(&self, vm: &str) -> Result<String> {
        self.blob(&self.console_address(vm)?)
    }

    /// The URL of a VM's serial console, which is valid for two hours.
    pub fn console_address(&self, vm: &str) -> Result<String> {
        let addresses = self.send("POST", &format!("{vm}/retrieveBootDiagnosticsData"), None)?;
        let address = addresses.body["serialConsoleLogBlobUri"].as_str();
        Ok(address.with_context(|| format!("{vm}: {}", addresses.body))?.to_owned())
    }

    /// The current content of a URL, as text.
    pub fn blob(&self, address: &str) -> Result<String> {
        let stored = self.answer("GET", address, None)?;
        Ok(String::from_utf8_lossy(stored.body()).trim_end_matches('\0').to_owned())
    }

    fn answer(
        &self,
        method: &str,
        address: &str,
        body: Option<&Value>,
    ) -> Result<http::Response<Bytes>> {
        let path = address.strip_prefix(HOST).unwrap_or(address);
        let separator = if path.contains('?') { '&' } else { '?' };
        let uri = if path.contains("api-version=") {
            path.to_owned()
        } else {
            format!("{path}{separator}{VERSION}")
        };
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "management.azure.com")
            .header("authorization", "Bearer provider")
            .body(body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string())))
            .with_context(|| format!("{method} {path}"))?;
        match self.azure.answer(&request).delivery {
            Delivery::Response(response) => Ok(response),
            Delivery::Cut(..) | Delivery::Dropped => bail!("{method} {path}: the connection broke"),
        }
    }

    /// Reads a resource.
    pub fn get(&self, path: &str) -> Result<Response> {
        self.send("GET", path, None)
    }

    /// Puts a resource and waits for its operation, if there is one. The clock is advanced during the wait,
    /// so that an operation of minutes takes no time in the test.
    pub fn put(&self, path: &str, body: &Value) -> Result<Response> {
        let response = self.send("PUT", path, Some(body))?;
        if response.status >= 300 {
            bail!("PUT {path}: {} {}", response.status, response.body);
        }
        Ok(response)
    }

    /// Puts a NIC in the subnet of the nodes, and returns its path. `providers` is the path of the providers
    /// of its resource group.
    pub fn put_nic(&self, providers: &str, name: &str) -> Result<String> {
        let nic = format!("{providers}/Microsoft.Network/networkInterfaces/{name}");
        let ip = json!({ "name": "ip", "properties": { "subnet": { "id": SUBNET } } });
        let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [ip] } });
        self.put(&format!("{nic}?api-version=2024-05-01"), &body)?;
        Ok(nic)
    }

    /// Deletes a resource.
    pub fn delete(&self, path: &str) -> Result<Response> {
        self.send("DELETE", path, None)
    }

    /// Follows an operation to its end, advancing the clock in the steps of a client that polls. The body
    /// contains the result.
    pub fn finish(&self, started: &Response) -> Result<Value> {
        let Some(address) = &started.operation else { return Ok(started.body.clone()) };
        loop {
            let body = self.get(address)?.body;
            if body["status"] != "InProgress" {
                return Ok(body);
            }
            self.azure.advance(Duration::from_secs(3));
        }
    }

    /// Like [`Self::finish`], for an operation that runs real programs: while they run, the clock is not
    /// advanced.
    pub async fn follow(&self, started: &Response) -> Result<Value> {
        let Some(address) = &started.operation else { return Ok(started.body.clone()) };
        let mut changes = self.azure.changes();
        loop {
            if self.azure.with(|azure| azure.programs_run()) {
                self.azure.changed(&mut changes).await;
                continue;
            }
            let body = self.get(address)?.body;
            if body["status"] != "InProgress" {
                return Ok(body);
            }
            self.azure.advance(Duration::from_secs(3));
        }
    }
}

fn read(response: &http::Response<Bytes>) -> Response {
    Response {
        status: response.status().as_u16(),
        body: serde_json::from_slice(response.body()).unwrap_or(Value::Null),
        operation: response
            .headers()
            .get("azure-asyncoperation")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
    }
}
