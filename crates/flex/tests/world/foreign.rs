//! Resources of another owner in the simulated Azure, and checks that bringup did not change them.

use std::time::Duration;

use bringup_azure_sim::Delivery;
use serde_json::{Value, json};

use super::{SUBSCRIPTION, World, place};

pub const VM: &str = "Microsoft.Compute/virtualMachines";
pub const NIC: &str = "Microsoft.Network/networkInterfaces";
pub const DISK: &str = "Microsoft.Compute/disks";

fn path(kind: &str, name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/{kind}/{name}")
}

/// Sends a request as any client does: a throttled request is repeated after a pause.
fn send(world: &World, method: &str, kind: &str, name: &str, body: &Value) -> (u16, Value) {
    for _ in 0..60 {
        let (status, answer) = send_once(world, method, kind, name, body);
        if status != 429 {
            return (status, answer);
        }
        world.azure.advance(Duration::from_secs(15));
    }
    panic!("{method} {kind} {name}: throttled for 15 minutes");
}

fn send_once(world: &World, method: &str, kind: &str, name: &str, body: &Value) -> (u16, Value) {
    let version = match kind {
        NIC => "2024-05-01",
        DISK => "2024-03-02",
        _ => "2024-11-01",
    };
    let request = http::Request::builder()
        .method(method)
        .uri(format!("{}?api-version={version}", path(kind, name)))
        .header("host", "management.azure.com")
        .header("authorization", "Bearer another-team")
        .body(bytes::Bytes::from(body.to_string()))
        .unwrap();
    match world.azure.answer(&request).delivery {
        Delivery::Response(response) => {
            let body = serde_json::from_slice(response.body()).unwrap_or(Value::Null);
            (response.status().as_u16(), body)
        }
        other => panic!("{other:?}"),
    }
}

/// A resource as a client reads it. Only 404 proves that it does not exist.
pub fn read(world: &World, kind: &str, name: &str) -> Option<Value> {
    match send(world, "GET", kind, name, &Value::Null) {
        (200, body) => Some(body),
        (404, _) => None,
        (status, body) => panic!("GET {kind} {name}: {status} {body}"),
    }
}

pub fn put(world: &World, kind: &str, name: &str, body: &Value) {
    let (status, body) = send(world, "PUT", kind, name, body);
    assert!(status < 300, "{kind} {name}: {status} {body}");
}

pub fn delete(world: &World, kind: &str, name: &str) {
    send(world, "DELETE", kind, name, &Value::Null);
}

/// The body of a resource that another owner creates.
pub fn foreign_body(kind: &str, name: &str, tags: &Value) -> Value {
    let properties = match kind {
        NIC => {
            json!({ "ipConfigurations": [{ "name": "ip", "properties": { "subnet": { "id": place("x").subnet_id } } }] })
        }
        DISK => json!({ "diskSizeGB": 64 }),
        _ => json!({
            "hardwareProfile": { "vmSize": "Standard_D8s_v5" },
            "storageProfile": {
                "imageReference": { "publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2204", "version": "22.04.2026011301" },
                "osDisk": { "name": format!("theirs-{name}"), "createOption": "FromImage", "deleteOption": "Delete" },
            },
        }),
    };
    json!({ "location": "eastus2", "tags": tags, "properties": properties })
}

/// A resource that another owner created.
#[derive(Debug, Clone)]
pub struct Plant {
    kind: &'static str,
    name: String,
    /// The number of requests before its creation.
    since: usize,
    tags: Value,
    identity: Value,
}

impl Plant {
    pub fn new(world: &World, kind: &'static str, name: &str, tags: Value) -> Self {
        Self::try_new(world, kind, name, tags).unwrap()
    }

    /// Creates the resource; none if its name is taken, or if Azure refuses the resource.
    pub fn try_new(world: &World, kind: &'static str, name: &str, tags: Value) -> Option<Self> {
        if read(world, kind, name).is_some() {
            return None;
        }
        let (status, _) = send(world, "PUT", kind, name, &foreign_body(kind, name, &tags));
        if status >= 300 {
            return None;
        }
        world.azure.advance(Duration::from_secs(3));
        let identity = read(world, kind, name)?["properties"]["vmId"].clone();
        let since = world.azure.with(|azure| azure.journal().requests().len());
        Some(Self { kind, name: name.to_owned(), since, tags, identity })
    }

    /// Checks in Azure's journal that no request wrote or deleted the resource.
    pub fn is_not_written(&self, world: &World) {
        let path = path(self.kind, &self.name).to_ascii_lowercase();
        world.azure.with(|azure| {
            for request in &azure.journal().requests()[self.since..] {
                let to = request.path.split('?').next().unwrap_or_default().to_ascii_lowercase();
                let is_write = request.method != "GET" && to == path;
                assert!(!is_write, "{request:?}\n{}", azure.journal().text());
            }
        });
    }

    /// Checks that the resource still exists, unchanged.
    pub fn still_exists(&self, world: &World) {
        let text = || world.azure.with(|azure| azure.journal().text().to_owned());
        let found = read(world, self.kind, &self.name);
        let found =
            found.unwrap_or_else(|| panic!("{} {} is gone\n{}", self.kind, self.name, text()));
        assert_eq!(found["tags"], self.tags, "{} {}", self.kind, self.name);
        assert_eq!(found["properties"]["vmId"], self.identity);
    }

    pub fn is_untouched(&self, world: &World) {
        world.azure.advance(Duration::from_hours(1));
        self.is_not_written(world);
        self.still_exists(world);
    }
}
