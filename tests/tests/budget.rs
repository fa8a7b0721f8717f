//! Thousands of pending claims and a budget of a dozen reads a second. Only the test moves the clock, and
//! the API server is a fake in memory, so the counts show only what the controller does.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_end_to_end::fake_api_server::FakeApiServer;
use bringup_end_to_end::order::Order;
use bringup_end_to_end::stand_in_karpenter::StandInKarpenter;
use bringup_end_to_end::test_bed::{Observer, controller};
use bringup_end_to_end::vm_fleet::{Reads, VmFleet};
use bringup_objects::BootstrapReport;
use bringup_objects::report::CollectorState;
use bringup_observe::Settings;
use jiff::{SignedDuration, Timestamp};

/// A scenario in which no script ever ends.
const HANGING: &str = "rules: [{name: all, boot: {script: hangs}}]";
/// How many VMs Azure lets a client create in a minute, in the long run.
const VMS_A_MINUTE: usize = 500;

/// The steps of the clock: coarse while only reads happen, fine while seconds count.
const COARSE: Duration = Duration::from_secs(8);
const FINE: Duration = Duration::from_secs(1);

/// Claims that were all launched at the same moment, and an observer.
struct PendingClaims {
    azure: Simulator,
    fake_api_server: FakeApiServer,
    launched: Timestamp,
    _observer: Observer,
}

fn name(nth: usize) -> String {
    format!("claim-{nth}")
}

impl PendingClaims {
    fn with(claims: usize) -> Result<Self> {
        let azure = Simulator::manual(scenario::parse("hanging", HANGING)?);
        let (vm_fleet, order) = (VmFleet::new(azure.clone()), Order::default());
        for nth in 0..claims {
            vm_fleet.put_vm(&name(nth), "default", &order)?;
            vm_fleet.start_script(&name(nth), &order)?;
            if nth % VMS_A_MINUTE == 0 {
                azure.advance(Duration::from_mins(1));
            }
        }
        azure.advance(Duration::from_mins(2));
        let (fake_api_server, launched) = (FakeApiServer::default(), azure.clock().now());
        for nth in 0..claims {
            let place = format!("azure://{}", StandInKarpenter::vm_path(&name(nth)));
            fake_api_server.launch(&name(nth), "AKSNodeClass", &place, launched);
        }
        let settings = Settings {
            reports_per_parent: claims,
            scopes: bringup_end_to_end::scopes(),
            ..Settings::new("bringup-system", "test-0")
        };
        let observer = Observer::start(controller(&azure, fake_api_server.client(), settings));
        Ok(Self { azure, fake_api_server, launched, _observer: observer })
    }

    fn age(&self) -> SignedDuration {
        self.launched.duration_until(self.azure.clock().now())
    }

    /// Lets time pass, and lets everything happen that becomes due.
    async fn pass(&self, time: Duration) {
        self.azure.advance(time);
        let done = || {
            (
                self.fake_api_server.requests(),
                self.azure.with(|azure| azure.journal().requests().len()),
            )
        };
        let (mut before, mut still) = (done(), 0);
        while still < 24 {
            tokio::task::yield_now().await;
            let after = done();
            still = if after == before { still + 1 } else { 0 };
            before = after;
        }
    }

    /// Lets time pass until the claims have this age, in steps small enough to use the whole budget.
    async fn pass_until(&self, age: SignedDuration, step: Duration) {
        while self.age() < age {
            self.pass(step).await;
        }
    }
}

fn state_of(report: &BootstrapReport, collector: &str) -> Option<CollectorState> {
    let status = report.status.as_ref()?;
    status
        .collectors
        .iter()
        .find(|asked| asked.name == collector)
        .and_then(|asked| asked.state.known())
}

#[tokio::test]
async fn test_26_each_of_5000_pending_claims_is_captured_in_time_or_says_that_it_was_throttled()
-> Result<()> {
    let claims = 5_000;
    let pending = PendingClaims::with(claims)?;
    pending.pass_until(SignedDuration::from_mins(12), COARSE).await;
    pending.pass_until(SignedDuration::from_mins(13), FINE).await;

    let reads = Reads::of(&pending.azure);
    assert_eq!(reads.refused, 0, "requests that were one too many");
    assert!(reads.beyond_budget() <= 1, "{} too many", reads.beyond_budget());
    let reports = pending.fake_api_server.reports();
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for report in &reports {
        let state = format!("{:?}", state_of(report, "virtual machine"));
        *states.entry(state).or_default() += 1;
    }
    let unread = claims - reads.by_vm().len();
    println!(
        "5,000 pending claims until T+13 min: {} reports, {states:?}; {} reads, {unread} never read",
        reports.len(),
        reads.of_vms.len(),
    );
    assert_eq!(reports.len(), claims, "each has a verdict before Karpenter's limit");
    for report in &reports {
        let name = &report.spec.target_ref.name;
        let at = report.finished_at().map(|at| pending.launched.duration_until(at));
        assert!(at.is_some_and(|at| at < SignedDuration::from_mins(13)), "{name}: {at:?}");
        match state_of(report, "virtual machine") {
            Some(CollectorState::Ok | CollectorState::Throttled) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(unread, 0, "claims that were never read although everybody could be, once");
    Ok(())
}

#[tokio::test]
async fn claims_with_an_event_of_karpenter_are_read_before_thousands_without_one() -> Result<()> {
    let claims = 3_000;
    let pending = PendingClaims::with(claims)?;
    pending.pass_until(SignedDuration::from_secs(90), COARSE).await;
    // Some of these claims wait for a scheduled read, some have had one, but none has had one just now.
    let said: Vec<String> = (0..claims).step_by(claims / 20).map(name).collect();
    let before = Reads::of(&pending.azure);
    let now = pending.azure.clock().now();
    for claim in &said {
        pending.fake_api_server.signal(claim, now);
    }
    pending.pass_until(pending.age() + SignedDuration::from_secs(3), FINE).await;
    let after = Reads::of(&pending.azure);
    assert!(before.of_vms.len() < claims, "there are others who wait");
    for claim in &said {
        assert!(after.of_claim(claim) > before.of_claim(claim), "{claim} was not read in 3 s");
    }
    // A third of all claims leave their places in the queue, and get places further ahead.
    let now = pending.azure.clock().now();
    for nth in (1..claims).step_by(3) {
        pending.fake_api_server.signal(&name(nth), now);
    }
    pending.pass_until(pending.age() + SignedDuration::from_mins(2), FINE).await;
    let reads = Reads::of(&pending.azure);
    assert_eq!(reads.refused, 0);
    assert!(reads.beyond_budget() <= 1, "{} too many", reads.beyond_budget());
    let read = reads.by_vm();
    let unread = (1..claims).step_by(3).filter(|nth| {
        !read.contains_key(StandInKarpenter::vm_path(&name(*nth)).to_ascii_lowercase().as_str())
    });
    assert_eq!(unread.count(), 0, "VMs with a signal are read before those without one");
    Ok(())
}
