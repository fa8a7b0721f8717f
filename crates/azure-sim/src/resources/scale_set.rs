//! Scale sets. An instance is a VM like any other; the ID of an instance is below a uniform set, but next to
//! a flexible set.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::exchange::{ArmError, Call, Reply};
use crate::operation::{OperationId, Progress, Provider};
use crate::resources::vm::{Vm, VmState};
use crate::resources::{location, not_found, text, withhold};
use crate::route::{Id, Key, Scope};

/// A scale set.
#[derive(Debug)]
pub(crate) struct ScaleSet {
    pub(crate) id: Id,
    created: Timestamp,
    location: String,
    body: Value,
    flexible: bool,
    state: &'static str,
    instances: Vec<Key>,
    /// The number of the next instance. Numbers are never reused.
    next: u32,
    operation: Option<OperationId>,
    deleting: bool,
}

impl ScaleSet {
    fn body(&self) -> Value {
        let mut body = self.body.clone();
        body["name"] = self.id.name().into();
        body["id"] = self.id.to_string().into();
        body["type"] = "Microsoft.Compute/virtualMachineScaleSets".into();
        body["location"] = self.location.as_str().into();
        body["properties"]["provisioningState"] = self.state.into();
        let profile = "/properties/virtualMachineProfile";
        withhold(&mut body, &format!("{profile}/osProfile"), &["customData", "adminPassword"]);
        let extensions = body.pointer_mut(&format!("{profile}/extensionProfile/extensions"));
        for extension in extensions.and_then(Value::as_array_mut).into_iter().flatten() {
            withhold(extension, "/properties", &["protectedSettings"]);
        }
        body
    }

    /// The body of one instance, as for a VM outside a scale set.
    fn instance(&self, index: u32) -> Value {
        let profile = &self.body["properties"]["virtualMachineProfile"];
        let mut os = profile["osProfile"].clone();
        let prefix = text(&os, "/computerNamePrefix").unwrap_or_else(|| self.id.name()).to_owned();
        withhold(&mut os, "", &["computerNamePrefix"]);
        os["computerName"] = format!("{prefix}{index:06}").into();
        let mut body = json!({
            "location": self.location,
            "tags": self.body["tags"],
            "properties": {
                "hardwareProfile": { "vmSize": self.body["sku"]["name"] },
                "osProfile": os,
                "storageProfile": profile["storageProfile"],
            },
        });
        for key in ["diagnosticsProfile", "priority", "userData"] {
            if let Some(value) = profile.get(key) {
                body["properties"][key] = value.clone();
            }
        }
        if self.flexible {
            body["properties"]["virtualMachineScaleSet"] = json!({ "id": self.id.to_string() });
        }
        if let Some(zones) = self.body["zones"].as_array().filter(|zones| !zones.is_empty()) {
            body["zones"] = json!([zones[index as usize % zones.len()]]);
        }
        body
    }

    fn wanted(&self) -> usize {
        self.body["sku"]["capacity"]
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(0)
    }
}

impl Azure {
    pub(crate) fn put_scale_set(&mut self, call: &Call<'_>, id: Id) -> Result<Reply, ArmError> {
        let body = call.json()?;
        let location = location(&body)?;
        let key = id.key();
        let existed = self.scale_sets.contains_key(&key);
        let operation = self.start_operation(Provider::Compute, &id, &location);
        let flexible = text(&body, "/properties/orchestrationMode")
            .is_some_and(|mode| mode.eq_ignore_ascii_case("Flexible"));
        let now = self.now;
        let set = self.scale_sets.entry(key.clone()).or_insert_with(|| ScaleSet {
            id,
            created: now,
            location,
            body: Value::Null,
            flexible,
            state: "Creating",
            instances: Vec::new(),
            next: 0,
            operation: None,
            deleting: false,
        });
        set.body = body;
        set.state = if existed { "Updating" } else { "Creating" };
        set.operation = Some(operation.clone());
        let reply = Reply::json(if existed { 200 } else { 201 }, set.body());
        if let Err(error) = self.scale(&key) {
            self.scale_set_ends(&key, Some(error));
        }
        self.scale_set_progresses(&key);
        Ok(self.follow(call, reply, &operation, false))
    }

    /// Creates and deletes instances until their number matches the capacity.
    fn scale(&mut self, key: &Key) -> Result<(), ArmError> {
        while self.scale_sets[key].instances.len() < self.scale_sets[key].wanted() {
            self.add_instance(key)?;
        }
        let set = self.scale_sets.get_mut(key).expect("looked up above");
        for surplus in set.instances.split_off(set.wanted()) {
            self.vm_starts_deleting(&surplus, None, true);
        }
        Ok(())
    }

    fn add_instance(&mut self, key: &Key) -> Result<(), ArmError> {
        let set = &self.scale_sets[key];
        let index = set.next;
        let mut body = set.instance(index);
        let id = if set.flexible {
            let name = self.seed.of(&format!("instance/{}/{index}", key.0)).uuid();
            set.id.beside(format!(
                "Microsoft.Compute/virtualMachines/{}_{}",
                set.id.name(),
                &name[..8]
            ))
        } else {
            set.id.beside(format!("{}/virtualMachines/{index}", set.id.tail))
        };
        let extensions =
            set.body["properties"]["virtualMachineProfile"]["extensionProfile"]["extensions"]
                .clone();
        if set.flexible {
            self.add_instance_nic(key, &id, &mut body)?;
        }
        let mut vm = self.new_vm(id, &body)?;
        let set = self.scale_sets.get_mut(key).expect("looked up above");
        vm.scale_set = Some(set.id.clone());
        let vm_key = vm.id.key();
        set.next += 1;
        set.instances.push(vm_key.clone());
        self.create_vm(vm, None);
        for extension in extensions.as_array().into_iter().flatten() {
            let name = text(extension, "/name").unwrap_or("extension").to_owned();
            self.install_extension(&vm_key, &name, extension, None);
        }
        Ok(())
    }

    fn add_instance_nic(&mut self, key: &Key, vm: &Id, body: &mut Value) -> Result<(), ArmError> {
        let set = &self.scale_sets[key];
        let profile = &set.body["properties"]["virtualMachineProfile"]["networkProfile"];
        let Some(configuration) = profile.pointer("/networkInterfaceConfigurations/0") else {
            return Ok(());
        };
        let nic = vm.beside(format!("Microsoft.Network/networkInterfaces/{}-nic", vm.name()));
        let made = json!({
            "location": set.location,
            "tags": set.body["tags"],
            "properties": configuration["properties"],
        });
        body["properties"]["networkProfile"] = json!({ "networkInterfaces": [{
            "id": nic.to_string(),
            "properties": { "primary": true, "deleteOption": "Delete" },
        }] });
        self.create_nic(nic, &made, true)
    }

    pub(crate) fn get_scale_set(&self, id: &Id) -> Result<Reply, ArmError> {
        match self.scale_sets.get(&id.key()) {
            Some(set) => Ok(Reply::json(200, set.body())),
            None => self.missing(id),
        }
    }

    pub(crate) fn list_scale_sets(&self, call: &Call<'_>, scope: &Scope) -> Reply {
        let living = self.scale_sets.values().map(|set| (&set.id, set.created, set.body()));
        self.page(call, scope, "microsoft.compute/virtualmachinescalesets", living)
    }

    pub(crate) fn get_scale_set_instance_view(&self, id: &Id) -> Result<Reply, ArmError> {
        let set = self.scale_sets.get(&id.key()).ok_or_else(|| not_found(id))?;
        let mut counts = std::collections::BTreeMap::<String, u32>::new();
        for vm in set.instances.iter().filter_map(|key| self.vms.get(key)) {
            *counts
                .entry(format!("ProvisioningState/{}", vm.state.word().to_ascii_lowercase()))
                .or_default() += 1;
        }
        let summary: Vec<Value> =
            counts.iter().map(|(code, count)| json!({ "code": code, "count": count })).collect();
        Ok(Reply::json(200, json!({ "virtualMachine": { "statusesSummary": summary } })))
    }

    pub(crate) fn list_scale_set_vms(&self, call: &Call<'_>, id: &Id) -> Result<Reply, ArmError> {
        let set = self.scale_sets.get(&id.key()).ok_or_else(|| not_found(id))?;
        let scope = Scope { subscription: id.subscription.clone(), group: None };
        let living = set
            .instances
            .iter()
            .filter_map(|key| self.vms.get(key))
            .map(|vm| (&vm.id, vm.created, self.vm_body(vm, call)));
        Ok(self.page(
            call,
            &scope,
            "microsoft.compute/virtualmachinescalesets/virtualmachines",
            living,
        ))
    }

    pub(crate) fn delete_scale_set(&mut self, call: &Call<'_>, id: &Id) -> Reply {
        let key = id.key();
        let Some(set) = self.scale_sets.get_mut(&key) else {
            return Reply::empty(204);
        };
        set.state = "Deleting";
        set.deleting = true;
        let (location, instances) = (set.location.clone(), set.instances.clone());
        let operation = self.start_operation(Provider::Compute, id, &location);
        self.scale_sets.get_mut(&key).expect("looked up above").operation = Some(operation.clone());
        for instance in &instances {
            self.vm_starts_deleting(instance, None, true);
        }
        if instances.is_empty() {
            self.scale_set_gone(&key);
        }
        self.follow(call, Reply::empty(202), &operation, true)
    }

    /// After the deletion of a VM: if it was the last one of a set that is being deleted, the set is deleted
    /// too.
    pub(crate) fn scale_set_lost(&mut self, vm: &Vm) {
        let Some(set_key) = vm.scale_set.as_ref().map(Id::key) else {
            return;
        };
        let Some(set) = self.scale_sets.get_mut(&set_key) else {
            return;
        };
        set.instances.retain(|key| *key != vm.id.key());
        if set.deleting && set.instances.is_empty() {
            self.scale_set_gone(&set_key);
        }
    }

    fn scale_set_gone(&mut self, key: &Key) {
        let Some(set) = self.scale_sets.remove(key) else {
            return;
        };
        self.journal.state(self.now, &set.id.tail, "gone");
        self.bury(&set.id, set.body());
        if let Some(operation) = set.operation {
            self.end_operation(&operation, Progress::Succeeded { output: None });
        }
    }

    /// An instance has reached its final state: it may be the last one.
    pub(crate) fn scale_set_progresses_with(&mut self, instance: &Key) {
        let set = self.vms.get(instance).and_then(|vm| vm.scale_set.as_ref()).map(Id::key);
        if let Some(set) = set {
            self.scale_set_progresses(&set);
        }
    }

    /// The operation of a set ends when every instance has reached its final state, including its extensions.
    pub(crate) fn scale_set_progresses(&mut self, key: &Key) {
        let Some(set) =
            self.scale_sets.get(key).filter(|set| set.operation.is_some() && !set.deleting)
        else {
            return;
        };
        let instances: Vec<&Vm> =
            set.instances.iter().filter_map(|key| self.vms.get(key)).collect();
        let settled = instances.iter().all(|vm| {
            !matches!(vm.state, VmState::Creating | VmState::Updating)
                && vm
                    .extensions
                    .values()
                    .all(|extension| matches!(extension.state(), "Succeeded" | "Failed"))
        });
        if !settled {
            return;
        }
        let failure = instances.iter().find_map(|vm| match &vm.state {
            VmState::Failed(error) => Some(error.clone()),
            _ => None,
        });
        self.scale_set_ends(key, failure);
    }

    fn scale_set_ends(&mut self, key: &Key, failure: Option<ArmError>) {
        let Some(set) = self.scale_sets.get_mut(key) else {
            return;
        };
        set.state = if failure.is_some() { "Failed" } else { "Succeeded" };
        if let Some(operation) = set.operation.take() {
            self.end_operation(
                &operation,
                match failure {
                    Some(error) => Progress::Failed(error),
                    None => Progress::Succeeded { output: None },
                },
            );
        }
    }
}
