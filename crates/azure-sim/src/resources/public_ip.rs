//! Public addresses.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::event::Event;
use crate::exchange::{ArmError, Call, Reply};
use crate::operation::{OperationId, Progress, Provider};
use crate::resources::nic::invalid_reference;
use crate::resources::{location, text};
use crate::route::{Id, Key, Scope};

/// A public address.
#[derive(Debug)]
pub(crate) struct PublicIp {
    pub(crate) id: Id,
    pub(crate) created: Timestamp,
    location: String,
    pub(crate) tags: Value,
    sku: Value,
    properties: Value,
    address: String,
    /// The NIC that uses the address.
    pub(crate) nic: Option<Id>,
    operation: Option<OperationId>,
}

impl PublicIp {
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "name": self.id.name(),
            "id": self.id.to_string(),
            "type": "Microsoft.Network/publicIPAddresses",
            "location": self.location,
            "properties": self.properties,
        });
        for (key, value) in [("tags", &self.tags), ("sku", &self.sku)] {
            if !value.is_null() {
                body[key] = value.clone();
            }
        }
        body["properties"]["provisioningState"] = "Succeeded".into();
        body["properties"]["ipAddress"] = self.address.as_str().into();
        if let Some(nic) = &self.nic {
            body["properties"]["ipConfiguration"] =
                json!({ "id": format!("{nic}/ipConfigurations/ipconfig") });
        }
        body
    }
}

impl Azure {
    pub(crate) fn put_public_ip(&mut self, call: &Call<'_>, id: Id) -> Result<Reply, ArmError> {
        let body = call.json()?;
        let key = id.key();
        let status = if self.public_ips.contains_key(&key) { 200 } else { 201 };
        // Addresses of TEST-NET-3, which is reserved for documentation.
        let address = format!("203.0.113.{}", self.public_ips.len() % 254 + 1);
        let location = location(&body)?;
        let now = self.now;
        let public_ip = self.public_ips.entry(key).or_insert_with(|| PublicIp {
            id,
            created: now,
            location,
            tags: Value::Null,
            sku: Value::Null,
            properties: Value::Null,
            address,
            nic: None,
            operation: None,
        });
        public_ip.tags = body["tags"].clone();
        public_ip.sku = body["sku"].clone();
        public_ip.properties = match body.get("properties") {
            Some(Value::Object(properties)) => Value::Object(properties.clone()),
            _ => json!({}),
        };
        Ok(Reply::json(status, public_ip.body()))
    }

    pub(crate) fn get_public_ip(&self, id: &Id) -> Result<Reply, ArmError> {
        match self.public_ips.get(&id.key()) {
            Some(public_ip) => Ok(Reply::json(200, public_ip.body())),
            None => self.missing(id),
        }
    }

    pub(crate) fn list_public_ips(&self, call: &Call<'_>, scope: &Scope) -> Reply {
        let living = self.public_ips.values().map(|ip| (&ip.id, ip.created, ip.body()));
        self.page(call, scope, "microsoft.network/publicipaddresses", living)
    }

    pub(crate) fn delete_public_ip(&mut self, call: &Call<'_>, id: &Id) -> Result<Reply, ArmError> {
        let key = id.key();
        let Some(public_ip) = self.public_ips.get(&key) else {
            return Ok(Reply::empty(204));
        };
        if let Some(nic) = &public_ip.nic {
            let message = format!(
                "Public IP address {} can not be deleted since it is still allocated to resource {nic}/ipConfigurations/ipconfig. In order to delete the public IP, disassociate/detach the Public IP address from the resource.",
                public_ip.id
            );
            return Err(ArmError::new(400, "PublicIPAddressCannotBeDeleted", message));
        }
        let location = public_ip.location.clone();
        let operation = self.start_operation(Provider::Network, id, &location);
        if let Some(public_ip) = self.public_ips.get_mut(&key) {
            public_ip.operation = Some(operation.clone());
        }
        let lasts = self.lasts(&format!("public-ip-delete/{}/{}", key.0, self.now), 1.0, 4.0);
        self.after(lasts, Event::PublicIpGone(key));
        Ok(self.follow(call, Reply::empty(202), &operation, true))
    }

    pub(crate) fn public_ip_gone(&mut self, key: &Key) {
        let Some(public_ip) = self.public_ips.remove(key) else {
            return;
        };
        self.bury(&public_ip.id, public_ip.body());
        if let Some(operation) = public_ip.operation {
            self.end_operation(&operation, Progress::Succeeded { output: None });
        }
    }

    /// The public address that a NIC's body refers to.
    pub(crate) fn referenced_public_ip(
        &self,
        nic: &Value,
        by: &Id,
    ) -> Result<Option<Key>, ArmError> {
        let Some(id) = text(nic, "/properties/ipConfigurations/0/properties/publicIPAddress/id")
        else {
            return Ok(None);
        };
        let key = Id::parse(id).map(|id| id.key()).filter(|key| self.public_ips.contains_key(key));
        key.map(Some).ok_or_else(|| invalid_reference(id, by))
    }
}
