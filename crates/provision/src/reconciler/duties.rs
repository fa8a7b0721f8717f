//! What a machine owes to its claim: a machine whose claim no longer exists is deleted, and so is a
//! claim whose machine has failed, once it is known why.

use bringup_flex::engine::Bootstrap;
use bringup_flex::machine::EVIDENCE;
use bringup_flex::time::later;
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::flex::machine::Phase;
use bringup_objects::karpenter::NodeClaim;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, ResourceExt as _};
use tracing::{info, warn};

use super::ending::exactly;
use super::index::{Claim, Verdict};
use super::metrics::{BOOT_TIMEOUT, LAUNCH_TIMEOUT};
use super::{AGAIN, Flex, pause};

/// What is owed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// Nothing.
    None,
    /// To look again then.
    At(Timestamp),
    /// To ask whether the claim is really gone, and then to go.
    Leave,
    /// To say why it failed, and to wait for a report until then.
    Say(String, Timestamp),
    /// The claim is to go.
    End(String),
}

/// What a machine owes now.
pub(super) fn duty(
    machine: &AzureFlexMachine,
    claim: Option<&Claim>,
    claims_are_listed: bool,
    now: Timestamp,
) -> Duty {
    if machine.spec.claim_ref.is_none() || machine.metadata.deletion_timestamp.is_some() {
        return Duty::None;
    }
    let Some(claim) = claim else {
        return if claims_are_listed { Duty::Leave } else { Duty::None };
    };
    let status = machine.status.clone().unwrap_or_default();
    // Anyone who may create machines can name any claim. A claim is only ended for the machine that
    // it names itself, and never once its node has registered: then Karpenter ends it, when it finds
    // that the instance is gone.
    if claim.is_going || claim.is_registered || !claim.names(&status) {
        return Duty::None;
    }
    let after = |since: &Time, limit: i64, what: &str| {
        let due = later(since.0, SignedDuration::from_secs(limit));
        let minutes = limit / 60;
        if due > now {
            Duty::At(due)
        } else {
            Duty::End(format!("{what} within {minutes} minutes"))
        }
    };
    let Some(accepted) = &status.accepted_at else {
        // A refusal at once is returned to the client that asked.
        let duty = match (&status.created_at, &status.place) {
            (Some(created), Some(place)) if status.failure.is_none() => {
                after(created, place.launch_timeout_seconds, "Azure did not accept the VM")
            }
            _ => Duty::None,
        };
        let error = status.call.as_ref().and_then(|call| call.last_error.as_deref());
        return match (duty, error) {
            (Duty::End(what), Some(error)) => Duty::End(format!("{what}: {error}")),
            (duty, _) => duty,
        };
    };
    if let Some(failure) = &status.failure {
        let what = format!("{}: {}", failure.cause, failure.message);
        let decided = status.call.as_ref().and_then(|call| call.started_at.as_ref());
        let decided = decided.filter(|decided| decided.0 <= now);
        let until = decided.map_or(now, |decided| later(decided.0, EVIDENCE));
        let is_told = claim.verdict.is_some() || until <= now;
        return if is_told { Duty::End(what) } else { Duty::Say(what, until) };
    }
    if status.phase != Phase::Running {
        return Duty::None;
    }
    match &claim.verdict {
        Some(Verdict::Up) => Duty::None,
        Some(Verdict::Failed { cause, message }) => Duty::End(format!("{cause}: {message}")),
        // Without a cause nothing is proven: the class says how long to wait.
        Some(Verdict::Open) | None => {
            let limit = status.place.map_or(0, |place| place.boot_timeout_seconds);
            after(accepted, limit, "the node did not join")
        }
    }
}

/// Why a claim ends, in one word.
pub(super) fn cause<'a>(machine: &'a AzureFlexMachine, claim: Option<&'a Claim>) -> &'a str {
    let status = machine.status.as_ref();
    let failure = status.and_then(|status| status.failure.as_ref());
    let is_accepted = status.is_some_and(|status| status.accepted_at.is_some());
    match (failure, claim.and_then(|claim| claim.verdict.as_ref())) {
        (Some(failure), _) => failure.cause.as_str(),
        (None, Some(Verdict::Failed { cause, .. })) => cause,
        (None, Some(Verdict::Up | Verdict::Open) | None) if is_accepted => BOOT_TIMEOUT,
        (None, Some(Verdict::Up | Verdict::Open) | None) => LAUNCH_TIMEOUT,
    }
}

impl<B: Bootstrap> Flex<B> {
    /// Does what a machine owes; when to look again.
    pub(super) async fn owe(&self, name: &str, now: Timestamp) -> Option<Timestamp> {
        let machine = self.store.machine(name).await?;
        let (claim, listed) = {
            let index = self.index();
            let known = index.machines.get(name);
            let claim = known.and_then(|known| index.claim_of(known)).cloned();
            (claim, index.claims_are_listed)
        };
        match duty(&machine, claim.as_ref(), listed, now) {
            Duty::None => None,
            Duty::At(at) => Some(at),
            Duty::Leave => self.leave(&machine, now).await,
            Duty::Say(what, until) => {
                if let Ok(Some(claim)) = self.claim_of(&machine).await {
                    self.say(&claim, &machine, &what, now).await;
                }
                Some(until)
            }
            Duty::End(_) => self.end(&machine, now).await,
        }
    }

    pub(super) async fn claim_of(
        &self,
        machine: &AzureFlexMachine,
    ) -> Result<Option<NodeClaim>, kube::Error> {
        let Some(wanted) = &machine.spec.claim_ref else { return Ok(None) };
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        let found = claims.get_opt(&wanted.name).await?;
        Ok(found.filter(|claim| claim.uid().as_ref() == Some(&wanted.uid)))
    }

    async fn leave(&self, machine: &AzureFlexMachine, now: Timestamp) -> Option<Timestamp> {
        match self.claim_of(machine).await {
            // It is new, and has not been seen yet.
            Ok(Some(_)) => return Some(later(now, AGAIN)),
            Ok(None) => {}
            Err(error) => {
                warn!(machine = machine.name_any(), %error, "its claim could not be read");
                return Some(later(now, pause(&error)));
            }
        }
        let parameters = exactly(machine.uid(), None);
        match self.store.api().delete(&machine.name_any(), &parameters).await {
            Ok(_) => info!(machine = machine.name_any(), "its claim is gone, and so it goes"),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => {
                warn!(machine = machine.name_any(), %error, "it could not be deleted");
                return Some(later(now, pause(&error)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use bringup_contract::Open;
    use bringup_objects::condition::BOOTSTRAP_SUCCEEDED;
    use bringup_objects::flex::machine::{
        Call, ClaimReference, Failure, FlexMachineSpec, FlexMachineStatus, Place,
    };
    use serde_json::json;

    use super::super::index::{GROUP, KIND};
    use super::*;

    /// As the machine has it, in other letters than the claim's.
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
            is_going: false,
            is_registered: false,
            provider_id: Some(ID.to_owned()),
            verdict,
        }
    }

    fn machine(phase: Phase, failure: Option<&str>) -> AzureFlexMachine {
        let reference = ClaimReference { name: "one".to_owned(), uid: "u".to_owned() };
        AzureFlexMachine {
            spec: FlexMachineSpec { claim_ref: Some(reference), ..FlexMachineSpec::default() },
            status: Some(FlexMachineStatus {
                phase,
                provider_id: Some(ID.to_owned()),
                accepted_at: Some(Time(at(0))),
                place: Some(Place { boot_timeout_seconds: 300, ..Place::default() }),
                call: Some(Call { started_at: Some(Time(at(100))), ..Call::default() }),
                failure: failure
                    .map(|cause| Failure { cause: Open::parse(cause), ..Failure::default() }),
                ..FlexMachineStatus::default()
            }),
            ..AzureFlexMachine::default()
        }
    }

    #[test]
    fn case_18_a_machine_whose_claim_is_gone_goes_but_not_before_claims_were_listed() {
        let up = machine(Phase::Running, None);
        assert_eq!(duty(&up, None, false, at(0)), Duty::None);
        assert_eq!(duty(&up, None, true, at(0)), Duty::Leave);
        let mut alone = up;
        alone.spec.claim_ref = None;
        assert_eq!(duty(&alone, None, true, at(0)), Duty::None, "nobody's claim");
    }

    #[test]
    fn case_47_a_node_that_does_not_join_ends_at_the_time_of_its_class() {
        let up = machine(Phase::Running, None);
        assert_eq!(duty(&up, Some(&claim(None)), true, at(299)), Duty::At(at(300)));
        assert_eq!(
            duty(&up, Some(&claim(None)), true, at(300)),
            Duty::End("the node did not join within 5 minutes".to_owned())
        );
        let joined = Claim { is_registered: true, ..claim(None) };
        assert_eq!(duty(&up, Some(&joined), true, at(900)), Duty::None);
        assert_eq!(duty(&up, Some(&claim(Some(Verdict::Up))), true, at(900)), Duty::None);
    }

    #[test]
    fn case_47_a_bootstrap_that_failed_ends_the_claim_with_the_diagnosis() {
        let up = machine(Phase::Running, None);
        let verdict = verdict_of("DnsFailure", "no such host");
        assert_eq!(
            duty(&up, Some(&claim(Some(verdict))), true, at(30)),
            Duty::End("DnsFailure: no such host".to_owned())
        );
    }

    /// A claim as it is in the API server, with a condition that says this of its bootstrap.
    fn judged(reason: &str) -> NodeClaim {
        let told = json!({
            "type": BOOTSTRAP_SUCCEEDED,
            "status": "False",
            "reason": reason,
            "message": "in words",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        serde_json::from_value(json!({
            "metadata": { "name": "one", "uid": "u", "resourceVersion": "7" },
            "spec": { "nodeClassRef": { "group": GROUP, "kind": KIND, "name": "c" } },
            "status": { "conditions": [told], "providerID": ID.to_ascii_uppercase().replace("AZURE-FLEX", "azure-flex") },
        }))
        .unwrap()
    }

    #[test]
    fn case_47_a_verdict_without_a_cause_ends_no_claim_before_the_time_of_its_class() {
        let up = machine(Phase::Running, None);
        let (open, known) = (Claim::of(&judged("Unknown")), Claim::of(&judged("DnsFailure")));
        assert_eq!(duty(&up, open.as_ref(), true, at(299)), Duty::At(at(300)));
        let late = "the node did not join within 5 minutes".to_owned();
        assert_eq!(duty(&up, open.as_ref(), true, at(300)), Duty::End(late));
        assert_eq!(cause(&up, open.as_ref()), BOOT_TIMEOUT);
        let why = "DnsFailure: in words".to_owned();
        assert_eq!(duty(&up, known.as_ref(), true, at(1)), Duty::End(why));
        // The VM is no longer needed as evidence.
        let failed = machine(Phase::CleanVm, Some("AllocationFailed"));
        let what = "AllocationFailed: ".to_owned();
        assert_eq!(duty(&failed, open.as_ref(), true, at(102)), Duty::End(what));
    }

    #[test]
    fn a_machine_that_failed_later_is_told_at_once_and_its_claim_waits_for_the_report() {
        let failed = machine(Phase::CleanVm, Some("AllocationFailed"));
        let what = "AllocationFailed: ".to_owned();
        assert_eq!(
            duty(&failed, Some(&claim(None)), true, at(101)),
            Duty::Say(what.clone(), at(160))
        );
        assert_eq!(duty(&failed, Some(&claim(None)), true, at(160)), Duty::End(what.clone()));
        let reported = claim(Some(verdict_of("Unknown", "x")));
        assert_eq!(duty(&failed, Some(&reported), true, at(102)), Duty::End(what));
        let going = Claim { is_going: true, ..claim(None) };
        assert_eq!(duty(&failed, Some(&going), true, at(999)), Duty::None);
    }

    #[test]
    fn case_47_a_vm_that_azure_does_not_accept_in_time_ends_the_claim() {
        let mut asked = machine(Phase::VmPut, None);
        let status = asked.status.as_mut().unwrap();
        (status.accepted_at, status.created_at) = (None, Some(Time(at(0))));
        status.place.as_mut().unwrap().launch_timeout_seconds = 180;
        assert_eq!(duty(&asked, Some(&claim(None)), true, at(179)), Duty::At(at(180)));
        assert_eq!(
            duty(&asked, Some(&claim(None)), true, at(180)),
            Duty::End("Azure did not accept the VM within 3 minutes".to_owned())
        );
        let call = asked.status.as_mut().unwrap().call.as_mut().unwrap();
        call.last_error = Some("there is no token".to_owned());
        assert_eq!(
            duty(&asked, Some(&claim(None)), true, at(180)),
            Duty::End("Azure did not accept the VM within 3 minutes: there is no token".to_owned())
        );
    }

    #[test]
    fn a_claim_is_never_ended_for_a_machine_that_it_does_not_name_or_once_it_has_registered() {
        let failed = machine(Phase::CleanVm, Some("AllocationFailed"));
        let (late, mut unnamed) = (machine(Phase::Running, None), machine(Phase::Running, None));
        unnamed.status.as_mut().unwrap().provider_id = None;
        let forged = [None, Some(String::new()), Some(ID.replace("/one-", "/two-"))];
        let forged = forged.map(|provider_id| Claim { provider_id, ..claim(None) });
        let registered = Claim { is_registered: true, ..claim(None) };
        for claim in forged.iter().chain([&registered]) {
            for machine in [&failed, &late, &unnamed] {
                assert_eq!(duty(machine, Some(claim), true, at(9_999)), Duty::None, "{claim:?}");
            }
        }
        let none = Claim { provider_id: None, ..claim(None) };
        assert_eq!(duty(&unnamed, Some(&none), true, at(9_999)), Duty::None, "none names none");
    }

    #[test]
    fn times_as_far_out_as_they_can_be_panic_nowhere() {
        let far: [Timestamp; 3] =
            [Timestamp::MAX, Timestamp::MIN, "9999-12-30T22:00:00Z".parse().unwrap()];
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
                        drop(duty(&far, Some(&claim(None)), true, now));
                    }
                }
            }
        }
    }

    #[test]
    fn the_cause_of_an_end_is_one_word() {
        let up = machine(Phase::Running, None);
        let failed = machine(Phase::CleanVm, Some("AllocationFailed"));
        let mut asked = machine(Phase::VmPut, None);
        asked.status.as_mut().unwrap().accepted_at = None;
        let verdict = claim(Some(verdict_of("DnsFailure", "no such host: a.b")));
        assert_eq!(cause(&up, Some(&verdict)), "DnsFailure");
        assert_eq!(cause(&failed, Some(&verdict)), "AllocationFailed");
        assert_eq!(cause(&up, Some(&claim(None))), BOOT_TIMEOUT);
        assert_eq!(cause(&asked, Some(&claim(None))), LAUNCH_TIMEOUT);
    }

    #[test]
    fn what_is_refused_at_once_is_for_whoever_asked() {
        let mut refused = machine(Phase::Gone, Some("QuotaExceeded"));
        refused.status.as_mut().unwrap().accepted_at = None;
        assert_eq!(duty(&refused, Some(&claim(None)), true, at(999)), Duty::None);
    }
}
