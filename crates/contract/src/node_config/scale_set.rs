//! The body of an ARM request that creates a scale set.

use serde_json::{Value, json};

use super::custom_data::NodeBootstrapping;
use super::derived::on_one_line;
use super::{Configuration, environment::Environment, environment::Host};

/// The body of the request: CustomData, and the extension that waits for the result. The caller adds the
/// image, disks, network and SSH keys.
pub fn scale_set(config: &Configuration, made: &NodeBootstrapping, capacity: u32) -> Value {
    let environment = Environment::of(config, &Host::default()).ok();
    let admin = environment.as_ref().and_then(|all| all.get("ADMINUSER")).unwrap_or("azureuser");
    json!({
        "location": on_one_line(&config.cluster_config().location),
        "sku": { "name": config.vm_size, "capacity": capacity },
        "properties": {
            "virtualMachineProfile": {
                "osProfile": { "adminUsername": admin, "customData": made.custom_data },
                "extensionProfile": {
                    "extensions": [{
                        "name": "vmssCSE",
                        "properties": {
                            "publisher": "Microsoft.Azure.Extensions",
                            "type": "CustomScript",
                            "typeHandlerVersion": "2.0",
                            "autoUpgradeMinorVersion": true,
                            "settings": {},
                            "protectedSettings": { "commandToExecute": made.cse },
                        },
                    }],
                },
            },
        },
    })
}
