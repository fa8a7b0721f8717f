//! The sweep of all resource groups that classes name.

use std::collections::BTreeSet;
use std::time::Duration;

use bringup_azure::id::Name;
use bringup_flex::engine::Bootstrap;
use bringup_objects::flex::AzureFlexMachine;
use jiff::SignedDuration;
use kube::Api;
use kube::api::ListParams;
use tracing::{info, warn};

use super::Flex;

/// How often it is swept.
const EACH: SignedDuration = SignedDuration::from_mins(5);

impl<B: Bootstrap> Flex<B> {
    pub(super) async fn sweep_for_ever(&self) {
        loop {
            for (subscription, group) in self.groups() {
                if let Err(why) = self.sweep(&subscription, &group).await {
                    // One group's trouble is not another's.
                    warn!(group, why, "the resource group could not be swept");
                }
            }
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
        let of_class = index.classes.values().map(|class| {
            (
                class.spec.subscription_id.to_ascii_lowercase(),
                class.spec.resource_group.to_ascii_lowercase(),
            )
        });
        of_class.collect()
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
        let machines: BTreeSet<String> =
            machines.items.iter().map(kube::ResourceExt::name_any).collect();
        let swept = self.sweeper.sweep(&resources, &machines, now, false).await;
        for leak in &swept.leaks {
            info!(id = leak.id, age = %leak.age, "nobody wants it");
        }
        for (id, why) in &swept.refused {
            warn!(id, why, "it could not be removed");
        }
        Ok(())
    }
}
