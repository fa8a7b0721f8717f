//! Network interfaces, and the 180 seconds for which Azure reserves a NIC for a VM.

use std::net::Ipv4Addr;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::event::Event;
use crate::exchange::{ArmError, Call, Reply};
use crate::operation::{OperationId, Progress, Provider};
use crate::resources::{location, not_found, text};
use crate::route::{Id, Key, Scope};

/// How long a VM PUT that names a NIC reserves the NIC, even if the PUT was refused.
const RESERVED: SignedDuration = SignedDuration::from_secs(180);

/// A network interface.
#[derive(Debug)]
pub(crate) struct Nic {
    pub(crate) id: Id,
    pub(crate) created: Timestamp,
    pub(crate) location: String,
    pub(crate) tags: Value,
    properties: Value,
    state: &'static str,
    pub(crate) address: Ipv4Addr,
    subnet: Key,
    pub(crate) public_ip: Option<Key>,
    /// The VM that uses the NIC.
    pub(crate) vm: Option<Id>,
    /// The VM that the NIC is reserved for, and the end of the reservation.
    reserved: Option<(Id, Timestamp)>,
    operation: Option<OperationId>,
    /// The number of writes.
    writes: u32,
}

impl Nic {
    /// Changes with every write, and when a VM attaches or detaches the NIC.
    fn etag(&self) -> String {
        let vm = self.vm.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("W/\"{}-{}-{}\"", self.created.as_millisecond(), self.writes, vm.len())
    }

    pub(crate) fn body(&self) -> Value {
        let configuration = format!("{}/ipConfigurations", self.id);
        let mut configurations = self.properties["ipConfigurations"].clone();
        for item in configurations.as_array_mut().into_iter().flatten() {
            item["id"] =
                format!("{configuration}/{}", text(item, "/name").unwrap_or("ipconfig")).into();
            item["type"] = "Microsoft.Network/networkInterfaces/ipConfigurations".into();
            item["properties"]["provisioningState"] = self.state.into();
            item["properties"]["privateIPAddress"] = self.address.to_string().into();
            item["properties"]["privateIPAddressVersion"] = "IPv4".into();
            item["properties"]["primary"] = true.into();
        }
        let mut body = json!({
            "name": self.id.name(),
            "id": self.id.to_string(),
            "etag": self.etag(),
            "type": "Microsoft.Network/networkInterfaces",
            "location": self.location,
            "kind": "Regular",
            "tags": self.tags,
            "properties": {
                "provisioningState": self.state,
                "ipConfigurations": configurations,
                "enableAcceleratedNetworking": self.properties["enableAcceleratedNetworking"] == true,
                "enableIPForwarding": self.properties["enableIPForwarding"] == true,
                "hostedWorkloads": [],
                "nicType": "Standard",
            },
        });
        if let Some(group) = self.properties.get("networkSecurityGroup") {
            body["properties"]["networkSecurityGroup"] = group.clone();
        }
        if let Some(vm) = &self.vm {
            body["properties"]["virtualMachine"] = json!({ "id": vm.to_string() });
        }
        body
    }
}

impl Azure {
    pub(crate) fn put_nic(&mut self, call: &Call<'_>, id: Id) -> Result<Reply, ArmError> {
        let body = call.json()?;
        let key = id.key();
        call.check_conditions(self.nics.get(&key).map(Nic::etag).as_deref())?;
        if let Some(nic) = self.nics.get_mut(&key) {
            nic.writes += 1;
            nic.tags = body["tags"].clone();
            return Ok(Reply::json(200, nic.body()));
        }
        // Half of all NICs are ready at once, the others take seconds: clients must cope with both.
        let at_once = self.seed.of(&format!("nic-at-once/{}/{}", key.0, self.now)).chance() < 0.5;
        self.create_nic(id, &body, at_once)?;
        let nic = &self.nics[&key];
        let (reply, operation) = (Reply::json(201, nic.body()), nic.operation.clone());
        Ok(match operation {
            Some(operation) => self.follow(call, reply, &operation, false),
            None => reply,
        })
    }

    /// Creates a NIC: its address is allocated at once, even if the rest takes longer.
    pub(crate) fn create_nic(
        &mut self,
        id: Id,
        body: &Value,
        at_once: bool,
    ) -> Result<(), ArmError> {
        let location = location(body)?;
        let key = id.key();
        let public_ip = self.referenced_public_ip(body, &id)?;
        let subnet_id =
            text(body, "/properties/ipConfigurations/0/properties/subnet/id").and_then(Id::parse);
        let subnet_key = subnet_id.map(|subnet| subnet.key()).ok_or_else(|| {
            ArmError::new(
                400,
                "InvalidRequestFormat",
                "Cannot parse the request: the network interface names no subnet.",
            )
            .target("ipConfigurations")
        })?;
        let subnet = self
            .subnet(&subnet_key)
            .filter(|subnet| subnet.location.eq_ignore_ascii_case(&location))
            .ok_or_else(|| invalid_reference(&subnet_key.0, &id))?;
        let address = subnet.take()?;
        let operation = (!at_once).then(|| self.start_operation(Provider::Network, &id, &location));
        if operation.is_some() {
            let settled = self.lasts(&format!("nic/{}/{}", key.0, self.now), 1.0, 4.0);
            self.after(settled, Event::NicSettled(key.clone()));
        }
        if let Some(public_ip) = public_ip.as_ref().and_then(|key| self.public_ips.get_mut(key)) {
            public_ip.nic = Some(id.clone());
        }
        self.journal.state(self.now, &id.tail, "created");
        let nic = Nic {
            created: self.now,
            location,
            tags: body["tags"].clone(),
            properties: body["properties"].clone(),
            state: if at_once { "Succeeded" } else { "Updating" },
            address,
            subnet: subnet_key,
            public_ip,
            vm: None,
            reserved: None,
            operation,
            writes: 0,
            id,
        };
        self.nics.insert(key, nic);
        Ok(())
    }

    pub(crate) fn get_nic(&self, id: &Id) -> Result<Reply, ArmError> {
        match self.nics.get(&id.key()) {
            Some(nic) if self.shows(nic.created, self.scenario.quirks.hidden_after_create.0) => {
                Ok(Reply::json(200, nic.body()))
            }
            Some(_) => Err(not_found(id)),
            None => self.missing(id),
        }
    }

    pub(crate) fn list_nics(&self, call: &Call<'_>, scope: &Scope) -> Reply {
        let living = self.nics.values().map(|nic| (&nic.id, nic.created, nic.body()));
        self.page(call, scope, "microsoft.network/networkinterfaces", living)
    }

    pub(crate) fn delete_nic(&mut self, call: &Call<'_>, id: &Id) -> Result<Reply, ArmError> {
        let key = id.key();
        let Some(nic) = self.nics.get(&key) else {
            return Ok(Reply::empty(204));
        };
        call.check_conditions(Some(&nic.etag()))?;
        if let Some(vm) = &nic.vm {
            let message = format!(
                "Network Interface {} is used by existing resource {vm}. In order to delete the network interface, it must be dissociated from the resource. To learn more, see aka.ms/deletenic.",
                nic.id
            );
            return Err(ArmError::new(400, "NicInUse", message));
        }
        self.refuse_if_reserved(&key, None)?;
        let location = nic.location.clone();
        let operation = self.start_operation(Provider::Network, id, &location);
        let lasts = self.lasts(&format!("nic-delete/{}/{}", key.0, self.now), 1.0, 4.0);
        if let Some(nic) = self.nics.get_mut(&key) {
            nic.state = "Deleting";
            nic.operation = Some(operation.clone());
        }
        self.after(lasts, Event::NicGone(key));
        Ok(self.follow(call, Reply::empty(202), &operation, true))
    }

    /// Reserves a NIC for `vm`; the error names the VM that already reserves it.
    pub(crate) fn reserve_nic(&mut self, nic: &Key, vm: &Id) -> Result<(), ArmError> {
        self.refuse_if_reserved(nic, Some(vm))?;
        let until = self.now + RESERVED;
        if let Some(nic) = self.nics.get_mut(nic) {
            nic.reserved = Some((vm.clone(), until));
        }
        Ok(())
    }

    fn refuse_if_reserved(&self, nic: &Key, but_for: Option<&Id>) -> Result<(), ArmError> {
        let reserved = self.nics.get(nic).and_then(|nic| nic.reserved.as_ref());
        match reserved {
            Some((vm, until))
                if *until > self.now && but_for.is_none_or(|other| other.key() != vm.key()) =>
            {
                let message = format!(
                    "Nic(s) in request is reserved for another Virtual Machine for 180 seconds. Please provide another nic(s) or retry after 180 seconds. Reserved VM: {vm}"
                );
                Err(ArmError::new(400, "NicReservedForAnotherVm", message))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn nic_settled(&mut self, key: &Key) {
        if let Some(nic) = self.nics.get_mut(key)
            && nic.state == "Updating"
        {
            nic.state = "Succeeded";
            if let Some(operation) = nic.operation.take() {
                self.end_operation(&operation, Progress::Succeeded { output: None });
            }
        }
    }

    pub(crate) fn nic_gone(&mut self, key: &Key) {
        // A VM may have attached the NIC during its deletion.
        if self.nics.get(key).is_none_or(|nic| nic.vm.is_some()) {
            return;
        }
        let Some(nic) = self.nics.remove(key) else {
            return;
        };
        if let Some(subnet) = self.subnet(&nic.subnet) {
            subnet.give_back(nic.address);
        }
        if let Some(public_ip) = nic.public_ip.as_ref().and_then(|key| self.public_ips.get_mut(key))
        {
            public_ip.nic = None;
        }
        self.journal.state(self.now, &nic.id.tail, "gone");
        self.bury(&nic.id, nic.body());
        if let Some(operation) = nic.operation {
            self.end_operation(&operation, Progress::Succeeded { output: None });
        }
    }
}

/// A body that refers to a resource that does not exist.
pub(crate) fn invalid_reference(missing: &str, by: &Id) -> ArmError {
    let message = format!(
        "Resource {missing} referenced by resource {by} was not found. Please make sure that the referenced resource exists, and that both resources are in the same region."
    );
    ArmError::new(400, "InvalidResourceReference", message)
}
