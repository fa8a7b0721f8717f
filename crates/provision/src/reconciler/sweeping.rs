//! The sweep: deletes orphaned resources in the resource groups of all classes and machines.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bringup_azure::id::Name;
use bringup_flex::audit::{Audit, QuotaRow, is_of_interest};
use bringup_flex::class::Class;
use bringup_flex::engine::Bootstrap;
use bringup_flex::ids::vm_id;
use bringup_flex::machine::Memory;
use bringup_flex::sweep::{Owners, Resource};
use bringup_flex::time::later;
use bringup_objects::NodeClaim;
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::flex::machine::Phase;
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use tracing::{info, warn};

use super::flex::{Flex, Key};

/// The age at which a VM must appear in a list: lists are up to half a minute late.
const LISTED: SignedDuration = SignedDuration::from_mins(2);
/// The pause while classes and machines have not been listed yet.
const UNLISTED: SignedDuration = SignedDuration::from_secs(5);
/// The pause between two sweeps.
const EACH: SignedDuration = SignedDuration::from_mins(5);

impl<B: Bootstrap> Flex<B> {
    pub(super) async fn sweep_for_ever(&self) {
        loop {
            self.sweep_all().await;
            let wait = if self.is_listed() { EACH } else { UNLISTED };
            let due = later(self.clock.now(), wait);
            tokio::select! {
                () = self.clock.reach(due) => {}
                // Read the clock again in case it stands still.
                () = tokio::time::sleep(Duration::from_hours(1)) => {}
            }
        }
    }

    async fn sweep_all(&self) {
        // Until classes and machines have been listed, not all resource groups are known.
        if !self.is_listed() {
            return;
        }
        let mut audit = Audit { cluster: self.cluster.clone(), ..Audit::default() };
        let groups = self.groups();
        for (subscription, group) in &groups {
            let parsed = (subscription.parse::<Name>(), group.parse::<Name>());
            let (Ok(subscription), Ok(group)) = parsed else { continue };
            if let Err(why) = self.sweep(&subscription, &group, &mut audit).await {
                // The sweep continues with the other groups.
                warn!(resource_group = %group, error = why, "cannot sweep resource group");
                audit.miss(&group, &why);
            }
        }
        self.metrics.swept_all(|group| groups.contains(group));
        for (subscription, region) in self.regions() {
            let quotas = self.inquiries.quotas(&subscription, &region).await;
            let quotas = quotas.into_iter().filter(|quota| is_of_interest(&quota.name));
            audit.quotas.extend(quotas.map(|quota| QuotaRow {
                subscription: subscription.clone(),
                region: region.clone(),
                name: quota.name,
                used: quota.used,
                limit: quota.limit,
            }));
        }
        audit.at = Some(self.clock.now());
        let stored = self.ledger.update(|content| {
            content.audit = audit.clone();
            true
        });
        if let Err(error) = stored.await {
            warn!(%error, "sweep result not stored in the ledger");
        }
    }

    fn is_listed(&self) -> bool {
        let index = self.index();
        index.classes_are_listed && index.machines_are_listed
    }

    fn regions(&self) -> BTreeSet<(String, String)> {
        let index = self.index();
        let classes = index.classes.values().filter_map(|class| Class::of(&class.spec).ok());
        classes.map(|class| (class.subscription, class.location)).collect()
    }

    /// The resource groups that may contain our resources: those of classes and machines.
    fn groups(&self) -> BTreeSet<(String, String)> {
        let index = self.index();
        let of_classes = index.classes.values().map(|class| {
            let spec = &class.spec;
            (spec.subscription_id.to_ascii_lowercase(), spec.resource_group.to_ascii_lowercase())
        });
        let of_machines = index.machines.values().filter_map(|machine| machine.group.clone());
        of_classes.chain(of_machines).collect()
    }

    async fn sweep(
        &self,
        subscription: &Name,
        group: &Name,
        audit: &mut Audit,
    ) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let now = self.clock.now();
        let resources =
            self.sweeper.list(subscription, group, now).await.map_err(|error| text(&error))?;
        // Machines are listed after Azure, so that a resource that was created in between has its machine in
        // the list.
        let machines: Api<AzureFlexMachine> = Api::all(self.client.clone());
        let machines = machines.list(&ListParams::default()).await.map_err(|error| text(&error))?;
        self.check_missing_vms(&resources, &machines.items, (subscription, group), now);
        let claims = self.claims_that_exist().await.map_err(|error| text(&error))?;
        let machines = machines.items.iter().map(kube::ResourceExt::name_any).collect();
        let cluster_uid = Some(self.cluster_uid().await.map_err(|error| text(&error))?);
        let owners = Owners { machines, claims, cluster_uid };
        let swept = self.sweeper.sweep(&resources, &owners, now, false).await;
        audit.add(self.sweeper.ours(&resources), &swept.orphans);
        for orphan in &swept.orphans {
            info!(id = orphan.id, resource_group = %group, age = %orphan.age, "deleting orphaned resource");
        }
        for (id, why) in &swept.refused {
            warn!(id, resource_group = %group, why, "orphaned resource not deleted");
        }
        let deleted = swept.deleted.len() as u64;
        let place = (subscription.to_string(), group.to_string());
        self.metrics.swept(place, swept.orphans.len(), deleted);
        if deleted > 0 {
            let counted = self.ledger.update(|content| {
                content.tally.swept += deleted;
                true
            });
            counted.await.map_err(|error| text(&error))?;
        }
        Ok(())
    }

    /// The uids of all existing claims; none if Karpenter is not installed.
    async fn claims_that_exist(&self) -> kube::Result<BTreeSet<String>> {
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        match claims.list_metadata(&ListParams::default()).await {
            Ok(found) => Ok(found.items.iter().filter_map(kube::ResourceExt::uid).collect()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        }
    }

    /// Schedules a read of the VM of a running machine if the list does not show that VM: another client may
    /// have deleted the VM.
    fn check_missing_vms(
        &self,
        resources: &[Resource],
        machines: &[AzureFlexMachine],
        (subscription, group): (&Name, &Name),
        now: Timestamp,
    ) {
        let listed: BTreeMap<String, Option<&str>> = resources
            .iter()
            .map(|resource| (resource.id.to_ascii_lowercase(), resource.vm_id.as_deref()))
            .collect();
        for machine in machines {
            let Some(status) = &machine.status else { continue };
            let Some(place) = &status.place else { continue };
            let is_old = status.completed_at.as_ref().is_some_and(|at| later(at.0, LISTED) < now);
            let id = vm_id(place).to_ascii_lowercase();
            if *subscription != *place.subscription_id || *group != *place.resource_group {
                continue;
            }
            let stored = status.vm_id.as_deref();
            // A VM of the same name with another vmId was created later.
            let is_listed = listed.get(&id).is_some_and(|found| {
                found.zip(stored).is_none_or(|(found, stored)| found.eq_ignore_ascii_case(stored))
            });
            if status.phase == Phase::Running && is_old && !is_listed {
                let name = machine.name_any();
                self.memory().keep_machine(&name, Memory::vm_not_listed());
                self.agenda.plan_now(Key::Machine(name));
            }
        }
    }
}
