//! What an idle machine implies for its claim: if the machine failed, its claim is deleted once the cause is
//! known; if the claim no longer exists, the machine is deleted.

use bringup_objects::flex::machine::{FlexMachineStatus as Status, Phase};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::snapshot::{EVIDENCE, FailedClaim, Snapshot, Step};
use crate::claim::{BOOT_TIMEOUT, Claim, ClaimState, LAUNCH_TIMEOUT, Verdict};
use crate::time::later;

impl Snapshot<'_> {
    /// The next step for the claim.
    pub(super) fn claim_step(&self, status: &Status) -> Step {
        let meta = &self.machine.metadata;
        if self.machine.spec.claim_ref.is_none() || meta.deletion_timestamp.is_some() {
            return Step::Rest;
        }
        let claim = match self.claim {
            ClaimState::NotListed => return Step::Rest,
            ClaimState::Missing => return Step::DeleteMachine,
            ClaimState::Exists(claim) => claim,
        };
        // A claim is deleted only if the claim itself names this machine, and never after its Node has
        // registered: then Karpenter deletes the claim when the instance no longer exists.
        let is_over = claim.is_deleting || self.memory.claim_deleted;
        if is_over || claim.is_registered || !claim.names(status) {
            return Step::Rest;
        }
        let Some(accepted) = &status.accepted_at else {
            return self.before_acceptance(status, claim);
        };
        if let Some(failure) = &status.failure {
            let what = format!("{}: {}", failure.cause, failure.message);
            return self.after_failure(status, claim, what);
        }
        if status.phase != Phase::Running {
            return Step::Rest;
        }
        match &claim.verdict {
            Some(Verdict::Succeeded) => Step::Rest,
            Some(Verdict::Failed { cause, message }) => {
                delete(status, claim, format!("{cause}: {message}"))
            }
            // Without a known cause, the class's limits decide how long to wait.
            Some(Verdict::Unexplained) | None => {
                let limit = status.place.as_ref().map_or(0, |place| place.boot_timeout_seconds);
                match self.timeout(accepted, limit) {
                    Some(due) => Step::Wait(due),
                    None => delete(status, claim, overdue("the node did not join", limit)),
                }
            }
        }
    }

    /// Azure has not accepted the VM yet. An immediate refusal is returned to the client that made the
    /// request, and does not delete the claim.
    fn before_acceptance(&self, status: &Status, claim: &Claim) -> Step {
        let (Some(created), Some(place), None) =
            (&status.created_at, &status.place, &status.failure)
        else {
            return Step::Rest;
        };
        let limit = place.launch_timeout_seconds;
        if let Some(due) = self.timeout(created, limit) {
            return Step::Wait(due);
        }
        let what = overdue("Azure did not accept the VM", limit);
        let error = status.call.as_ref().and_then(|call| call.last_error.as_deref());
        delete(status, claim, error.map_or(what.clone(), |error| format!("{what}: {error}")))
    }

    /// The VM failed after Azure had accepted it: the failure is announced at once. The claim is deleted
    /// after the observer's report, or at the latest when the VM is deleted.
    fn after_failure(&self, status: &Status, claim: &Claim, what: String) -> Step {
        let decided = status.call.as_ref().and_then(|call| call.started_at.as_ref());
        let decided = decided.filter(|decided| decided.0 <= self.now);
        let until = decided.map_or(self.now, |decided| later(decided.0, EVIDENCE));
        if claim.verdict.is_some() || until <= self.now {
            delete(status, claim, what)
        } else if self.memory.failure_announced {
            Step::Wait(until)
        } else {
            Step::AnnounceFailure(what)
        }
    }

    /// When a limit in seconds ends; none if it has ended.
    fn timeout(&self, since: &Time, limit: i64) -> Option<Timestamp> {
        let due = later(since.0, SignedDuration::from_secs(limit));
        Some(due).filter(|due| *due > self.now)
    }
}

fn overdue(what: &str, limit: i64) -> String {
    format!("{what} within {} minutes", limit / 60)
}

fn delete(status: &Status, claim: &Claim, message: String) -> Step {
    Step::DeleteClaim(FailedClaim { cause: cause(status, claim).to_owned(), message })
}

/// The cause of a claim's deletion, in one word.
fn cause<'a>(status: &'a Status, claim: &'a Claim) -> &'a str {
    match (&status.failure, &claim.verdict) {
        (Some(failure), _) => failure.cause.as_str(),
        (None, Some(Verdict::Failed { cause, .. })) => cause,
        (None, Some(Verdict::Succeeded | Verdict::Unexplained) | None) => {
            if status.accepted_at.is_some() { BOOT_TIMEOUT } else { LAUNCH_TIMEOUT }
        }
    }
}

#[cfg(test)]
mod tests {
    use bringup_contract::Open;
    use bringup_objects::flex::FINALIZER;
    use bringup_objects::flex::machine::{
        AzureFlexMachine, Call, ClaimReference, Failure, FlexMachineSpec, Place,
    };

    use super::super::snapshot::{Memory, Request};
    use super::*;

    /// The machine's provider ID; the claim's differs in letter case.
    const ID: &str = "azure-flex:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/one-01234567";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn verdict_of(cause: &str, message: &str) -> Verdict {
        Verdict::Failed { cause: cause.to_owned(), message: message.to_owned() }
    }

    fn claim(verdict: Option<Verdict>) -> Claim {
        Claim {
            uid: "u".to_owned(),
            class: "c".to_owned(),
            is_deleting: false,
            is_registered: false,
            provider_id: Some(ID.to_ascii_uppercase().replace("AZURE-FLEX", "azure-flex")),
            verdict,
        }
    }

    fn machine(phase: Phase, failure: Option<&str>) -> AzureFlexMachine {
        let reference = ClaimReference { name: "one".to_owned(), uid: "u".to_owned() };
        AzureFlexMachine {
            spec: FlexMachineSpec { claim_ref: Some(reference), ..FlexMachineSpec::default() },
            status: Some(Status {
                phase,
                provider_id: Some(ID.to_owned()),
                accepted_at: Some(Time(at(0))),
                place: Some(Place { boot_timeout_seconds: 300, ..Place::default() }),
                call: Some(Call { started_at: Some(Time(at(100))), ..Call::default() }),
                failure: failure
                    .map(|cause| Failure { cause: Open::parse(cause), ..Failure::default() }),
                ..Status::default()
            }),
            ..AzureFlexMachine::default()
        }
    }

    fn step(machine: &AzureFlexMachine, claim: ClaimState<'_>, now: Timestamp) -> Step {
        remembering(machine, claim, Memory::default(), now)
    }

    fn remembering(
        machine: &AzureFlexMachine,
        claim: ClaimState<'_>,
        memory: Memory,
        now: Timestamp,
    ) -> Step {
        let snapshot = Snapshot { machine, place: None, join_error: None, claim, memory, now };
        snapshot.claim_step(&snapshot.status())
    }

    fn deletion(cause: &str, message: &str) -> Step {
        Step::DeleteClaim(FailedClaim { cause: cause.to_owned(), message: message.to_owned() })
    }

    #[test]
    fn case_18_a_machine_whose_claim_is_gone_is_deleted_but_not_before_claims_were_listed() {
        let up = machine(Phase::Running, None);
        assert_eq!(step(&up, ClaimState::NotListed, at(0)), Step::Rest);
        assert_eq!(step(&up, ClaimState::Missing, at(0)), Step::DeleteMachine);
        let mut alone = up;
        alone.spec.claim_ref = None;
        assert_eq!(step(&alone, ClaimState::Missing, at(0)), Step::Rest, "it has no claim");
    }

    #[test]
    fn case_47_a_node_that_does_not_join_is_given_up_at_the_time_of_its_class() {
        let up = machine(Phase::Running, None);
        let waiting = claim(None);
        let waiting = ClaimState::Exists(&waiting);
        assert_eq!(step(&up, waiting, at(299)), Step::Wait(at(300)));
        let late = deletion(BOOT_TIMEOUT, "the node did not join within 5 minutes");
        assert_eq!(step(&up, waiting, at(300)), late);
        let joined = Claim { is_registered: true, ..claim(None) };
        assert_eq!(step(&up, ClaimState::Exists(&joined), at(900)), Step::Rest);
        let succeeded = claim(Some(Verdict::Succeeded));
        assert_eq!(step(&up, ClaimState::Exists(&succeeded), at(900)), Step::Rest);
    }

    #[test]
    fn case_47_a_bootstrap_that_failed_deletes_the_claim_with_the_diagnosis() {
        let up = machine(Phase::Running, None);
        let failed = claim(Some(verdict_of("DnsFailure", "no such host")));
        assert_eq!(
            step(&up, ClaimState::Exists(&failed), at(30)),
            deletion("DnsFailure", "DnsFailure: no such host")
        );
    }

    #[test]
    fn case_47_a_verdict_without_a_cause_deletes_no_claim_before_the_time_of_its_class() {
        let up = machine(Phase::Running, None);
        let open = claim(Some(Verdict::Unexplained));
        let open = ClaimState::Exists(&open);
        assert_eq!(step(&up, open, at(299)), Step::Wait(at(300)));
        let late = deletion(BOOT_TIMEOUT, "the node did not join within 5 minutes");
        assert_eq!(step(&up, open, at(300)), late);
        let known = claim(Some(verdict_of("DnsFailure", "in words")));
        let why = deletion("DnsFailure", "DnsFailure: in words");
        assert_eq!(step(&up, ClaimState::Exists(&known), at(1)), why);
        // The VM is no longer needed as evidence.
        let failed = machine(Phase::CleanVm, Some("AllocationFailed"));
        let what = deletion("AllocationFailed", "AllocationFailed: ");
        assert_eq!(step(&failed, open, at(102)), what);
    }

    #[test]
    fn a_machine_that_failed_later_is_announced_at_once_and_its_claim_waits_for_the_report() {
        let failed = machine(Phase::CleanVm, Some("AllocationFailed"));
        let waiting = claim(None);
        let waiting = ClaimState::Exists(&waiting);
        let announcement = Step::AnnounceFailure("AllocationFailed: ".to_owned());
        assert_eq!(step(&failed, waiting, at(101)), announcement);
        let announced = Memory { failure_announced: true, ..Memory::default() };
        assert_eq!(remembering(&failed, waiting, announced, at(101)), Step::Wait(at(160)));
        let what = deletion("AllocationFailed", "AllocationFailed: ");
        assert_eq!(step(&failed, waiting, at(160)), what);
        assert_eq!(remembering(&failed, waiting, announced, at(160)), what);
        let reported = claim(Some(verdict_of("Unknown", "x")));
        assert_eq!(step(&failed, ClaimState::Exists(&reported), at(102)), what);
        let deleting = Claim { is_deleting: true, ..claim(None) };
        assert_eq!(step(&failed, ClaimState::Exists(&deleting), at(999)), Step::Rest);
    }

    #[test]
    fn a_claim_that_was_deleted_is_not_deleted_again_before_the_watch_shows_it() {
        let failed = machine(Phase::CleanVm, Some("AllocationFailed"));
        let waiting = claim(None);
        let deleted = Memory { claim_deleted: true, ..Memory::default() };
        let step = remembering(&failed, ClaimState::Exists(&waiting), deleted, at(999));
        assert_eq!(step, Step::Rest);
    }

    #[test]
    fn case_47_a_vm_that_azure_does_not_accept_in_time_deletes_the_claim() {
        let mut asked = machine(Phase::VmPut, None);
        let status = asked.status.as_mut().unwrap();
        (status.accepted_at, status.created_at) = (None, Some(Time(at(0))));
        status.place.as_mut().unwrap().launch_timeout_seconds = 180;
        let waiting = claim(None);
        let waiting = ClaimState::Exists(&waiting);
        assert_eq!(step(&asked, waiting, at(179)), Step::Wait(at(180)));
        assert_eq!(
            step(&asked, waiting, at(180)),
            deletion(LAUNCH_TIMEOUT, "Azure did not accept the VM within 3 minutes")
        );
        let call = asked.status.as_mut().unwrap().call.as_mut().unwrap();
        call.last_error = Some("there is no token".to_owned());
        assert_eq!(
            step(&asked, waiting, at(180)),
            deletion(
                LAUNCH_TIMEOUT,
                "Azure did not accept the VM within 3 minutes: there is no token"
            )
        );
    }

    #[test]
    fn a_claim_is_never_deleted_for_a_machine_that_it_does_not_name_or_once_it_has_registered() {
        let failed = machine(Phase::CleanVm, Some("AllocationFailed"));
        let (late, mut unnamed) = (machine(Phase::Running, None), machine(Phase::Running, None));
        unnamed.status.as_mut().unwrap().provider_id = None;
        let forged = [None, Some(String::new()), Some(ID.replace("/one-", "/two-"))];
        let forged = forged.map(|provider_id| Claim { provider_id, ..claim(None) });
        let registered = Claim { is_registered: true, ..claim(None) };
        for claim in forged.iter().chain([&registered]) {
            for machine in [&failed, &late, &unnamed] {
                let step = step(machine, ClaimState::Exists(claim), at(9_999));
                assert_eq!(step, Step::Rest, "{claim:?}");
            }
        }
        let none = Claim { provider_id: None, ..claim(None) };
        let step = step(&unnamed, ClaimState::Exists(&none), at(9_999));
        assert_eq!(step, Step::Rest, "none names none");
    }

    #[test]
    fn the_machine_comes_first_and_of_two_waits_the_earlier_counts() {
        let mut up = machine(Phase::Running, None);
        up.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
        up.status.as_mut().unwrap().call = None;
        let waiting = claim(None);
        let mut snapshot = Snapshot {
            machine: &up,
            place: None,
            join_error: None,
            claim: ClaimState::Exists(&waiting),
            memory: Memory { missing_vm: 1, ..Memory::default() },
            now: at(400),
        };
        assert_eq!(snapshot.next_step(), Step::Send(Request::ReadVm), "the node is overdue too");
        snapshot.memory = Memory { not_before: Some(at(299)), ..snapshot.memory };
        snapshot.now = at(200);
        assert_eq!(snapshot.next_step(), Step::Wait(at(299)), "before the node is overdue");
        assert_eq!(snapshot.machine_wait(), Some(at(299)));
        snapshot.memory = Memory { not_before: Some(at(301)), ..snapshot.memory };
        assert_eq!(snapshot.next_step(), Step::Wait(at(300)), "the node is overdue before");
        snapshot.now = at(300);
        assert!(matches!(snapshot.next_step(), Step::DeleteClaim(_)));
        assert_eq!(snapshot.machine_wait(), Some(at(301)));
    }

    #[test]
    fn times_as_far_out_as_they_can_be_panic_nowhere() {
        let far: [Timestamp; 3] =
            [Timestamp::MAX, Timestamp::MIN, "9999-12-30T22:00:00Z".parse().unwrap()];
        let waiting = claim(None);
        for time in far.map(Time) {
            for limit in [i64::MAX, i64::MIN, 0] {
                for (phase, failure) in [(Phase::Running, None), (Phase::CleanVm, Some("x"))] {
                    let mut far = machine(phase, failure);
                    let status = far.status.as_mut().unwrap();
                    status.accepted_at = Some(time.clone());
                    status.created_at = Some(time.clone());
                    status.call.as_mut().unwrap().started_at = Some(time.clone());
                    let place = status.place.as_mut().unwrap();
                    (place.boot_timeout_seconds, place.launch_timeout_seconds) = (limit, limit);
                    for now in [at(0), Timestamp::MAX, Timestamp::MIN] {
                        drop(step(&far, ClaimState::Exists(&waiting), now));
                    }
                }
            }
        }
    }

    #[test]
    fn the_cause_of_a_deletion_is_one_word() {
        let of = |machine: &AzureFlexMachine, claim: &Claim| {
            cause(machine.status.as_ref().unwrap(), claim).to_owned()
        };
        let up = machine(Phase::Running, None);
        let failed = machine(Phase::CleanVm, Some("AllocationFailed"));
        let mut asked = machine(Phase::VmPut, None);
        asked.status.as_mut().unwrap().accepted_at = None;
        let verdict = claim(Some(verdict_of("DnsFailure", "no such host: a.b")));
        assert_eq!(of(&up, &verdict), "DnsFailure");
        assert_eq!(of(&failed, &verdict), "AllocationFailed");
        assert_eq!(of(&up, &claim(None)), BOOT_TIMEOUT);
        assert_eq!(of(&asked, &claim(None)), LAUNCH_TIMEOUT);
    }

    #[test]
    fn what_is_refused_at_once_is_for_the_client_that_asked() {
        let mut refused = machine(Phase::Gone, Some("QuotaExceeded"));
        refused.status.as_mut().unwrap().accepted_at = None;
        let waiting = claim(None);
        assert_eq!(step(&refused, ClaimState::Exists(&waiting), at(999)), Step::Rest);
    }
}
