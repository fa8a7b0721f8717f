//! Finds in Azure what nobody wants any more, and removes it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use bringup_azure::arm::{Verb, Write};
use bringup_azure::id::Name;
use bringup_azure::{Arm, ArmError, Priority, ResourceId};
use jiff::Timestamp;
use serde_json::Value;

use super::cloud::{COMPUTE, DISKS, NETWORK};
use crate::names::CREATED;
use crate::sweep::{Kind, Leak, Resource, Wanted, is_ours, plan};

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// What nobody wants.
    pub leaks: Vec<Leak>,
    /// Those whose removal Azure has accepted.
    pub removed: Vec<String>,
    /// Those it has not, and why.
    pub refused: Vec<(String, String)>,
}

/// Finds and removes. It remembers since when it has seen what Azure gives no time for.
pub struct Sweeper {
    arm: Arm,
    cluster: String,
    seen: Mutex<HashMap<String, Timestamp>>,
}

impl Sweeper {
    /// For what bears the tag of this cluster.
    pub fn new(arm: Arm, cluster: &str) -> Self {
        Self { arm, cluster: cluster.to_owned(), seen: Mutex::default() }
    }

    /// Lists what is in a resource group. Machines have to be listed after this.
    pub async fn list(
        &self,
        subscription: &Name,
        group: &Name,
        now: Timestamp,
    ) -> Result<Vec<Resource>, ArmError> {
        let kinds = [
            (Kind::Vm, "Microsoft.Compute/virtualMachines", COMPUTE),
            (Kind::Nic, "Microsoft.Network/networkInterfaces", NETWORK),
            (Kind::Disk, "Microsoft.Compute/disks", DISKS),
        ];
        let mut found = Vec::new();
        for (kind, name, version) in kinds {
            // What a list does not show is found by the next.
            let (values, _) =
                self.arm.list(subscription, group, name, version, Priority::Schedule).await?;
            found.extend(values.iter().filter_map(|value| self.resource(kind, value, now)));
        }
        Ok(found)
    }

    /// How many of them are this cluster's.
    pub fn ours(&self, resources: &[Resource]) -> usize {
        resources.iter().filter(|resource| is_ours(resource, &self.cluster)).count()
    }

    /// Removes what nobody wants. With `dry`, nothing is removed.
    pub async fn sweep(
        &self,
        resources: &[Resource],
        wanted: &Wanted,
        now: Timestamp,
        dry: bool,
    ) -> Swept {
        let leaks = plan(resources, wanted, &self.cluster, now);
        let mut swept = Swept { leaks, ..Swept::default() };
        if dry {
            return swept;
        }
        for leak in &swept.leaks {
            match self.remove(leak).await {
                Ok(()) => swept.removed.push(leak.id.clone()),
                Err(why) => swept.refused.push((leak.id.clone(), why)),
            }
        }
        swept
    }

    async fn remove(&self, leak: &Leak) -> Result<(), String> {
        let resource: ResourceId = leak.id.parse().map_err(|error| format!("{error}"))?;
        let (api_version, query): (_, &[(&str, &str)]) = match leak.kind {
            Kind::Vm => (COMPUTE, &[("forceDeletion", "true")]),
            Kind::Nic => (NETWORK, &[]),
            Kind::Disk => (DISKS, &[]),
        };
        let write = Write {
            verb: Verb::Delete,
            resource: &resource,
            action: None,
            api_version,
            query,
            body: None,
        };
        match self.arm.start(&write).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn resource(&self, kind: Kind, value: &Value, now: Timestamp) -> Option<Resource> {
        let id = value["id"].as_str()?.to_owned();
        let tags = value["tags"].as_object();
        let tags: BTreeMap<String, String> = tags
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect();
        let properties = &value["properties"];
        let created = properties["timeCreated"].as_str();
        let created = created.or_else(|| tags.get(CREATED).map(String::as_str));
        let created = created.and_then(|time| time.parse().ok());
        let since = created.unwrap_or_else(|| {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            *seen.entry(id.to_ascii_lowercase()).or_insert(now)
        });
        let used = match kind {
            Kind::Vm => true,
            Kind::Nic => properties["virtualMachine"]["id"].is_string(),
            Kind::Disk => value["managedBy"].is_string(),
        };
        Some(Resource { id, kind, tags, since, used })
    }
}
