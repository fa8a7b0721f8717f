//! `bringup flex status`: machines, VM sizes that Azure has refused, quotas, and a count of deleted machines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bringup_flex::audit::Audit;
use bringup_flex::backoff::BackOff;
use bringup_flex::tally::Tally;
use bringup_objects::condition::find;
use bringup_objects::flex::LEDGER;
use bringup_objects::flex::machine::Phase;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_provision::{LedgerContent, is_ready};
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

use super::{StatusArguments, unseen};
use crate::args::AnswerForm;
use crate::cluster::{self, Cluster};
use crate::failure::{Exit, Failure};
use crate::program::Program;
use crate::reports::{json, yaml};
use crate::{output, safe, table};

/// The content of the status.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    classes: Vec<AzureFlexNodeClass>,
    machines: Vec<AzureFlexMachine>,
    back_off: BackOff,
    audit: Audit,
    receipt: Tally,
}

pub(super) fn run(typed: StatusArguments, program: Program) -> Result<Exit, Failure> {
    let status = cluster::run(async {
        let cluster = Cluster::find(&typed.cluster.into(), program).await?;
        let mut machines = cluster.machines().await.map_err(unseen)?;
        let classes = cluster.classes().await.map_err(unseen)?;
        let kept = cluster.config_map(&typed.system_namespace, LEDGER).await.map_err(unseen)?;
        machines.sort_by_key(ResourceExt::name_any);
        let LedgerContent { back_off, tally, audit } = LedgerContent::of(kept.as_ref());
        let receipt = receipt(tally, &machines);
        Ok(Status { classes, machines, back_off, audit, receipt })
    })?;
    let answer = match typed.output {
        AnswerForm::Text => text(&status, Timestamp::now()),
        AnswerForm::Json => json(&status)?,
        AnswerForm::Yaml => yaml(&status)?,
    };
    output::answer(&answer)?;
    Ok(Exit::Fine)
}

/// Counts deleted machines, and the machines that left no resources in Azure.
fn receipt(mut tally: Tally, machines: &[AzureFlexMachine]) -> Tally {
    let ended = machines
        .iter()
        .filter(|machine| machine.status.as_ref().is_some_and(|it| it.phase == Phase::Gone));
    for machine in ended {
        tally.add(machine);
    }
    tally
}

fn text(status: &Status, now: Timestamp) -> String {
    let mut parts = vec![classes(&status.classes), machines(&status.machines, now)];
    parts.push(refused(&status.back_off, now));
    parts.push(quotas(&status.audit, now));
    parts.push(told_receipt(status, now));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn classes(all: &[AzureFlexNodeClass]) -> String {
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|class| {
            let conditions = class.status.as_ref().map_or(&[][..], |status| &status.conditions);
            let wrong = ["ValidationSucceeded", "AzureAccess", "Ready"]
                .iter()
                .filter_map(|kind| find(conditions, kind))
                .find(|one| one.status != "True");
            let why = wrong.map(|one| safe::line(&format!("{}: {}", one.reason, one.message)));
            let hunting = class.spec.hunting.as_ref().is_some_and(|hunting| hunting.enabled);
            vec![
                class.name_any(),
                class.spec.location.clone(),
                if is_ready(class) { "yes" } else { "no" }.to_owned(),
                if hunting { "yes" } else { "no" }.to_owned(),
                why.unwrap_or_default(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "No AzureFlexNodeClass found.\n".to_owned();
    }
    table::columns(&["CLASS", "LOCATION", "READY", "HUNTING", ""], &rows)
}

fn machines(all: &[AzureFlexMachine], now: Timestamp) -> String {
    if all.is_empty() {
        return "No AzureFlexMachine found.\n".to_owned();
    }
    let dash = |text: Option<&str>| text.filter(|it| !it.is_empty()).unwrap_or("-").to_owned();
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|machine| {
            let status = machine.status.clone().unwrap_or_default();
            let since = machine.metadata.creation_timestamp.as_ref();
            let age = since.map(|since| table::age(since.0.duration_until(now)));
            let cause = status.failure.as_ref().map(|failure| failure.cause.as_str());
            vec![
                machine.name_any(),
                format!("{:?}", status.phase),
                machine.spec.vm_size.clone(),
                dash(status.location.as_deref()),
                dash(machine.spec.claim_ref.as_ref().map(|claim| claim.name.as_str())),
                dash(cause),
                dash(age.as_deref()),
            ]
        })
        .collect();
    let heads = ["MACHINE", "PHASE", "SIZE", "LOCATION", "CLAIM", "CAUSE", "AGE"];
    let mut phases: BTreeMap<Phase, usize> = BTreeMap::new();
    for machine in all {
        let phase = machine.status.as_ref().map_or(Phase::Planned, |status| status.phase);
        *phases.entry(phase).or_default() += 1;
    }
    let counted: Vec<String> =
        phases.iter().map(|(phase, count)| format!("{count} {phase:?}")).collect();
    format!(
        "{}{}: {}.\n",
        table::columns(&heads, &rows),
        count(all.len(), "machine"),
        counted.join(", ")
    )
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn refused(back_off: &BackOff, now: Timestamp) -> String {
    let rows: Vec<Vec<String>> = back_off
        .entries()
        .map(|(key, entry)| {
            let next = match entry.asking {
                Some(since) if entry.until <= now => {
                    format!("requested {}", table::ago(Some(since), now))
                }
                _ if entry.until <= now => "now".to_owned(),
                _ => format!("in {}", table::age(now.duration_until(entry.until))),
            };
            vec![
                key.to_owned(),
                entry.cause.clone(),
                entry.code.clone().unwrap_or_else(|| "-".to_owned()),
                entry.times.to_string(),
                table::ago(Some(entry.last), now),
                next,
            ]
        })
        .collect();
    if rows.is_empty() {
        return "Azure has refused no request recently.\n".to_owned();
    }
    table::columns(&["REFUSED", "CAUSE", "CODE", "TIMES", "LAST", "NEXT TRY"], &rows)
}

fn quotas(audit: &Audit, now: Timestamp) -> String {
    let rows: Vec<Vec<String>> = audit
        .quotas
        .iter()
        .map(|row| {
            vec![row.region.clone(), row.name.clone(), row.used.to_string(), row.limit.to_string()]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let read = table::ago(audit.at, now);
    format!(
        "{}Quotas were read {read}.\n",
        table::columns(&["REGION", "QUOTA", "USED", "LIMIT"], &rows)
    )
}

fn told_receipt(status: &Status, now: Timestamp) -> String {
    let Status { receipt, audit, .. } = status;
    let mut text = String::new();
    let causes: Vec<String> =
        receipt.failed.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
    let causes =
        if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
    let _ = writeln!(
        text,
        "Receipt: {} ended; {} ran, {} refused or failed{causes}.",
        count(usize::try_from(receipt.machines).unwrap_or(usize::MAX), "machine"),
        receipt.ran,
        receipt.failures(),
    );
    let _ = writeln!(
        text,
        "Deleted: {} VMs, {} NICs, {} disks; {} more by the sweep.",
        receipt.vms_removed, receipt.nics_removed, receipt.disks_removed, receipt.swept
    );
    let Some(at) = audit.at else {
        let _ = writeln!(text, "Orphaned: not known, because no sweep has run yet.");
        return text;
    };
    let _ = writeln!(
        text,
        "Orphaned: {} of {} resources in Azure with the tags of cluster {} ({}).",
        audit.leftovers,
        audit.resources,
        audit.cluster,
        table::ago(Some(at), now)
    );
    for leftover in &audit.named {
        let name = leftover.id.rsplit('/').next().unwrap_or_default();
        let _ = writeln!(text, "  {} {name}, {} old", leftover.kind, table::age(leftover.age()));
    }
    for group in &audit.unseen {
        let _ = writeln!(text, "Not listed: {}", safe::line(group));
    }
    text
}
