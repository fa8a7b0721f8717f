//! The storm of `crates/flex/tests/storm.rs` with real parts: a real API server, and the controller that
//! observes claims beside the one that creates machines, with all their interactions. The test prints how
//! soon the cause of a node that never joins can be read.

#[path = "flex/common.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod common;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::test_bed::{Observer, controller};
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::flex::LEDGER;
use bringup_objects::{BootstrapReport, NodeClaim};
use bringup_observe::Settings;
use bringup_provision::LedgerContent;
use bringup_testbed::wait::in_time;
use futures::TryStreamExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::common::FlexBed;

const REFUSED: usize = 200;
const BROKEN: usize = 50;
/// The interval between two machines: all come within eight minutes.
const EACH: SignedDuration = SignedDuration::from_millis(1_920);
const RESTART: usize = 156; // after five minutes
/// How many times faster the clock of Azure and of the controller runs than the wall clock.
const TIMES: f64 = 10.0;
/// The delay with which the platform stores the console.
const CONSOLE_LAG: SignedDuration = SignedDuration::from_secs(10);

const SCENARIO: &str = r#"
quirks: {consoleLag: 10s}
subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/20}]
quotas: [{region: eastus2, family: StandardNCADSA100v4Family, limit: 0}]
rules:
- name: broken
  boot:
    bootstrap: user-data
    node: never
    script: {ends: {exitCode: 192}}
    console: 'BRINGUP-NODE/1 {"v":1,"kind":"join","exit":192,"name":"JOIN_BASE_OS_FAILED","cause":"KernelMismatch","conf":"high","step":"base-os","ev":["modprobe: overlay: Key was rejected by service"],"end":1}'
"#;

fn observe(bed: &FlexBed) -> Observer {
    let mut settings = Settings::new("default", "test-0");
    settings.reports_per_parent = REFUSED + BROKEN;
    settings.scopes = bringup_end_to_end::scopes();
    Observer::start(controller(&bed.azure, bed.client.clone(), settings))
}

/// Does what Karpenter does: writes to the claim that its machine is accepted, and deletes a claim whose
/// machine was refused. Ends when this many machines have come and none is left.
async fn be_karpenter(
    machines: Api<AzureFlexMachine>,
    claims: Api<NodeClaim>,
    all: usize,
) -> Result<()> {
    let events = watcher(machines, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let (mut told, mut left) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let machine = match events.try_next().await?.context("the watch ended")? {
            Event::Apply(machine) | Event::InitApply(machine) => machine,
            Event::Init => {
                left.clear();
                continue;
            }
            Event::InitDone => continue,
            Event::Delete(machine) => {
                left.remove(&machine.name_any());
                if told.len() == all && left.is_empty() {
                    return Ok(());
                }
                continue;
            }
        };
        let name = machine.name_any();
        left.insert(name.clone());
        let status = machine.status.unwrap_or_default();
        if told.contains(&name) {
            continue;
        }
        if status.failure.is_some() {
            claims.delete(&name, &DeleteParams::default()).await?;
        } else if let (Some(id), Some(at)) = (&status.provider_id, &status.accepted_at) {
            accept(&claims, &name, id, at.0).await?;
        } else {
            continue;
        }
        told.insert(name);
    }
}

async fn accept(claims: &Api<NodeClaim>, name: &str, id: &str, at: Timestamp) -> Result<()> {
    let launched = json!({
        "type": "Launched", "status": "True", "reason": "Launched", "message": "",
        "lastTransitionTime": Timestamp::from_second(at.as_second())?.to_string(),
    });
    let status = json!({ "providerID": id, "imageID": "ubuntu", "conditions": [launched] });
    let patch = Patch::Merge(json!({ "status": status }));
    let patched = claims.patch_status(name, &PatchParams::default(), &patch).await;
    patched.with_context(|| format!("say that {name} is accepted"))?;
    Ok(())
}

/// Creates the machines one by one, and restarts everything on the way. Returns when each machine was
/// created.
async fn storm(bed: &mut FlexBed) -> Result<(BTreeMap<String, Timestamp>, Observer)> {
    let mut observer = observe(bed);
    let mut arrived = BTreeMap::new();
    let begun = bed.azure.clock().now();
    for number in 0..REFUSED + BROKEN {
        bed.azure.clock().reach(begun + EACH * i32::try_from(number)?).await;
        if number == RESTART {
            drop(observer);
            bed.restart();
            observer = observe(bed);
        }
        let is_broken = number % 5 == 4;
        let size = if is_broken { "Standard_D8s_v5" } else { "Standard_NC24ads_A100_v4" };
        let name = format!("node-{number}");
        arrived.insert(name.clone(), bed.azure.clock().now());
        bed.claimed_machine(&name, "plain", size).await?;
    }
    Ok((arrived, observer))
}

/// When the console of each machine showed how its bootstrap had ended.
fn ends_on_consoles(bed: &FlexBed) -> Result<BTreeMap<String, Timestamp>> {
    bed.azure.with(|azure| {
        let ended = azure.journal().text().lines().filter_map(|line| {
            let line = line.strip_suffix(": script ended with 192")?;
            let (at, vm) = line.split_once(" Microsoft.Compute/virtualMachines/")?;
            // Without the suffix of the VM's name.
            Some((vm.rsplit_once('-')?.0.to_owned(), at.to_owned()))
        });
        let read = |(vm, at): (String, String)| {
            let at: Timestamp = at.parse().context("a time in the journal")?;
            anyhow::Ok((vm, at + CONSOLE_LAG))
        };
        ended.map(read).collect()
    })
}

/// The median and the maximum, in seconds.
fn spread(mut all: Vec<SignedDuration>) -> (i64, i64) {
    all.sort_unstable();
    (all[all.len() / 2].as_secs(), all[all.len() - 1].as_secs())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_storm_every_node_that_never_joins_has_its_cause() -> Result<()> {
    let builder = TestBed::builder().scenario(SCENARIO).pace(Pace::Times(TIMES));
    let mut bed = FlexBed::with(builder).await?;
    bed.ready_class("plain").await?;
    let karpenter = be_karpenter(bed.machines(), bed.claims(), REFUSED + BROKEN);
    let both = async { tokio::try_join!(karpenter, storm(&mut bed)) };
    let ((), (arrived, _observer)) = Box::pin(in_time("the end of the storm", both)).await??;

    // Nothing is left, and the ledger records the end of all machines.
    bed.until_held(&[]).await?;
    let ledger: Api<ConfigMap> = Api::namespaced(bed.client.clone(), "default");
    let tally = LedgerContent::of(Some(&ledger.get(LEDGER).await?)).tally;
    assert_eq!((tally.machines, tally.failures()), (250, 200), "{tally:?}");
    assert_eq!((tally.nics_removed, tally.vms_removed), (250, 50), "{tally:?}");

    // Every node that never joined has a report with the cause and the line that proves it.
    let shown = ends_on_consoles(&bed)?;
    let reports: Api<BootstrapReport> = Api::namespaced(bed.client.clone(), "default");
    let (mut since_asked, mut since_shown) = (Vec::new(), Vec::new());
    for report in reports.list(&ListParams::default()).await? {
        let name = &report.spec.target_ref.name;
        let ended = report.finished_at().context("a verdict has a time")?;
        assert_eq!(report.cause(), Some("KernelMismatch"), "{report:?}");
        assert!(serde_json::to_string(&report)?.contains("Key was rejected by service"), "{name}");
        since_asked.push(arrived[name].duration_until(ended));
        let shown = shown.get(name).with_context(|| format!("the console of {name}"))?;
        since_shown.push(shown.duration_until(ended));
    }
    assert_eq!(since_asked.len(), BROKEN);
    let (asked, shown) = (spread(since_asked), spread(since_shown));
    println!("50 nodes that never join, amid 200 refusals and a restart, by Azure's clock:");
    println!("from the wish for a node to its report: median {} s, most {} s", asked.0, asked.1);
    println!(
        "from the line on the console to the report: median {} s, most {} s",
        shown.0, shown.1
    );
    Ok(())
}
