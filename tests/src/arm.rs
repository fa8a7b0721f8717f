//! A plain client of the simulated ARM, in process: for the parts that others play.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bringup_azure_sim::azure::Delivery;
use bringup_azure_sim::simulator::Simulator;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;

const HOST: &str = "https://management.azure.com";
const VERSION: &str = "api-version=2024-11-01";

/// Calls ARM without retries, as a client that is not under test.
#[derive(Debug, Clone)]
pub struct Arm {
    azure: Simulator,
}

/// What ARM said.
#[derive(Debug)]
pub struct Said {
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

    /// Sends one request to a path, or to a whole address that ARM gave.
    pub fn send(&self, method: &str, address: &str, body: Option<&Value>) -> Result<Said> {
        self.answer(method, address, body).map(|response| said(&response))
    }

    /// The serial console of a VM, as far as it is stored.
    pub fn console(&self, vm: &str) -> Result<String> {
        self.blob(&self.console_address(vm)?)
    }

    /// Where the serial console of a VM is stored, for two hours.
    pub fn console_address(&self, vm: &str) -> Result<String> {
        let addresses = self.send("POST", &format!("{vm}/retrieveBootDiagnosticsData"), None)?;
        let address = addresses.body["serialConsoleLogBlobUri"].as_str();
        Ok(address.with_context(|| format!("{vm}: {}", addresses.body))?.to_owned())
    }

    /// What is stored at an address by now, as text.
    pub fn blob(&self, address: &str) -> Result<String> {
        let stored = self.answer("GET", address, None)?;
        Ok(String::from_utf8_lossy(stored.body()).trim_end_matches('\0').to_owned())
    }

    fn answer(&self, method: &str, address: &str, body: Option<&Value>) -> Result<Response<Bytes>> {
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
    pub fn get(&self, path: &str) -> Result<Said> {
        self.send("GET", path, None)
    }

    /// Puts a resource and waits for its operation, if there is one. The clock is advanced
    /// while waiting: what takes minutes in Azure takes none here.
    pub fn put(&self, path: &str, body: &Value) -> Result<Said> {
        let said = self.send("PUT", path, Some(body))?;
        if said.status >= 300 {
            bail!("PUT {path}: {} {}", said.status, said.body);
        }
        Ok(said)
    }

    /// Deletes a resource.
    pub fn delete(&self, path: &str) -> Result<Said> {
        self.send("DELETE", path, None)
    }

    /// Follows an operation to its end, advancing the clock in the steps of a client that polls.
    /// The body says how it ended.
    pub fn finish(&self, started: &Said) -> Result<Value> {
        let Some(address) = &started.operation else { return Ok(started.body.clone()) };
        loop {
            let body = self.get(address)?.body;
            if body["status"] != "InProgress" {
                return Ok(body);
            }
            self.azure.advance(Duration::from_secs(3));
        }
    }

    /// The same for an operation in which real programs run: while they do, the clock is left to
    /// itself.
    pub async fn follow(&self, started: &Said) -> Result<Value> {
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

fn said(response: &Response<Bytes>) -> Said {
    Said {
        status: response.status().as_u16(),
        body: serde_json::from_slice(response.body()).unwrap_or(Value::Null),
        operation: response
            .headers()
            .get("azure-asyncoperation")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
    }
}
