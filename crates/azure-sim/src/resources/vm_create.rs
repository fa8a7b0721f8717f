//! The PUT of a VM: the checks, in Azure's order, and the events that follow.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::catalog::Size;
use crate::event::VmEvent;
use crate::exchange::{ArmError, Call, Reply};
use crate::operation::{OperationId, Provider};
use crate::resources::later;
use crate::resources::nic::invalid_reference;
use crate::resources::vm::{Agent, Attached, Os, Power, SOON, Vm, VmState};
use crate::resources::{location, text, withhold};
use crate::route::Id;
use crate::scenario::{Boot, OsOutcome, Refusal, Subject};
use crate::view::vm_model;

impl Azure {
    pub(crate) fn put_vm(&mut self, call: &Call<'_>, id: Id) -> Result<Reply, ArmError> {
        let body = call.json()?;
        let exists = self.vms.contains_key(&id.key());
        call.check_conditions(exists.then_some("\"1\""))?;
        if exists {
            return self.update_vm(call, &id, &body);
        }
        let vm = self.new_vm(id, &body)?;
        let operation = self.start_operation(Provider::Compute, &vm.id, &vm.location);
        let key = vm.id.key();
        self.create_vm(vm, Some(operation.clone()));
        let reply = Reply::json(201, vm_model(&self.vms[&key]));
        Ok(self.follow(call, reply, &operation, false))
    }

    /// A PUT for an existing VM: restarts a failed creation, or changes tags.
    fn update_vm(&mut self, call: &Call<'_>, id: &Id, body: &Value) -> Result<Reply, ArmError> {
        let key = id.key();
        let vm = &self.vms[&key];
        if matches!(vm.state, VmState::Deleting) {
            let message = format!(
                "Operation is not allowed on VM '{}' since the VM is marked for deletion. You can only retry the Delete operation (or wait for an ongoing one to complete).",
                id.name()
            );
            return Err(ArmError::new(409, "OperationNotAllowed", message));
        }
        let keys = "/osProfile/linuxConfiguration/ssh/publicKeys";
        let asked = body["properties"].pointer(keys);
        if asked.is_some() && asked != vm.properties.pointer(keys) {
            let property = "linuxConfiguration.ssh.publicKeys";
            let message = format!("Changing property '{property}' is not allowed.");
            return Err(ArmError::new(409, "PropertyChangeNotAllowed", message).target(property));
        }
        for nic in vm.nics.clone() {
            self.reserve_nic(&nic.id.key(), id)?;
        }
        self.preempt(&key)?;
        let location = self.vms[&key].location.clone();
        let operation = self.start_operation(Provider::Compute, id, &location);
        let refusal = self.capacity_refusal(&self.vms[&key]);
        let vm = self.vms.get_mut(&key).expect("looked up above");
        let reference = vm.reference();
        vm.tags = body["tags"].clone();
        vm.operation = Some(operation.clone());
        match vm.state {
            // The running creation continues, and the new operation reports its end.
            VmState::Creating => {}
            VmState::Failed(_) if vm.booted.is_none() => {
                vm.state = VmState::Creating;
                vm.fails_with = refusal;
                self.schedule_creation(&reference);
            }
            VmState::Updating | VmState::Succeeded | VmState::Failed(_) | VmState::Deleting => {
                vm.state = VmState::Updating;
                self.vm_after(SOON, &reference, VmEvent::UpdateEnds);
            }
        }
        let reply = Reply::json(200, vm_model(&self.vms[&key]));
        Ok(self.follow(call, reply, &operation, false))
    }

    /// Checks a new VM and determines its outcome.
    pub(crate) fn new_vm(&mut self, id: Id, body: &Value) -> Result<Vm, ArmError> {
        let location = location(body)?;
        let properties = &body["properties"];
        let size = size_of(properties)?;
        let os = os_of(properties);
        check_login(properties, os)?;
        self.check_image(properties)?;
        let nics = self.nics_of(&id, properties)?;
        for nic in &nics {
            self.reserve_nic(&nic.id.key(), &id)?;
        }
        let image_version = image_version(&properties["storageProfile"]["imageReference"]);
        let tags = body["tags"].clone();
        let (boot, refusal) = self.fate(&Subject {
            name: id.name(),
            image_version: image_version.as_deref(),
            size: size.name,
            region: &location,
            tags: &tags,
        });
        if let Some(Refusal { status: Some(status), code, message, target }) = refusal.clone() {
            return Err(ArmError { status, code, message, target, gateway: false });
        }
        let disk = os_disk(&id, properties);
        if self.disks.get(&disk.id.key()).is_some_and(|disk| disk.is_alone) {
            return Err(disk_exists(&disk.id));
        }
        let vm = Vm {
            vm_id: self.seed.of(&format!("vm/{}/{}", id.key().0, self.now)).uuid(),
            created: self.now,
            zones: body.get("zones").cloned().unwrap_or(Value::Null),
            tags,
            properties: without_secrets(properties),
            further: ["identity", "plan", "extendedLocation"]
                .iter()
                .filter_map(|key| Some(((*key).to_owned(), body.get(*key)?.clone())))
                .collect(),
            custom_data: text(properties, "/osProfile/customData").unwrap_or_default().to_owned(),
            user_data: text(properties, "/userData").map(str::to_owned),
            size,
            os,
            image_version,
            state: VmState::Creating,
            power: Power::Off,
            agent: Agent::Absent,
            booted: None,
            boots: 0,
            boot,
            fails_with: refusal.map(|refusal| ArmError {
                status: 409,
                code: refusal.code,
                message: refusal.message,
                target: refusal.target,
                gateway: false,
            }),
            extensions: BTreeMap::new(),
            run_commands: BTreeMap::new(),
            runs: 0,
            result: None,
            console: Vec::new(),
            joined: None,
            operation: None,
            nics,
            disk,
            scale_set: text(properties, "/virtualMachineScaleSet/id").and_then(Id::parse),
            location,
            id,
        };
        self.refuse_restricted(&vm)?;
        self.refuse_over_quota(&vm)?;
        Ok(Vm { fails_with: vm.fails_with.clone().or_else(|| self.capacity_refusal(&vm)), ..vm })
    }

    /// Stores an accepted VM.
    pub(crate) fn create_vm(&mut self, mut vm: Vm, operation: Option<OperationId>) {
        vm.operation = operation;
        for nic in &vm.nics {
            if let Some(found) = self.nics.get_mut(&nic.id.key()) {
                found.vm = Some(vm.id.clone());
            }
        }
        self.journal.state(self.now, &vm.id.tail, "creating");
        let reference = vm.reference();
        let evicted = vm.boot.evicted_after;
        self.vms.insert(vm.id.key(), vm);
        self.schedule_creation(&reference);
        if let Some(after) = evicted {
            self.vm_after(after.0, &reference, VmEvent::Evicted);
        }
    }

    fn schedule_creation(&mut self, reference: &crate::event::VmRef) {
        let vm = &self.vms[&reference.key];
        let name = format!("vm-ready/{}/{}", vm.vm_id, self.now);
        let (low, high) = if vm.size.gpus > 0 { (120.0, 300.0) } else { (20.0, 60.0) };
        let drawn =
            vm.boot.vm_ready_after.map_or_else(|| self.lasts(&name, low, high), |span| span.0);
        let fails_early = vm.fails_with.is_some();
        let ready = match vm.boot.os {
            _ if fails_early => self.lasts(&name, 5.0, 15.0),
            OsOutcome::Ready => drawn,
            OsOutcome::TimesOut | OsOutcome::TimesOutThenReady => Duration::from_mins(20),
            OsOutcome::ClientError => Duration::from_mins(5),
            OsOutcome::InternalError => Duration::from_mins(2),
        };
        self.vm_after(SOON, reference, VmEvent::DiskAppears);
        if !fails_early {
            self.vm_after(Duration::from_secs(5).min(ready), reference, VmEvent::PowersOn);
        }
        self.vm_after(ready, reference, VmEvent::CreateEnds);
    }

    /// The outcome of a VM, according to the first matching rule.
    fn fate(&mut self, subject: &Subject<'_>) -> (Boot, Option<Refusal>) {
        for (index, rule) in self.scenario.rules.iter().enumerate() {
            if !rule.when.fits(subject) {
                continue;
            }
            let nth = self.rules_met[index];
            self.rules_met[index] += 1;
            let chance = self.seed.of(&format!("rule/{index}/{nth}")).chance();
            if rule.when.chosen(nth, chance) {
                return (rule.boot.clone(), rule.refuse.clone());
            }
        }
        (Boot::default(), None)
    }

    fn nics_of(&self, vm: &Id, properties: &Value) -> Result<Vec<Attached>, ArmError> {
        let listed =
            properties.pointer("/networkProfile/networkInterfaces").and_then(Value::as_array);
        let mut nics = Vec::new();
        for item in listed.into_iter().flatten() {
            let id = text(item, "/id").unwrap_or_default();
            let nic = Id::parse(id)
                .and_then(|id| self.nics.get(&id.key()))
                .ok_or_else(|| invalid_reference(id, vm))?;
            if let Some(other) = nic.vm.as_ref().filter(|other| other.key() != vm.key()) {
                let message =
                    format!("Network Interface {} is used by existing VM {other}.", nic.id);
                return Err(ArmError::new(400, "NicInUse", message));
            }
            nics.push(Attached { id: nic.id.clone(), delete: deletes(&item["properties"]) });
        }
        Ok(nics)
    }

    /// The new disk is attached to the VM.
    pub(crate) fn disk_appears(&mut self, reference: &crate::event::VmRef) {
        let vm = &self.vms[&reference.key];
        let theirs = self.disks.get(&vm.disk.id.key()).filter(|disk| disk.is_alone);
        if theirs.is_some() {
            let taken = disk_exists(&vm.disk.id);
            if let Some(vm) = self.vms.get_mut(&reference.key) {
                vm.disk.delete = false;
                vm.fails_with = Some(taken);
            }
            return;
        }
        let disk = crate::resources::disk::Disk {
            id: vm.disk.id.clone(),
            created: self.now,
            location: vm.location.clone(),
            tags: vm.tags.clone(),
            size_gib: vm.properties["storageProfile"]["osDisk"]["diskSizeGB"]
                .as_u64()
                .unwrap_or(128),
            zones: vm.zones.clone(),
            vm: Some(vm.id.clone()),
            operation: None,
            is_alone: false,
        };
        self.disks.insert(disk.id.key(), disk);
    }

    /// The error if the scenario has no capacity for another VM of this size, in this zone and at this time.
    fn capacity_refusal(&self, vm: &Vm) -> Option<ArmError> {
        let zone = vm.zones[0].as_str();
        let short = self.scenario.capacity.iter().find(|capacity| {
            !capacity.restricted
                && capacity.size.eq_ignore_ascii_case(vm.size.name)
                && capacity.region.eq_ignore_ascii_case(&vm.location)
                && (capacity.zone.is_none() || capacity.zone.as_deref() == zone)
                && capacity.until.is_none_or(|until| self.now < later(self.began, until.0))
        })?;
        let in_use = self
            .vms
            .values()
            .filter(|other| {
                other.vm_id != vm.vm_id
                    && other.size == vm.size
                    && other.location == vm.location
                    && (short.zone.is_none() || other.zones[0].as_str() == zone)
                    && other.booted.is_some()
            })
            .count();
        (in_use >= short.available as usize).then(|| {
            let (code, place) = match zone {
                Some(_) => ("ZonalAllocationFailed", "zone"),
                None => ("AllocationFailed", "region"),
            };
            let message = format!("Allocation failed. We do not have sufficient capacity for the requested VM size in this {place}. Read more about improving likelihood of allocation success at http://aka.ms/allocation-guidance");
            ArmError::new(409, code, message)
        })
    }

    fn refuse_restricted(&self, vm: &Vm) -> Result<(), ArmError> {
        if !self.is_restricted(&vm.location, vm.size.name) {
            return Ok(());
        }
        let message = format!(
            "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: {}' is currently not available in location '{}'. Please try another size or deploy to a different location or different zone. See https://aka.ms/azureskunotavailable for details.",
            vm.size.name, vm.location
        );
        Err(ArmError::new(409, "SkuNotAvailable", message))
    }

    pub(crate) fn is_restricted(&self, location: &str, size: &str) -> bool {
        self.scenario.capacity.iter().any(|capacity| {
            capacity.restricted
                && capacity.region.eq_ignore_ascii_case(location)
                && capacity.size.eq_ignore_ascii_case(size)
        })
    }
}

/// A disk can be created from an image only under an unused name.
fn disk_exists(disk: &Id) -> ArmError {
    let message = format!(
        "Disk {} already exists in resource group {}. Only CreateOption.Attach is supported.",
        disk.name(),
        disk.group
    );
    ArmError::new(409, "ConflictingUserInput", message).target(disk.name())
}

fn size_of(properties: &Value) -> Result<&'static Size, ArmError> {
    let name = text(properties, "/hardwareProfile/vmSize").unwrap_or_default();
    Size::find(name).ok_or_else(|| {
        let message = format!("The value {name} provided for the VM size is not valid. The valid sizes in the current region are listed by the SKUs API.");
        ArmError::new(400, "InvalidParameter", message).target("vmSize")
    })
}

fn os_of(properties: &Value) -> Os {
    let windows = !properties["osProfile"]["windowsConfiguration"].is_null()
        || text(properties, "/storageProfile/osDisk/osType")
            .is_some_and(|os| os.eq_ignore_ascii_case("Windows"));
    if windows { Os::Windows } else { Os::Linux }
}

fn check_login(properties: &Value, os: Os) -> Result<(), ArmError> {
    let profile = &properties["osProfile"];
    let keys = profile.pointer("/linuxConfiguration/ssh/publicKeys/0").is_some();
    let password = profile["adminPassword"].is_string();
    if os == Os::Windows || keys || password || profile.is_null() {
        return Ok(());
    }
    let message = "Authentication using either SSH or by user name and password must be enabled in Linux profile.";
    Err(ArmError::new(400, "InvalidParameter", message).target("linuxConfiguration"))
}

fn os_disk(vm: &Id, properties: &Value) -> Attached {
    let disk = &properties["storageProfile"]["osDisk"];
    let attached = |name: &str, delete| Attached {
        id: vm.beside(format!("Microsoft.Compute/disks/{name}")),
        delete,
    };
    // The name of an instance in a uniform scale set is a number, and its disk is deleted with it.
    if let [_, _, set, _, instance] = vm.tail.split('/').collect::<Vec<_>>()[..] {
        return attached(&format!("{set}_{instance}_OsDisk_1"), true);
    }
    let name = text(disk, "/name").map_or_else(|| format!("{}_OsDisk_1", vm.name()), str::to_owned);
    attached(&name, deletes(disk))
}

fn deletes(options: &Value) -> bool {
    options["deleteOption"].as_str().is_some_and(|word| word.eq_ignore_ascii_case("Delete"))
}

/// The version at the end of an image's ID, or the requested version.
fn image_version(reference: &Value) -> Option<String> {
    ["communityGalleryImageId", "sharedGalleryImageId", "id"]
        .iter()
        .filter_map(|key| reference[*key].as_str())
        .find_map(|id| id.to_ascii_lowercase().split("/versions/").nth(1).map(str::to_owned))
        .or_else(|| {
            text(reference, "/exactVersion")
                .or_else(|| text(reference, "/version"))
                .map(str::to_owned)
        })
}

/// The VM properties that Azure returns: never passwords, customData or userData.
fn without_secrets(properties: &Value) -> Value {
    let mut properties = if properties.is_object() { properties.clone() } else { json!({}) };
    withhold(&mut properties, "", &["userData"]);
    withhold(&mut properties, "/osProfile", &["adminPassword", "customData"]);
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_an_image_is_found_wherever_it_stands() {
        let community = json!({ "communityGalleryImageId": "/CommunityGalleries/g/images/V3gen2/versions/202601.27.0" });
        let plain = json!({ "publisher": "p", "version": "latest" });
        assert_eq!(image_version(&community).as_deref(), Some("202601.27.0"));
        assert_eq!(image_version(&plain).as_deref(), Some("latest"));
        assert_eq!(image_version(&Value::Null), None);
    }

    #[test]
    fn secrets_never_come_back() {
        let put = json!({ "osProfile": { "computerName": "a", "adminPassword": "x", "customData": "y" }, "userData": "z" });
        assert_eq!(without_secrets(&put), json!({ "osProfile": { "computerName": "a" } }));
    }
}
