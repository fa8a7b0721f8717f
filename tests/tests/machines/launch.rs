//! Machines, and the objects that the provider creates for them.

use anyhow::{Context as _, Result, ensure};
use bringup_end_to_end::SUBNET;
use bringup_objects::cluster_api::{POOL_LABEL, vm_name};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::common::{ManagementCluster, SUBSCRIPTION};

/// The kind of scale set that contains a machine's VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// No scale set: the machine is an `AzureMachine`.
    Vm,
    /// A scale set; the VM is an instance below it.
    Uniform,
    /// A scale set; the VM is a resource of its own beside it.
    Flexible,
    /// An infrastructure machine of an unknown provider.
    Strange,
}

/// The properties of a machine.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    pub(crate) os: &'a str,
    pub(crate) form: Form,
    /// Whether the provider has set the id of the VM.
    pub(crate) is_said: bool,
    pub(crate) console: bool,
    /// The user's storage account that holds the console. Without it, the platform stores the console.
    pub(crate) storage: Option<&'a str>,
    /// The tag by which rules of the scenario select the VM.
    pub(crate) case: &'a str,
    /// The name of the machine's cluster.
    pub(crate) cluster: &'a str,
    /// Whether the bootstrap provider has delivered the bootstrap data.
    pub(crate) has_data: bool,
    /// The kind of the bootstrap provider's object, if the test sets it.
    pub(crate) config: Option<&'a str>,
    /// The names of the VM's extensions, which are also their types.
    pub(crate) extensions: &'a [&'a str],
}

impl<'a> Wanted<'a> {
    pub(crate) fn linux(name: &'a str) -> Self {
        let (os, form) = ("Linux", Form::Vm);
        let (is_said, console, storage, case, cluster) = (true, true, None, "", "prod");
        let (has_data, config, extensions) = (true, None, &[][..]);
        Self {
            name,
            os,
            form,
            is_said,
            console,
            storage,
            case,
            cluster,
            has_data,
            config,
            extensions,
        }
    }

    fn kind(&self) -> &'static str {
        match self.form {
            Form::Vm => "AzureMachine",
            Form::Uniform | Form::Flexible => "AzureMachinePoolMachine",
            Form::Strange => "OtherMachine",
        }
    }

    fn extension(name: &str) -> Value {
        let publisher = match name {
            "CustomScript" => "Microsoft.Azure.Extensions",
            "CustomScriptExtension" => "Microsoft.Compute",
            _ => "Microsoft.Azure.ContainerUpstream",
        };
        json!({
            "name": name, "location": "eastus",
            "properties": { "publisher": publisher, "type": name, "typeHandlerVersion": "1.0", "settings": {} },
        })
    }

    fn os_profile(&self) -> Value {
        let mut profile = json!({ "adminUsername": "capi", "customData": "I2Nsb3VkLWNvbmZpZwo=" });
        if self.os == "Windows" {
            profile["adminPassword"] = json!("x-Y-9-long-enough");
            profile["windowsConfiguration"] = json!({});
        } else {
            let key =
                json!({ "path": "/home/capi/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAA" });
            profile["linuxConfiguration"] =
                json!({ "disablePasswordAuthentication": true, "ssh": { "publicKeys": [key] } });
        }
        profile
    }

    fn storage(&self, vm: &str) -> Value {
        json!({
            "imageReference": { "publisher": "cncf-upstream", "offer": "capi", "sku": "ubuntu-2404", "version": "1.34.2" },
            "osDisk": { "name": format!("{vm}-osdisk"), "createOption": "FromImage", "osType": self.os },
        })
    }
}

impl ManagementCluster {
    /// Creates a Machine, the provider's object behind it, and its VM.
    pub(crate) async fn launch(&self, wanted: Wanted<'_>) -> Result<()> {
        let id = match wanted.form {
            Form::Vm | Form::Strange => self.put_vm(wanted)?,
            Form::Uniform | Form::Flexible => self.put_scale_set(wanted)?,
        };
        let id = wanted.is_said.then(|| format!("azure://{id}"));
        self.create_machine(wanted, id.as_deref()).await
    }

    /// Creates a Machine and the provider's object behind it, for the VM with this id.
    pub(crate) async fn create_machine(&self, wanted: Wanted<'_>, id: Option<&str>) -> Result<()> {
        let Wanted { name, cluster, .. } = wanted;
        let now = Time(self.azure.clock().now());
        if wanted.form != Form::Strange {
            self.provide(wanted, id, &now).await?;
        }
        // The Machine of a scale set's instance shows nothing of the VM before its Node exists.
        let is_pooled = matches!(wanted.form, Form::Uniform | Form::Flexible);
        let mut bootstrap = json!({});
        if wanted.has_data {
            bootstrap["dataSecretName"] = json!(if is_pooled { "" } else { "never-read" });
        }
        let own = id.filter(|_| !is_pooled);
        // A Machine needs at least one of the two: the name of its data Secret or a reference to its
        // configuration.
        if let Some(kind) = wanted.config.or((!wanted.has_data).then_some("KubeadmConfig")) {
            let group = "bootstrap.cluster.x-k8s.io";
            bootstrap["configRef"] = json!({ "apiGroup": group, "kind": kind, "name": name });
        }
        let mut reference = json!({ "kind": wanted.kind(), "name": name });
        let group = "infrastructure.cluster.x-k8s.io";
        match self.version {
            "v1beta1" => reference["apiVersion"] = json!(format!("{group}/v1beta1")),
            _ => reference["apiGroup"] = json!(group),
        }
        let machine = json!({
            "apiVersion": format!("cluster.x-k8s.io/{}", self.version), "kind": "Machine",
            "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": cluster } },
            "spec": { "clusterName": cluster, "providerID": own,
                      "bootstrap": bootstrap, "infrastructureRef": reference },
        });
        let machine = serde_json::from_value(machine)?;
        let made = self.machines().create(&PostParams::default(), &machine).await;
        made.context("create the Machine")?;
        if wanted.is_said && !is_pooled {
            let mut status = json!({ "status": {
                "conditions": [{ "type": "InfrastructureReady", "status": "True", "reason": "Ready", "message": "it is there", "lastTransitionTime": now }] } });
            if self.version == "v1beta1" {
                status["status"]["infrastructureReady"] = json!(true);
            } else {
                let made = json!({ "infrastructureProvisioned": true });
                status["status"]["initialization"] = made;
            }
            let patch = Patch::Merge(&status);
            self.machines().patch_status(name, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    /// Creates the provider's object behind a Machine.
    pub(crate) async fn provide(
        &self,
        wanted: Wanted<'_>,
        id: Option<&str>,
        now: &Time,
    ) -> Result<()> {
        let Wanted { name, os, form, .. } = wanted;
        let (api, spec) = match form {
            Form::Vm => {
                let disk = json!({ "osType": os, "diskSizeGB": 128 });
                let spec = json!({ "vmSize": "Standard_D4s_v5", "sshPublicKey": "", "providerID": id, "osDisk": disk });
                (self.provided(), spec)
            }
            Form::Uniform | Form::Flexible | Form::Strange => {
                let number = id.and_then(|id| id.rsplit('/').next()).unwrap_or_default();
                (self.pooled(), json!({ "providerID": id, "instanceID": number }))
            }
        };
        let mut provided = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": wanted.kind(),
            "metadata": { "name": name }, "spec": spec,
        });
        if form != Form::Vm {
            // The pool has the name of its scale set.
            provided["metadata"]["labels"] = json!({ POOL_LABEL: name });
        }
        let made = api.create(&PostParams::default(), &serde_json::from_value(provided)?).await;
        made.with_context(|| format!("create the {}", wanted.kind()))?;
        let theirs = json!({ "status": { "ready": id.is_some(), "conditions": [
            { "type": "Ready", "status": "True", "reason": "Ready", "message": "it is", "lastTransitionTime": now },
            { "type": "VMRunning", "status": "True", "reason": "Running", "message": "it is", "lastTransitionTime": now },
        ] } });
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(&theirs)).await?;
        Ok(())
    }

    /// The provider's resource group in Azure.
    pub(crate) fn providers(&self) -> String {
        format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-{}/providers", self.namespace)
    }

    pub(crate) fn put_vm(&self, wanted: Wanted<'_>) -> Result<String> {
        let vm = vm_name(wanted.name, wanted.os == "Windows");
        let base = self.providers();
        let arm = self.arm();
        let mut diagnostics = json!({ "enabled": wanted.console });
        if let Some(storage) = wanted.storage {
            diagnostics["storageUri"] = json!(storage);
        }
        let nic = arm.put_nic(&base, &format!("{vm}-nic"))?;
        let mut profile = wanted.os_profile();
        profile["computerName"] = json!(vm);
        let id = format!("{base}/Microsoft.Compute/virtualMachines/{vm}");
        arm.put(
            &id,
            &json!({
                "location": "eastus",
                "tags": { "case": wanted.case },
                "properties": {
                    "hardwareProfile": { "vmSize": "Standard_D4s_v5" },
                    "storageProfile": wanted.storage(&vm),
                    "osProfile": profile,
                    "networkProfile": { "networkInterfaces": [{ "id": nic }] },
                    "diagnosticsProfile": { "bootDiagnostics": diagnostics },
                },
            }),
        )?;
        for name in wanted.extensions {
            let extension = Wanted::extension(name);
            let response = arm.send("PUT", &format!("{id}/extensions/{name}"), Some(&extension))?;
            ensure!(response.status < 300, "{name} on {id}: {}", response.body);
        }
        Ok(id)
    }

    /// Creates a scale set with one instance, and returns the id of the instance.
    fn put_scale_set(&self, wanted: Wanted<'_>) -> Result<String> {
        let (set, arm) = (wanted.name, self.arm());
        let id = format!("{}/Microsoft.Compute/virtualMachineScaleSets/{set}", self.providers());
        let mut profile = wanted.os_profile();
        profile["computerNamePrefix"] = json!(set);
        let extensions: Vec<Value> =
            wanted.extensions.iter().map(|name| Wanted::extension(name)).collect();
        let is_flexible = wanted.form == Form::Flexible;
        arm.put(&id, &json!({
            "location": "eastus",
            "tags": { "case": wanted.case },
            "sku": { "name": "Standard_D4s_v5", "capacity": 1 },
            "properties": {
                "orchestrationMode": if is_flexible { "Flexible" } else { "Uniform" },
                "virtualMachineProfile": {
                    "osProfile": profile,
                    "storageProfile": wanted.storage(set),
                    "networkProfile": { "networkInterfaceConfigurations": [{
                        "name": "nic",
                        "properties": { "ipConfigurations": [{ "name": "ip", "properties": { "subnet": { "id": SUBNET } } }] },
                    }] },
                    "diagnosticsProfile": { "bootDiagnostics": { "enabled": wanted.console } },
                    "extensionProfile": { "extensions": extensions },
                },
            },
        }))?;
        let instances = arm.get(&format!("{id}/virtualMachines"))?;
        let instance = instances.body["value"][0]["id"].as_str();
        Ok(instance.with_context(|| format!("an instance: {}", instances.body))?.to_owned())
    }
}
