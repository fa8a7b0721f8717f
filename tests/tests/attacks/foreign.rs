//! Resources of another team under the names of machines.

use anyhow::{Context as _, Result, ensure};
use bringup_azure_sim::azure::Azure;
use bringup_end_to_end::SUBSCRIPTION;
use bringup_flex::machine::READY;
use bringup_flex::names;
use bringup_objects::condition::find;
use bringup_objects::flex::AzureFlexMachine;
use bringup_testbed::wait::until_object;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::super::takes_long;
use super::flex::{GROUP, SIZE, SUBNET, create_machine, machines};
use super::installed::Installed;

const VM: &str = "Microsoft.Compute/virtualMachines";
const NIC: &str = "Microsoft.Network/networkInterfaces";
const DISK: &str = "Microsoft.Compute/disks";

/// A resource of another team.
pub(super) struct Plant {
    machine: String,
    name: String,
    path: String,
    version: &'static str,
    body: Value,
    /// The number of requests to Azure before the resource existed.
    since: usize,
}

fn path(kind: &str, name: &str) -> (String, &'static str) {
    let version = match kind {
        NIC => "2024-05-01",
        DISK => "2024-03-02",
        _ => "2024-11-01",
    };
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}");
    (format!("{group}/providers/{kind}/{name}"), version)
}

fn foreign_body(kind: &str, name: &str, tags: &Value) -> Value {
    let ip = json!({ "name": "ip", "properties": { "subnet": { "id": SUBNET } } });
    let properties = match kind {
        NIC => json!({ "ipConfigurations": [ip] }),
        DISK => json!({ "diskSizeGB": 64 }),
        _ => json!({
            "hardwareProfile": { "vmSize": SIZE },
            "storageProfile": {
                "imageReference": { "publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2204", "version": "22.04.2026011301" },
                "osDisk": { "name": format!("theirs-{name}"), "createOption": "FromImage", "deleteOption": "Delete" },
            },
        }),
    };
    json!({ "location": "eastus2", "tags": tags, "properties": properties })
}

impl Plant {
    fn new(
        installed: &Installed,
        machine: &str,
        kind: &str,
        name: &str,
        tags: &Value,
    ) -> Result<Self> {
        let (path, version) = path(kind, name);
        let arm = installed.bed.arm();
        let address = format!("{path}?api-version={version}");
        let made = arm.put(&address, &foreign_body(kind, name, tags))?;
        arm.finish(&made)?;
        let body = arm.get(&address)?.body;
        ensure!(body["tags"] == *tags, "{body}");
        Ok(Self {
            machine: machine.to_owned(),
            name: name.to_owned(),
            path: path.to_ascii_lowercase(),
            version,
            body,
            since: installed.requests(0).len(),
        })
    }

    /// Checks that no request tried to write or delete the resource, and that the resource is unchanged.
    fn is_untouched(&self, installed: &Installed) -> Result<()> {
        for request in installed.requests(self.since) {
            let to = request.path.split('?').next().unwrap_or_default();
            ensure!(request.method == "GET" || to != self.path, "{request:?}");
        }
        let found = installed.bed.arm().get(&format!("{}?api-version={}", self.path, self.version));
        let found = found?.body;
        for field in ["/tags", "/properties/vmId"] {
            ensure!(found.pointer(field) == self.body.pointer(field), "{}: {found}", self.name);
        }
        Ok(())
    }
}

/// Creates machines while their controller is down, and for each a resource of another team under one of
/// its names.
pub(super) async fn plant(installed: &Installed) -> Result<Vec<Plant>> {
    let namespaces: Api<Namespace> = Api::all(installed.admin());
    let cluster = namespaces.get("kube-system").await?.uid().context("a uid")?;
    let of_a_cluster = json!({ "bringup-managed-by": "bringup", "bringup-cluster": "another" });
    let mut planted = Vec::new();
    for (machine, kind, tags) in [
        ("taken-vm", VM, json!({ "team": "blue" })),
        ("taken-nic", NIC, of_a_cluster),
        ("taken-disk", DISK, json!({ "team": "blue" })),
    ] {
        let uid = create_machine(installed, machine, None).await?.uid().context("a uid")?;
        let vm = names::vm(machine, &names::suffix(&cluster, &uid));
        let name = match kind {
            NIC => names::nic(&vm),
            DISK => names::disk(&vm),
            _ => vm,
        };
        planted.push(Plant::new(installed, machine, kind, &name, &tags)?);
    }
    Ok(planted)
}

/// Waits until the `Ready` condition of a machine reports the foreign resource.
async fn foreign_resource_is_reported(installed: &Installed, plant: &Plant) -> Result<()> {
    let ready = |machine: &AzureFlexMachine| {
        let conditions = machine.status.as_ref().map_or(&[][..], |status| &status.conditions);
        find(conditions, READY).cloned()
    };
    let is_foreign = |machine: Option<&AzureFlexMachine>| {
        let ready = machine.and_then(ready);
        ready.is_some_and(|one| one.status == "False" && one.reason == "ForeignResource")
    };
    let what = format!("ForeignResource on {}", plant.machine);
    let machine = until_object(machines(installed), &plant.machine, &what, is_foreign).await?;
    let message = machine.as_ref().and_then(ready).map(|one| one.message).unwrap_or_default();
    ensure!(message.contains(&plant.name), "{message}");
    Ok(())
}

async fn delete(installed: &Installed, machine: &str) -> Result<()> {
    machines(installed).delete(machine, &DeleteParams::default()).await?;
    let is_gone = |machine: Option<&AzureFlexMachine>| machine.is_none();
    let what = format!("{machine} to be released");
    until_object(machines(installed), machine, &what, is_gone).await?;
    Ok(())
}

pub(super) async fn are_left_alone(installed: &Installed, planted: &[Plant]) -> Result<()> {
    // Azure reserves a NIC for three minutes: machines with a NIC of their own are released only after
    // that.
    let is_long = takes_long("the release of machines whose VM or disk is foreign");
    for plant in planted {
        foreign_resource_is_reported(installed, plant).await?;
        if is_long || plant.path.contains("networkinterfaces") {
            delete(installed, &plant.machine).await?;
        } else {
            machines(installed).delete(&plant.machine, &DeleteParams::default()).await?;
        }
    }
    are_untouched(installed, planted)
}

pub(super) fn are_untouched(installed: &Installed, planted: &[Plant]) -> Result<()> {
    planted.iter().try_for_each(|plant| plant.is_untouched(installed))
}

/// Another team removes the VM of a machine and makes one with the same name and tags.
pub(super) async fn replace(installed: &Installed, machine: &str) -> Result<Plant> {
    let place = machines(installed).get(machine).await?.status.and_then(|status| status.place);
    let vm = place.context("it has a place")?.vm;
    let (path, version) = path(VM, &vm);
    let address = format!("{path}?api-version={version}");
    let arm = installed.bed.arm();
    let tags = arm.get(&address)?.body["tags"].clone();
    let deleted = arm.delete(&address)?;
    arm.finish(&deleted)?;
    let path = path.to_ascii_lowercase();
    let exists =
        |azure: &mut Azure| azure.resources().iter().any(|one| one.id.to_ascii_lowercase() == path);
    installed.bed.azure_when("the end of the VM", exists, |exists| !exists).await?;
    Plant::new(installed, machine, VM, &vm, &tags)
}

pub(super) async fn is_left_alone_when_its_machine_goes(
    installed: &Installed,
    machine: &str,
    plant: &Plant,
) -> Result<()> {
    delete(installed, machine).await?;
    plant.is_untouched(installed)
}
