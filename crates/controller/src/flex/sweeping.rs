//! The sweep of all resource groups that classes name.

use std::collections::BTreeSet;
use std::time::Duration;

use bringup_azure::id::Name;
use bringup_flex::engine::{Bootstrap, vm_id};
use bringup_flex::sweep::Resource;
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::flex::machine::Phase;
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use tracing::{info, warn};

use super::{Flex, Key};

/// Lists are up to half a minute late; this is more.
const LISTED: SignedDuration = SignedDuration::from_mins(2);
/// How often it is swept.
const EACH: SignedDuration = SignedDuration::from_mins(5);

impl<B: Bootstrap> Flex<B> {
    pub(super) async fn sweep_for_ever(&self) {
        loop {
            let groups = self.groups();
            for (subscription, group) in &groups {
                if let Err(why) = self.sweep(subscription, group).await {
                    // One group's trouble is not another's.
                    warn!(group, why, "the resource group could not be swept");
                }
            }
            self.metrics.swept_all(|group| groups.contains(group));
            let due = self.clock.now() + EACH;
            tokio::select! {
                () = self.clock.reach(due) => {}
                // A clock that stands still is asked again.
                () = tokio::time::sleep(Duration::from_hours(1)) => {}
            }
        }
    }

    /// Where anything of ours may be: where classes say, and where machines were made.
    fn groups(&self) -> BTreeSet<(String, String)> {
        let index = self.index();
        let of_classes = index.classes.values().map(|class| {
            let spec = &class.spec;
            (spec.subscription_id.to_ascii_lowercase(), spec.resource_group.to_ascii_lowercase())
        });
        let of_machines = index.machines.values().filter_map(|machine| machine.group.clone());
        of_classes.chain(of_machines).collect()
    }

    async fn sweep(&self, subscription: &str, group: &str) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let subscription: Name = subscription.parse().map_err(|error| said(&error))?;
        let group: Name = group.parse().map_err(|error| said(&error))?;
        let now = self.clock.now();
        let resources =
            self.sweeper.list(&subscription, &group, now).await.map_err(|error| said(&error))?;
        // After Azure: what was made in between has its machine.
        let machines: Api<AzureFlexMachine> = Api::all(self.client.clone());
        let machines = machines.list(&ListParams::default()).await.map_err(|error| said(&error))?;
        self.doubt(&resources, &machines.items, (&subscription, &group), now);
        let machines: BTreeSet<String> =
            machines.items.iter().map(kube::ResourceExt::name_any).collect();
        let swept = self.sweeper.sweep(&resources, &machines, now, false).await;
        for leak in &swept.leaks {
            info!(id = leak.id, age = %leak.age, "nobody wants it");
        }
        for (id, why) in &swept.refused {
            warn!(id, why, "it could not be removed");
        }
        let removed = swept.removed.len() as u64;
        let place = (subscription.to_string(), group.to_string());
        self.metrics.swept(place, swept.leaks.len(), removed);
        if removed > 0 {
            let counted = self.ledger.update(|page| {
                page.tally.swept += removed;
                true
            });
            counted.await.map_err(|error| said(&error))?;
        }
        Ok(())
    }

    /// A machine that runs and whose VM is not in the list is looked for: somebody may have removed
    /// it.
    fn doubt(
        &self,
        resources: &[Resource],
        machines: &[AzureFlexMachine],
        (subscription, group): (&Name, &Name),
        now: Timestamp,
    ) {
        let listed: BTreeSet<String> =
            resources.iter().map(|resource| resource.id.to_ascii_lowercase()).collect();
        for machine in machines {
            let Some(status) = &machine.status else { continue };
            let Some(place) = &status.place else { continue };
            let is_old = status.completed_at.as_ref().is_some_and(|at| at.0 + LISTED < now);
            let id = vm_id(place).to_ascii_lowercase();
            if *subscription != *place.subscription_id || *group != *place.resource_group {
                continue;
            }
            if status.phase == Phase::Running && is_old && !listed.contains(&id) {
                let name = machine.name_any();
                self.engine.doubt(&name);
                self.agenda.plan_now(Key::Machine(name));
            }
        }
    }
}
