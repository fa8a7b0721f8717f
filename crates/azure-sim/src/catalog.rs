//! The VM sizes this Azure offers, with their regions and zones.

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::exchange::{Call, Reply};

#[derive(Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) name: &'static str,
    pub(crate) family: &'static str,
    pub(crate) cores: u32,
    memory_gib: u32,
    pub(crate) gpus: u32,
    architecture: &'static str,
}

const fn size(name: &'static str, family: &'static str, cores: u32, memory_gib: u32) -> Size {
    Size { name, family, cores, memory_gib, gpus: 0, architecture: "x64" }
}

const fn gpu(
    name: &'static str,
    family: &'static str,
    cores: u32,
    memory_gib: u32,
    gpus: u32,
) -> Size {
    Size { name, family, cores, memory_gib, gpus, architecture: "x64" }
}

const SIZES: &[Size] = &[
    size("Standard_B2s", "standardBSFamily", 2, 4),
    size("Standard_D2s_v5", "standardDSv5Family", 2, 8),
    size("Standard_D4s_v5", "standardDSv5Family", 4, 16),
    size("Standard_D8s_v5", "standardDSv5Family", 8, 32),
    size("Standard_D16s_v5", "standardDSv5Family", 16, 64),
    size("Standard_D32s_v5", "standardDSv5Family", 32, 128),
    size("Standard_D64s_v5", "standardDSv5Family", 64, 256),
    size("Standard_D2as_v5", "standardDASv5Family", 2, 8),
    size("Standard_D4as_v5", "standardDASv5Family", 4, 16),
    size("Standard_D8as_v5", "standardDASv5Family", 8, 32),
    size("Standard_E4s_v5", "standardESv5Family", 4, 32),
    size("Standard_E8s_v5", "standardESv5Family", 8, 64),
    size("Standard_F4s_v2", "standardFSv2Family", 4, 8),
    size("Standard_F8s_v2", "standardFSv2Family", 8, 16),
    Size { architecture: "Arm64", ..size("Standard_D4ps_v5", "standardDPSv5Family", 4, 16) },
    gpu("Standard_NC24ads_A100_v4", "StandardNCADSA100v4Family", 24, 220, 1),
    gpu("Standard_NC96ads_A100_v4", "StandardNCADSA100v4Family", 96, 880, 4),
    gpu("Standard_ND96isr_H100_v5", "standardNDISRH100V5Family", 96, 1900, 8),
    gpu("Standard_ND96isr_H200_v5", "standardNDISRH200V5Family", 96, 1850, 8),
];

const ZONES: [&str; 3] = ["1", "2", "3"];

impl Size {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        SIZES.iter().find(|size| size.name.eq_ignore_ascii_case(name))
    }

    fn sku(&self, location: &str, restricted: bool) -> Value {
        let capability = |name: &str, value: String| json!({ "name": name, "value": value });
        let restrictions = if restricted {
            json!([{
                "type": "Location",
                "values": [location],
                "restrictionInfo": { "locations": [location] },
                "reasonCode": "NotAvailableForSubscription",
            }])
        } else {
            json!([])
        };
        json!({
            "resourceType": "virtualMachines",
            "name": self.name,
            "tier": "Standard",
            "size": self.name.trim_start_matches("Standard_"),
            "family": self.family,
            "locations": [location],
            "locationInfo": [{ "location": location, "zones": ZONES, "zoneDetails": [] }],
            "capabilities": [
                capability("vCPUs", self.cores.to_string()),
                capability("MemoryGB", self.memory_gib.to_string()),
                capability("GPUs", self.gpus.to_string()),
                capability("CpuArchitectureType", self.architecture.to_owned()),
                capability("HyperVGenerations", "V1,V2".to_owned()),
                capability("PremiumIO", "True".to_owned()),
                capability("LowPriorityCapable", "True".to_owned()),
                capability("AcceleratedNetworkingEnabled", "True".to_owned()),
                capability("EncryptionAtHostSupported", "True".to_owned()),
            ],
            "restrictions": restrictions,
        })
    }
}

impl Azure {
    pub(crate) fn get_skus(&self, call: &Call<'_>) -> Reply {
        let filter = call.query("$filter").unwrap_or_default();
        let asked = filter.split('\'').nth(1).map(str::to_ascii_lowercase);
        let locations: Vec<String> = match asked {
            Some(location) => vec![location],
            None => vec!["eastus".to_owned(), "eastus2".to_owned(), "westus3".to_owned()],
        };
        let items = locations
            .iter()
            .flat_map(|location| {
                SIZES.iter().map(|size| size.sku(location, self.is_restricted(location, size.name)))
            })
            .collect();
        Reply::list(items, None)
    }
}
