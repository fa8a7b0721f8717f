//! `bringup flex sweep`: deletes orphaned Azure resources.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use bringup_azure::budget::Limits;
use bringup_azure::clock::WallClock;
use bringup_azure::id::Name;
use bringup_flex::audit::word;
use bringup_flex::engine::{Sweeper, Swept};
use bringup_flex::sweep::Owners;
use bringup_objects::flex::LEDGER;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_provision::LedgerContent;
use jiff::Timestamp;
use kube::ResourceExt;

use super::{SweepArguments, unseen};
use crate::cluster::{self, Cluster};
use crate::failure::{Exit, Failure};
use crate::program::Program;
use crate::{output, table};

/// Deletes orphaned resources, or lists them in a dry run.
pub(super) fn run(typed: SweepArguments, program: Program) -> Result<Exit, Failure> {
    let arm = typed.azure.arm(Limits::default(), Arc::new(WallClock))?;
    let dry = typed.dry_run;
    let text = cluster::run(async {
        let cluster = Cluster::find(&typed.cluster.into(), program).await?;
        let kept = cluster.config_map(&typed.system_namespace, LEDGER).await.map_err(unseen)?;
        let known = LedgerContent::of(kept.as_ref()).audit.cluster;
        let id = typed.flex_cluster.unwrap_or(known);
        if id.is_empty() {
            return Err(Failure::error(
                "the cluster ID in the tags of Azure resources is not known",
            )
            .hint("set --flex-cluster to the value of the controller's --flex-cluster"));
        }
        let classes = cluster.classes().await.map_err(unseen)?;
        let before = cluster.machines().await.map_err(unseen)?;
        let cluster_uid = cluster.uid().await.map_err(unseen)?;
        let sweeper = Sweeper::new(arm, &id);
        let mut all = Swept::default();
        for (subscription, group) in groups(&classes, &before)? {
            let now = Timestamp::now();
            let found = sweeper.list(&subscription, &group, now).await.map_err(|error| {
                Failure::error(format!("cannot list resource group {group}"))
                    .detail(error.to_string())
            })?;
            // Listed after Azure: a resource that was created in between then has its machine in the list.
            let machines = cluster.machines().await.map_err(unseen)?;
            let machines = machines.iter().map(ResourceExt::name_any).collect();
            let claims = cluster.claim_uids().await.map_err(unseen)?;
            let owners = Owners { machines, claims, cluster_uid: cluster_uid.clone() };
            let swept = sweeper.sweep(&found, &owners, now, dry).await;
            all.orphans.extend(swept.orphans);
            all.deleted.extend(swept.deleted);
            all.refused.extend(swept.refused);
        }
        Ok(told(&all, &id, dry))
    })?;
    output::answer(&text)?;
    Ok(Exit::Fine)
}

/// The resource groups to search: the groups of classes and of machines.
fn groups(
    classes: &[AzureFlexNodeClass],
    machines: &[AzureFlexMachine],
) -> Result<BTreeSet<(Name, Name)>, Failure> {
    let of_classes = classes
        .iter()
        .map(|class| (class.spec.subscription_id.clone(), class.spec.resource_group.clone()));
    let of_machines = machines.iter().filter_map(|machine| {
        let place = machine.status.as_ref()?.place.as_ref()?;
        Some((place.subscription_id.clone(), place.resource_group.clone()))
    });
    let name = |text: &str| {
        text.to_ascii_lowercase()
            .parse::<Name>()
            .map_err(|error| Failure::error(format!("`{text}` is not a valid Azure name: {error}")))
    };
    let all = of_classes.chain(of_machines);
    all.map(|(subscription, group)| Ok((name(&subscription)?, name(&group)?))).collect()
}

fn told(swept: &Swept, cluster: &str, dry: bool) -> String {
    if swept.orphans.is_empty() {
        return format!("Found no orphaned resources of cluster {cluster} in Azure.\n");
    }
    let rows: Vec<Vec<String>> = swept
        .orphans
        .iter()
        .map(|leak| {
            let refused = swept.refused.iter().find(|(id, _)| *id == leak.id);
            let what = match refused {
                _ if dry => "would be deleted".to_owned(),
                Some((_, why)) => format!("refused: {why}"),
                None => "deleting".to_owned(),
            };
            let machine = leak.machine.clone().unwrap_or_else(|| "-".to_owned());
            vec![
                word(leak.kind).to_owned(),
                leak.id.rsplit('/').next().unwrap_or_default().to_owned(),
                machine,
                table::age(leak.age),
                what,
            ]
        })
        .collect();
    let mut text = table::columns(&["KIND", "NAME", "MACHINE", "AGE", ""], &rows);
    let count = swept.orphans.len();
    let end = if dry { "nothing was deleted" } else { "most deletions take about a minute" };
    let _ = writeln!(text, "\n{count} orphaned resources of cluster {cluster}; {end}.");
    text
}
