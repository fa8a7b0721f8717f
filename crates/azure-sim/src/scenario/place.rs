//! The initial contents of Azure: subnets, quotas, capacity.

use serde::Deserialize;

use super::Span;

/// A subnet with a finite pool of addresses.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Subnet {
    /// The resource group of the virtual network.
    pub resource_group: String,
    /// The name of the virtual network.
    pub virtual_network: String,
    /// The name of the subnet.
    pub name: String,
    /// The region.
    pub location: String,
    /// The IPv4 prefix; Azure reserves five of its addresses.
    pub prefix: String,
}

impl Default for Subnet {
    fn default() -> Self {
        Self {
            resource_group: "rg-net".to_owned(),
            virtual_network: "vnet1".to_owned(),
            name: "nodes".to_owned(),
            location: "eastus".to_owned(),
            prefix: "10.1.0.0/16".to_owned(),
        }
    }
}

/// A marketplace image.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MarketplaceImage {
    /// The publisher.
    pub publisher: String,
    /// The offer.
    pub offer: String,
    /// The SKU, also called plan.
    pub sku: String,
    /// The versions that exist.
    pub versions: Vec<String>,
}

/// A quota of virtual cores in a region.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Quota {
    /// The region.
    pub region: String,
    /// A family such as `standardDSv5Family`, or `cores` (all), or `lowPriorityCores` (spot).
    pub family: String,
    /// The number of cores that may be in use.
    pub limit: u32,
}

/// The number of VMs of a size that a region or zone can still hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capacity {
    /// The region.
    pub region: String,
    /// One zone of the region; all zones when absent.
    #[serde(default)]
    pub zone: Option<String>,
    /// The VM size.
    pub size: String,
    /// The number of VMs that fit. Further VMs are accepted, but their allocation fails.
    #[serde(default)]
    pub available: u32,
    /// The size is not offered: the PUT is refused, and the SKU list shows it as restricted.
    #[serde(default)]
    pub restricted: bool,
    /// The limit ends this long after the start.
    #[serde(default)]
    pub until: Option<Span>,
}
