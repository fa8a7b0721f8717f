//! Finds orphaned resources in Azure and deletes them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use bringup_azure::arm::{Verb, Write};
use bringup_azure::id::Name;
use bringup_azure::{Arm, ArmError, Priority, ResourceId};
use jiff::Timestamp;
use serde_json::Value;

use super::kinds::{COMPUTE, DISKS, NETWORK, api_version, deletion};
use super::proof::{ReadError, foreign, foreign_companion, read};
use crate::names::{CREATED, MACHINE_UID};
use crate::ownership::{Identity, Ownership, owns, vm_id};
use crate::sweep::{Kind, Orphan, Owners, Resource, is_ours, plan};

/// The result of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// The orphaned resources.
    pub orphans: Vec<Orphan>,
    /// Orphaned resources whose deletion Azure accepted.
    pub deleted: Vec<String>,
    /// Orphaned resources that were not deleted, and why.
    pub refused: Vec<(String, String)>,
}

/// Finds and deletes orphaned resources. For resources without a creation time, remembers when it first saw
/// them.
pub struct Sweeper {
    arm: Arm,
    cluster: String,
    seen: Mutex<HashMap<String, Timestamp>>,
}

impl Sweeper {
    /// A sweeper for the resources with the tag of this cluster.
    pub fn new(arm: Arm, cluster: &str) -> Self {
        Self { arm, cluster: cluster.to_owned(), seen: Mutex::default() }
    }

    /// Lists the resources of a resource group. The caller must list the machines afterwards.
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
            // The next sweep finds resources that this list does not show.
            let (values, _) =
                self.arm.list(subscription, group, name, version, Priority::Schedule).await?;
            found.extend(values.iter().filter_map(|value| self.resource(kind, value, now)));
        }
        Ok(found)
    }

    /// The number of this cluster's resources.
    pub fn ours(&self, resources: &[Resource]) -> usize {
        resources.iter().filter(|resource| is_ours(resource, &self.cluster)).count()
    }

    /// Deletes orphaned resources. With `dry`, only finds them.
    pub async fn sweep(
        &self,
        resources: &[Resource],
        owners: &Owners,
        now: Timestamp,
        dry: bool,
    ) -> Swept {
        let orphans = plan(resources, owners, &self.cluster, now);
        let mut swept = Swept { orphans, ..Swept::default() };
        if dry {
            return swept;
        }
        for orphan in &swept.orphans {
            let listed = resources.iter().find(|resource| resource.id == orphan.id);
            match self.delete(orphan, listed, now).await {
                Ok(()) => swept.deleted.push(orphan.id.clone()),
                Err(why) => swept.refused.push((orphan.id.clone(), why)),
            }
        }
        swept
    }

    /// Deletes an orphan, if it is still the listed resource and still proven to be this cluster's.
    async fn delete(
        &self,
        orphan: &Orphan,
        listed: Option<&Resource>,
        now: Timestamp,
    ) -> Result<(), String> {
        let text = |error: ReadError| error.to_string();
        let Some(body) = read(&self.arm, orphan.kind, &orphan.id).await.map_err(text)? else {
            return Ok(());
        };
        let fresh = self.resource(orphan.kind, &body, now);
        let is_same = fresh.zip(listed).is_some_and(|(fresh, listed)| {
            (&fresh.tags, &fresh.vm_id, fresh.used) == (&listed.tags, &listed.vm_id, listed.used)
        });
        let (Some(listed), true) = (listed, is_same) else {
            return Err("it has changed since it was listed, and is not deleted".to_owned());
        };
        let identity = Identity {
            cluster: &self.cluster,
            machine: orphan.machine.as_deref().unwrap_or_default(),
            uid: listed.tags.get(MACHINE_UID).map(String::as_str),
            vm_id: listed.vm_id.as_deref(),
        };
        if let Ownership::Foreign(why) = owns(orphan.kind, &body, &identity) {
            return Err(foreign(orphan.kind, &orphan.id, &why));
        }
        if orphan.kind == Kind::Vm
            && let Some(what) =
                foreign_companion(&self.arm, &body, &identity).await.map_err(text)?
        {
            return Err(what);
        }
        let resource: ResourceId = orphan.id.parse().map_err(|error| format!("{error}"))?;
        let (query, condition) = deletion(orphan.kind, &body);
        let write = Write {
            verb: Verb::Delete,
            resource: &resource,
            action: None,
            api_version: api_version(orphan.kind),
            query,
            body: None,
        };
        match self.arm.start_if(&write, condition).await {
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
        let created = created.and_then(|time| time.parse().ok()).filter(|time| *time <= now);
        let since = created.unwrap_or_else(|| {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            *seen.entry(id.to_ascii_lowercase()).or_insert(now)
        });
        let used = match kind {
            Kind::Vm => true,
            Kind::Nic => properties["virtualMachine"]["id"].is_string(),
            Kind::Disk => value["managedBy"].is_string(),
        };
        let vm_id = (kind == Kind::Vm).then(|| vm_id(value).unwrap_or_default().to_owned());
        Some(Resource { id, kind, tags, since, used, vm_id })
    }
}
