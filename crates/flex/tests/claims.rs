//! The engine's effects on the claim of a machine, and on a machine whose claim no longer exists.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use std::sync::Mutex;

use async_trait::async_trait;
use bringup_contract::Open;
use bringup_flex::claim::{Claim, ClaimState};
use bringup_flex::engine::{
    CLAIM_CHANGED, Change, Claims, Cloud, CurrentClaim, Engine, Next, Pass, Store, StoreError,
};
use bringup_flex::machine::{Answer, EVIDENCE, Memory, Request, Snapshot};
use bringup_objects::flex::FINALIZER;
use bringup_objects::flex::machine::{
    AzureFlexMachine, Call, ClaimReference, Failure, FlexMachineStatus, Phase, Place,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

const ID: &str = "azure-flex:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v";

/// Kubernetes and Azure in one: the present claim, and all effects in order.
#[derive(Default)]
struct Recorded {
    claim: Option<Claim>,
    /// Whether the claim changes between the read and the deletion.
    is_contended: bool,
    done: Mutex<Vec<String>>,
}

impl Recorded {
    fn add(&self, what: impl Into<String>) {
        self.done.lock().unwrap().push(what.into());
    }
}

#[async_trait]
impl Store for &Recorded {
    async fn write_status(&self, _: &AzureFlexMachine) -> Result<(), StoreError> {
        self.add("status");
        Ok(())
    }

    async fn write_finalizers(&self, _: &AzureFlexMachine) -> Result<(), StoreError> {
        self.add("finalizers");
        Ok(())
    }

    async fn delete(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        self.add(format!("delete machine {}", machine.metadata.name.clone().unwrap()));
        Ok(())
    }
}

#[async_trait]
impl Cloud for &Recorded {
    async fn send(&self, request: Request, _: &AzureFlexMachine, _: &Place) -> Answer {
        self.add(format!("{request:?}"));
        Answer::Lost
    }
}

#[async_trait]
impl Claims for &Recorded {
    async fn read(&self, claim: &ClaimReference) -> Result<Option<CurrentClaim>, StoreError> {
        self.add(format!("read claim {}", claim.name));
        let version = "7".to_owned();
        Ok(self.claim.clone().map(|claim| CurrentClaim { claim, version }))
    }

    async fn announce_failure(&self, _: &ClaimReference, _: &AzureFlexMachine, message: &str) {
        self.add(format!("announce {message}"));
    }

    async fn delete(&self, claim: &ClaimReference, version: &str) -> Result<(), StoreError> {
        self.add(format!("delete claim {} in version {version}", claim.name));
        if self.is_contended { Err(StoreError::Conflict) } else { Ok(()) }
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

fn claim() -> Claim {
    Claim {
        uid: "u".to_owned(),
        class: "c".to_owned(),
        is_deleting: false,
        is_registered: false,
        provider_id: Some(ID.to_owned()),
        verdict: None,
    }
}

/// A machine whose VM failed this long ago.
fn failed(ago: SignedDuration) -> AzureFlexMachine {
    let mut machine = AzureFlexMachine::default();
    machine.metadata.name = Some("one".to_owned());
    machine.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    machine.spec.claim_ref = Some(ClaimReference { name: "one".to_owned(), uid: "u".to_owned() });
    let decided = Some(Time(now() - ago));
    let message = "no capacity".to_owned();
    machine.status = Some(FlexMachineStatus {
        phase: Phase::CleanVm,
        provider_id: Some(ID.to_owned()),
        accepted_at: decided.clone(),
        vm_attempt_at: decided.clone(),
        call: Some(Call { started_at: decided, ..Call::default() }),
        failure: Some(Failure {
            cause: Open::parse("AllocationFailed"),
            message,
            ..Failure::default()
        }),
        place: Some(Place::default()),
        ..FlexMachineStatus::default()
    });
    machine
}

/// A failed machine whose resources in Azure are all deleted.
fn gone(ago: SignedDuration) -> AzureFlexMachine {
    let mut machine = failed(ago);
    machine.status.as_mut().unwrap().phase = Phase::Gone;
    machine
}

/// One pass: its result, the new memory, and the effects.
async fn pass(
    recorded: &Recorded,
    machine: &AzureFlexMachine,
    claim: ClaimState<'_>,
    memory: Memory,
) -> (Pass, Memory, Vec<String>) {
    let now = now();
    let mut snapshot = Snapshot { machine, place: None, join_error: None, claim, memory, now };
    let engine = Engine::new(recorded, recorded, recorded);
    let passed = engine.pass(&mut snapshot).await.unwrap();
    (passed, snapshot.memory, std::mem::take(&mut *recorded.done.lock().unwrap()))
}

#[tokio::test]
async fn a_failure_is_announced_once_and_the_claim_waits_for_the_report() {
    let recorded = Recorded { claim: Some(claim()), ..Recorded::default() };
    let (machine, seen) = (failed(SignedDuration::from_secs(10)), claim());
    let state = ClaimState::Exists(&seen);
    let (first, memory, done) = pass(&recorded, &machine, state, Memory::default()).await;
    assert_eq!((first.next, first.change), (Next::Now, None));
    assert_eq!(done, ["read claim one", "announce AllocationFailed: no capacity"]);
    let (second, _, done) = pass(&recorded, &machine, state, memory).await;
    let until = now() + EVIDENCE - SignedDuration::from_secs(10);
    assert_eq!(second.next, Next::At(until));
    assert!(done.is_empty(), "{done:?}");
}

#[tokio::test]
async fn the_claim_is_deleted_in_the_version_that_was_read_and_not_again() {
    let recorded = Recorded { claim: Some(claim()), ..Recorded::default() };
    let (machine, seen) = (gone(EVIDENCE), claim());
    let state = ClaimState::Exists(&seen);
    let (first, memory, done) = pass(&recorded, &machine, state, Memory::default()).await;
    let wanted = [
        "read claim one",
        "announce AllocationFailed: no capacity",
        "delete claim one in version 7",
    ];
    assert_eq!(done, wanted);
    assert!(
        matches!(first.change, Some(Change::ClaimDeleted(why)) if why.cause == "AllocationFailed")
    );
    // The watch has not delivered the deletion yet.
    let (second, _, done) = pass(&recorded, &machine, state, memory).await;
    assert_eq!(second.next, Next::Never);
    assert!(done.is_empty(), "{done:?}");
}

#[tokio::test]
async fn a_claim_that_changed_since_it_was_seen_is_decided_on_as_it_is() {
    let (machine, seen) = (gone(EVIDENCE), claim());
    let state = ClaimState::Exists(&seen);
    for changed in [
        Claim { is_registered: true, ..claim() },
        Claim { is_deleting: true, ..claim() },
        Claim { provider_id: None, ..claim() },
    ] {
        let recorded = Recorded { claim: Some(changed), ..Recorded::default() };
        let (passed, _, done) = pass(&recorded, &machine, state, Memory::default()).await;
        assert_eq!((passed.next, passed.change), (Next::Never, None));
        assert_eq!(done, ["read claim one"]);
    }
    let contended = Recorded { claim: Some(claim()), is_contended: true, ..Recorded::default() };
    let (passed, memory, _) = pass(&contended, &machine, state, Memory::default()).await;
    assert_eq!((passed.next, passed.change), (Next::At(now() + CLAIM_CHANGED), None));
    assert!(!memory.claim_deleted);
}

#[tokio::test]
async fn a_machine_is_deleted_only_where_its_claim_is_read_and_does_not_exist() {
    let machine = gone(EVIDENCE);
    let unseen = Recorded { claim: Some(claim()), ..Recorded::default() };
    let (passed, _, done) = pass(&unseen, &machine, ClaimState::Missing, Memory::default()).await;
    assert_eq!(passed.next, Next::At(now() + CLAIM_CHANGED), "the watch is behind");
    assert_eq!(done, ["read claim one"]);
    let missing = Recorded::default();
    let (passed, _, done) = pass(&missing, &machine, ClaimState::Missing, Memory::default()).await;
    assert_eq!(passed.change, Some(Change::MachineDeleted));
    assert_eq!(done, ["read claim one", "delete machine one"]);
    let (passed, _, done) =
        pass(&missing, &machine, ClaimState::NotListed, Memory::default()).await;
    assert_eq!((passed.next, done.len()), (Next::Never, 0), "claims have not been listed");
}
