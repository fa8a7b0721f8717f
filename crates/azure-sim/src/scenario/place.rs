//! What exists in Azure before anybody asks: subnets, core limits, capacity.

use serde::Deserialize;

use super::Span;

/// A subnet with a finite pool of addresses.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Subnet {
    /// Its resource group.
    pub resource_group: String,
    /// Its virtual network.
    pub virtual_network: String,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub location: String,
    /// Its IPv4 prefix; five addresses of it belong to Azure.
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

/// An image of the marketplace.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MarketplaceImage {
    /// Who publishes it.
    pub publisher: String,
    /// Its offer.
    pub offer: String,
    /// Its plan.
    pub sku: String,
    /// Its versions.
    pub versions: Vec<String>,
}

/// A limit of virtual cores in a region.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Quota {
    /// The region.
    pub region: String,
    /// A family such as `standardDSv5Family`, or `cores` (all), or `lowPriorityCores` (spot).
    pub family: String,
    /// How many cores may be in use.
    pub limit: u32,
}

/// How many VMs of a size a region or zone can still hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capacity {
    /// The region.
    pub region: String,
    /// One zone of it; all of them when absent.
    #[serde(default)]
    pub zone: Option<String>,
    /// The VM size.
    pub size: String,
    /// How many fit; further ones are accepted and then fail to be allocated.
    #[serde(default)]
    pub available: u32,
    /// The size is not offered at all: refused on the PUT, and listed as restricted.
    #[serde(default)]
    pub restricted: bool,
    /// From this long after the start on, there is no limit any more.
    #[serde(default)]
    pub until: Option<Span>,
}
