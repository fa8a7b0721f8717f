//! VMs as Karpenter's Azure provider requests them from ARM.

use crate::SUBSCRIPTION;
use serde_json::{Value, json};

/// The properties of a requested VM.
#[derive(Debug, Clone)]
pub struct Order {
    /// The version of the image.
    pub image_version: String,
    /// Windows instead of Linux.
    pub windows: bool,
    /// Whether the serial console is stored.
    pub console: bool,
    /// The CustomData of the VM, in base64.
    pub custom_data: Option<String>,
    /// The command of the extension.
    pub command: String,
}

impl Default for Order {
    fn default() -> Self {
        Self::of("202601.13.0")
    }
}

impl Order {
    /// A Linux VM with this image.
    pub fn of(image_version: &str) -> Self {
        Self {
            image_version: image_version.to_owned(),
            windows: false,
            console: false,
            custom_data: None,
            command: "/opt/azure/containers/provision.sh".to_owned(),
        }
    }

    /// Requests Windows instead of Linux.
    #[must_use]
    pub fn windows(mut self) -> Self {
        self.windows = true;
        self
    }

    /// Requests boot diagnostics, too.
    #[must_use]
    pub fn with_console(mut self) -> Self {
        self.console = true;
        self
    }

    /// Sets CustomData, and the command of the extension that waits for its result.
    #[must_use]
    pub fn bootstrapped(mut self, custom_data: &str, command: &str) -> Self {
        self.custom_data = Some(custom_data.to_owned());
        command.clone_into(&mut self.command);
        self
    }

    /// The ID of the image.
    pub fn image(&self) -> String {
        let definition = if self.windows { "windows-2022-containerd" } else { "V3gen2" };
        format!(
            "/CommunityGalleries/AKSAzureLinux/images/{definition}/versions/{}",
            self.image_version
        )
    }

    pub(crate) fn nic(pool: &str) -> Value {
        let subnet = format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes"
        );
        json!({
            "location": "eastus",
            "tags": tags(pool),
            "properties": { "ipConfigurations": [{ "name": "ipconfig", "properties": { "subnet": { "id": subnet } } }] },
        })
    }

    pub(crate) fn vm(&self, name: &str, pool: &str, nic: &str) -> Value {
        let profile = if self.windows {
            json!({
                "computerName": name,
                "adminUsername": "azureuser",
                "adminPassword": "replaced-by-the-provider",
                "windowsConfiguration": { "enableAutomaticUpdates": false },
            })
        } else {
            json!({
                "computerName": name,
                "adminUsername": "azureuser",
                "linuxConfiguration": { "ssh": { "publicKeys": [{ "path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAA" }] } },
            })
        };
        let mut vm = json!({
            "location": "eastus",
            "zones": ["1"],
            "tags": tags(pool),
            "properties": {
                "hardwareProfile": { "vmSize": "Standard_D4s_v5" },
                "storageProfile": {
                    "imageReference": { "communityGalleryImageId": self.image() },
                    "osDisk": { "name": name, "createOption": "FromImage", "deleteOption": "Delete" },
                },
                "osProfile": profile,
                "networkProfile": { "networkInterfaces": [{
                    "id": nic,
                    "properties": { "primary": true, "deleteOption": "Delete" },
                }] },
            },
        });
        if let Some(custom_data) = &self.custom_data {
            vm["properties"]["osProfile"]["customData"] = json!(custom_data);
        }
        if self.console {
            vm["properties"]["diagnosticsProfile"] =
                json!({ "bootDiagnostics": { "enabled": true } });
        }
        vm
    }

    pub(crate) fn extension(&self) -> Value {
        let (publisher, kind) = if self.windows {
            ("Microsoft.Compute", "CustomScriptExtension")
        } else {
            ("Microsoft.Azure.Extensions", "CustomScript")
        };
        json!({
            "location": "eastus",
            "properties": {
                "publisher": publisher,
                "type": kind,
                "typeHandlerVersion": "2.0",
                "protectedSettings": { "commandToExecute": self.command },
            },
        })
    }

    pub(crate) fn machine(&self) -> Value {
        json!({ "zones": ["1"], "properties": {
            "hardware": { "vmSize": "Standard_D4s_v5" },
            "nodeImageVersion": format!("AKSAzureLinux-V3gen2-{}", self.image_version),
        } })
    }
}

fn tags(pool: &str) -> Value {
    json!({ "karpenter.azure.com_cluster": "aks1", "karpenter.sh_nodepool": pool })
}
