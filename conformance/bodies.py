"""Request bodies of the conformance run: NIC, VM, extension and scale set, as a provisioner sends them."""

SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
SUBNET = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-net/providers"
    "/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes"
)
CUSTOM_DATA = "I2Nsb3VkLWNvbmZpZwo="
LINUX = {
    "disablePasswordAuthentication": True,
    "ssh": {"publicKeys": [{"path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-rsa AAAA"}]},
}
CUSTOM_SCRIPT = {
    "publisher": "Microsoft.Azure.Extensions",
    "type": "CustomScript",
    "typeHandlerVersion": "2.0",
    "autoUpgradeMinorVersion": True,
    "settings": {},
    "protectedSettings": {"commandToExecute": "/opt/azure/containers/provision.sh"},
}
IP_CONFIGURATIONS = [{"name": "ip", "properties": {"subnet": {"id": SUBNET}}}]


def image(version):
    return (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-images/providers"
        f"/Microsoft.Compute/galleries/AKSUbuntu/images/2204gen2/versions/{version}"
    )


def nic():
    return {
        "location": "eastus",
        "tags": {"purpose": "conformance"},
        "properties": {"ipConfigurations": IP_CONFIGURATIONS},
    }


def vm(name, nic_id, size, version):
    return {
        "location": "eastus",
        "tags": {"purpose": "conformance"},
        "properties": {
            "hardwareProfile": {"vmSize": size},
            "storageProfile": {
                "imageReference": {"id": image(version)},
                "osDisk": {"createOption": "FromImage", "deleteOption": "Delete"},
            },
            "osProfile": {
                "computerName": name,
                "adminUsername": "azureuser",
                "customData": CUSTOM_DATA,
                "linuxConfiguration": LINUX,
            },
            "networkProfile": {
                "networkInterfaces": [{"id": nic_id, "properties": {"deleteOption": "Delete"}}]
            },
            "diagnosticsProfile": {"bootDiagnostics": {"enabled": True}},
        },
    }


def extension():
    return {"location": "eastus", "properties": CUSTOM_SCRIPT}


def scale_set(name, size, capacity, version):
    network = {"primary": True, "ipConfigurations": IP_CONFIGURATIONS}
    return {
        "location": "eastus",
        "sku": {"name": size, "capacity": capacity},
        "properties": {
            "orchestrationMode": "Uniform",
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "osProfile": {
                    "computerNamePrefix": name,
                    "adminUsername": "azureuser",
                    "customData": CUSTOM_DATA,
                    "linuxConfiguration": LINUX,
                },
                "storageProfile": {
                    "imageReference": {"id": image(version)},
                    "osDisk": {"createOption": "FromImage"},
                },
                "networkProfile": {
                    "networkInterfaceConfigurations": [{"name": "nic", "properties": network}]
                },
                "extensionProfile": {"extensions": [{"name": "vmssCSE", "properties": CUSTOM_SCRIPT}]},
            },
        },
    }
