//! Managed disks. A VM creates its own disks; a disk that stays after its VM is leaked.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::event::Event;
use crate::exchange::{ArmError, Call, Reply};
use crate::operation::{OperationId, Progress, Provider};
use crate::resources::location;
use crate::route::{Id, Key, Scope};

/// A managed disk.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) id: Id,
    pub(crate) created: Timestamp,
    pub(crate) location: String,
    pub(crate) tags: Value,
    pub(crate) size_gib: u64,
    pub(crate) zones: Value,
    /// The VM that uses the disk.
    pub(crate) vm: Option<Id>,
    pub(crate) operation: Option<OperationId>,
    /// Whether a client created the disk by itself, and not with a VM.
    pub(crate) is_alone: bool,
}

impl Disk {
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "name": self.id.name(),
            "id": self.id.to_string(),
            "type": "Microsoft.Compute/disks",
            "location": self.location,
            "tags": self.tags,
            "sku": { "name": "Premium_LRS", "tier": "Premium" },
            "properties": {
                "provisioningState": "Succeeded",
                "diskState": if self.vm.is_some() { "Attached" } else { "Unattached" },
                "diskSizeGB": self.size_gib,
                "timeCreated": crate::exchange::arm_time(self.created),
            },
        });
        if !self.zones.is_null() {
            body["zones"] = self.zones.clone();
        }
        if let Some(vm) = &self.vm {
            body["managedBy"] = vm.to_string().into();
        }
        body
    }
}

impl Azure {
    pub(crate) fn get_disk(&self, id: &Id) -> Result<Reply, ArmError> {
        match self.disks.get(&id.key()) {
            Some(disk) => Ok(Reply::json(200, disk.body())),
            None => self.missing(id),
        }
    }

    /// Creates an empty disk, or changes the tags of an existing disk.
    pub(crate) fn put_disk(&mut self, call: &Call<'_>, id: Id) -> Result<Reply, ArmError> {
        let body = call.json()?;
        let key = id.key();
        if let Some(disk) = self.disks.get_mut(&key) {
            disk.tags = body["tags"].clone();
            return Ok(Reply::json(200, disk.body()));
        }
        self.journal.state(self.now, &id.tail, "created");
        let disk = Disk {
            created: self.now,
            location: location(&body)?,
            tags: body["tags"].clone(),
            size_gib: body["properties"]["diskSizeGB"].as_u64().unwrap_or(128),
            zones: body.get("zones").cloned().unwrap_or(Value::Null),
            vm: None,
            operation: None,
            is_alone: true,
            id,
        };
        let reply = Reply::json(201, disk.body());
        self.disks.insert(key, disk);
        Ok(reply)
    }

    /// Attaches data disks to the VMs with this name, as a PATCH from another client would.
    pub fn attach_data_disks(&mut self, vm: &str, disks: &Value) {
        for found in self.vms.values_mut().filter(|found| found.id.name() == vm) {
            found.properties["storageProfile"]["dataDisks"] = disks.clone();
        }
    }

    pub(crate) fn list_disks(&self, call: &Call<'_>, scope: &Scope) -> Reply {
        let living = self.disks.values().map(|disk| (&disk.id, disk.created, disk.body()));
        self.page(call, scope, "microsoft.compute/disks", living)
    }

    pub(crate) fn delete_disk(&mut self, call: &Call<'_>, id: &Id) -> Result<Reply, ArmError> {
        let key = id.key();
        let Some(disk) = self.disks.get(&key) else {
            return Ok(Reply::empty(204));
        };
        if let Some(vm) = &disk.vm {
            let message = format!("Disk {} is attached to VM {vm}.", disk.id.name());
            return Err(ArmError::new(409, "OperationNotAllowed", message));
        }
        let location = disk.location.clone();
        let operation = self.start_operation(Provider::Compute, id, &location);
        if let Some(disk) = self.disks.get_mut(&key) {
            disk.operation = Some(operation.clone());
        }
        let lasts = self.lasts(&format!("disk-delete/{}/{}", key.0, self.now), 1.0, 5.0);
        self.after(lasts, Event::DiskGone(key));
        Ok(self.follow(call, Reply::empty(202), &operation, true))
    }

    pub(crate) fn disk_gone(&mut self, key: &Key) {
        if self.disks.get(key).is_none_or(|disk| disk.vm.is_some()) {
            return;
        }
        let Some(disk) = self.disks.remove(key) else {
            return;
        };
        self.journal.state(self.now, &disk.id.tail, "gone");
        self.bury(&disk.id, disk.body());
        if let Some(operation) = disk.operation {
            self.end_operation(&operation, Progress::Succeeded { output: None });
        }
    }
}
