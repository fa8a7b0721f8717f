//! Subnets, each with a finite pool of addresses.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::json;

use crate::azure::Azure;
use crate::exchange::{ArmError, Reply};
use crate::resources::not_found;
use crate::route::{Id, Key};
use crate::scenario;

/// A subnet and the addresses that NICs use.
#[derive(Debug)]
pub(crate) struct Subnet {
    pub(crate) name: String,
    pub(crate) location: String,
    prefix: String,
    first: u32,
    size: u32,
    used: BTreeSet<u32>,
    next: u32,
}

/// The number of addresses that Azure reserves at the start of each subnet; it reserves one at the end too.
const KEPT_AT_START: u32 = 4;
const KEPT: u32 = 5;

impl Subnet {
    /// Reads a subnet of the scenario; a prefix that cannot be parsed gives an empty pool.
    pub(crate) fn new(subnet: &scenario::Subnet) -> Self {
        let (address, length) = subnet.prefix.split_once('/').unwrap_or((&subnet.prefix, "32"));
        let address: u32 = address.parse::<Ipv4Addr>().map_or(0, u32::from);
        let length: u32 = length.parse().unwrap_or(32);
        Self {
            name: subnet.name.clone(),
            location: subnet.location.clone(),
            prefix: subnet.prefix.clone(),
            first: address + KEPT_AT_START,
            size: 1_u32
                .checked_shl(32 - length.clamp(1, 32))
                .unwrap_or(u32::MAX)
                .saturating_sub(KEPT),
            used: BTreeSet::new(),
            next: 0,
        }
    }

    pub(crate) fn key(subscription: &str, subnet: &scenario::Subnet) -> Key {
        let tail = format!(
            "Microsoft.Network/virtualNetworks/{}/subnets/{}",
            subnet.virtual_network, subnet.name
        );
        Id::new(subscription, &subnet.resource_group, tail).key()
    }

    pub(crate) fn take(&mut self) -> Result<Ipv4Addr, ArmError> {
        let free = (0..self.size)
            .map(|step| self.first + (self.next + step) % self.size)
            .find(|address| !self.used.contains(address))
            .ok_or_else(|| {
                let message = format!(
                    "Subnet {} with address prefix {} does not have enough capacity for 1 IP addresses.",
                    self.name, self.prefix
                );
                ArmError::new(400, "SubnetIsFull", message)
            })?;
        self.used.insert(free);
        self.next = (free - self.first + 1) % self.size;
        Ok(free.into())
    }

    pub(crate) fn give_back(&mut self, address: Ipv4Addr) {
        self.used.remove(&address.into());
    }
}

impl Azure {
    pub(crate) fn get_subnet(&mut self, id: &Id) -> Result<Reply, ArmError> {
        let subnet = self.subnet(&id.key()).ok_or_else(|| not_found(id))?;
        Ok(Reply::json(
            200,
            json!({
                "name": subnet.name,
                "id": id.to_string(),
                "type": "Microsoft.Network/virtualNetworks/subnets",
                "properties": { "provisioningState": "Succeeded", "addressPrefix": subnet.prefix },
            }),
        ))
    }

    pub(crate) fn get_virtual_network(&self, id: &Id) -> Result<Reply, ArmError> {
        let found = self.scenario.subnets.iter().find(|subnet| {
            subnet.resource_group.eq_ignore_ascii_case(&id.group)
                && subnet.virtual_network.eq_ignore_ascii_case(id.name())
        });
        let network = found.ok_or_else(|| not_found(id))?;
        Ok(Reply::json(
            200,
            json!({
                "name": network.virtual_network,
                "id": id.to_string(),
                "type": "Microsoft.Network/virtualNetworks",
                "location": network.location,
                "properties": { "provisioningState": "Succeeded" },
            }),
        ))
    }

    /// The subnets of the scenario exist in every subscription, each with a pool of its own.
    pub(crate) fn subnet(&mut self, key: &Key) -> Option<&mut Subnet> {
        if !self.subnets.contains_key(key) {
            let subscription = key.0.split('/').nth(2)?.to_owned();
            let found = self
                .scenario
                .subnets
                .iter()
                .find(|subnet| Subnet::key(&subscription, subnet) == *key)?;
            self.subnets.insert(key.clone(), Subnet::new(found));
        }
        self.subnets.get_mut(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_gives_its_addresses_but_five_and_then_is_full() {
        let mut subnet = Subnet::new(&scenario::Subnet {
            prefix: "10.2.0.0/29".to_owned(),
            ..scenario::Subnet::default()
        });
        let taken: Vec<String> = (0..3).map(|_| subnet.take().unwrap().to_string()).collect();
        assert_eq!(taken, ["10.2.0.4", "10.2.0.5", "10.2.0.6"]);
        assert_eq!(subnet.take().unwrap_err().code, "SubnetIsFull");
        subnet.give_back("10.2.0.5".parse().unwrap());
        assert_eq!(subnet.take().unwrap().to_string(), "10.2.0.5");
    }
}
