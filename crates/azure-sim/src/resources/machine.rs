//! Machines of AKS: AKS creates the VM and its extension, and reports the result in its own words.

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::exchange::{ArmError, Call, Reply, arm_time};
use crate::resources::not_found;
use crate::resources::vm::{Vm, VmState};
use crate::route::{Id, Key};

/// A machine in an agent pool.
#[derive(Debug)]
pub(crate) struct Machine {
    id: Id,
    vm: Id,
    properties: Value,
    zones: Value,
}

impl Machine {
    fn body(&self, vm: &Vm) -> Value {
        let running = matches!(vm.state, VmState::Creating | VmState::Updating)
            || vm
                .extensions
                .values()
                .any(|extension| matches!(extension.state(), "Creating" | "Updating"));
        let (state, error) = match &vm.state {
            VmState::Failed(error) => ("Failed", Some(error)),
            VmState::Deleting => ("Deleting", None),
            _ if running => ("Creating", None),
            _ => ("Succeeded", None),
        };
        let mut properties = self.properties.clone();
        properties["resourceId"] = self.vm.to_string().into();
        properties["provisioningState"] = state.into();
        properties["status"] = json!({
            "creationTimestamp": arm_time(vm.created),
            "vmState": if vm.booted.is_some() { "Running" } else { "Creating" },
        });
        if let Some(error) = error {
            properties["status"]["provisioningError"] = json!({
                "code": "FailedToCreateOrUpdateVirtualMachineExtension",
                "message": "The machine's virtual machine did not provision.",
                "details": [error.body()],
            });
        }
        let mut body = json!({
            "id": self.id.to_string(),
            "name": self.id.name(),
            "type": "Microsoft.ContainerService/managedClusters/agentPools/machines",
            "properties": properties,
        });
        if !self.zones.is_null() {
            body["zones"] = self.zones.clone();
        }
        body
    }
}

impl Azure {
    pub(crate) fn put_machine(&mut self, call: &Call<'_>, id: Id) -> Result<Reply, ArmError> {
        let body = call.json()?;
        let key = id.key();
        if let Some(machine) = self.machines.get(&key)
            && let Some(vm) = self.vms.get(&machine.vm.key())
        {
            return Ok(Reply::json(200, machine.body(vm)));
        }
        let (cluster, pool) = cluster_and_pool(&id);
        let location =
            self.scenario.subnets.first().map_or("eastus", |subnet| &subnet.location).to_owned();
        let number = self.seed.of(&format!("machine/{}", key.0)).uuid();
        let group = format!("MC_{}_{cluster}_{location}", id.group);
        let vm_name = format!("aks-{pool}-{}-{}-vm", id.name(), &number[..8]);
        let vm_id = Id::new(
            &id.subscription,
            &group,
            format!("Microsoft.Compute/virtualMachines/{vm_name}"),
        );
        let version = body["properties"]["nodeImageVersion"]
            .as_str()
            .and_then(|name| name.rsplit('-').next())
            .unwrap_or("latest");
        let vm_body = json!({
            "location": location,
            "zones": body["zones"],
            "tags": body["properties"]["tags"],
            "properties": {
                "hardwareProfile": { "vmSize": body["properties"]["hardware"]["vmSize"] },
                "storageProfile": {
                    "imageReference": { "communityGalleryImageId": format!("/CommunityGalleries/AKS/images/node/versions/{version}") },
                    "osDisk": { "deleteOption": "Delete" },
                },
                "osProfile": { "computerName": vm_name, "adminPassword": "set by AKS" },
            },
        });
        let vm = self.new_vm(vm_id.clone(), &vm_body)?;
        let vm_key = vm.id.key();
        self.create_vm(vm, None);
        let extension = json!({ "properties": { "publisher": "Microsoft.Azure.Extensions", "type": "CustomScript", "typeHandlerVersion": "2.0" } });
        self.install_extension(&vm_key, "vmssCSE", &extension, None);
        let machine = Machine {
            id,
            vm: vm_id,
            properties: body["properties"].clone(),
            zones: body["zones"].clone(),
        };
        let reply = Reply::json(201, machine.body(&self.vms[&vm_key]));
        self.machines.insert(key, machine);
        Ok(reply)
    }

    pub(crate) fn get_machine(&self, id: &Id) -> Result<Reply, ArmError> {
        let found = self.machine_with_vm(&id.key()).ok_or_else(|| not_found(id))?;
        Ok(Reply::json(200, found.0.body(found.1)))
    }

    pub(crate) fn list_machines(&self, pool: &Id) -> Reply {
        let prefix = format!("{}/machines/", pool.key().0);
        let items = self
            .machines
            .keys()
            .filter(|key| key.0.starts_with(&prefix))
            .filter_map(|key| self.machine_with_vm(key))
            .map(|(machine, vm)| machine.body(vm))
            .collect();
        Reply::list(items, None)
    }

    pub(crate) fn delete_machine(&mut self, id: &Id) -> Reply {
        let Some(machine) = self.machines.get(&id.key()) else {
            return Reply::empty(204);
        };
        let vm = machine.vm.key();
        self.vm_starts_deleting(&vm, None, true);
        Reply::empty(202)
    }

    /// A machine exists as long as its VM.
    fn machine_with_vm(&self, key: &Key) -> Option<(&Machine, &Vm)> {
        let machine = self.machines.get(key)?;
        Some((machine, self.vms.get(&machine.vm.key())?))
    }
}

/// `…/managedClusters/{cluster}/agentPools/{pool}/machines/{machine}`
fn cluster_and_pool(machine: &Id) -> (&str, &str) {
    let mut segments = machine.tail.split('/').skip(2).step_by(2);
    (segments.next().unwrap_or_default(), segments.next().unwrap_or_default())
}
